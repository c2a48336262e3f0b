package repository

import "openbot/domain"

// delegationRow keeps what was given as it was given. Its cost is counted up by
// statements of its own, so that commits of many pieces below need not agree on a
// version.
type delegationRow struct {
	ID             domain.DelegationID   `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	ExecutionID    domain.ExecutionID    `gorm:"<-:create"`
	AboveID        domain.DelegationID   `gorm:"<-:create"`
	ParentChatID   domain.ChatID         `gorm:"<-:create"`
	ParentTurnID   domain.TurnID         `gorm:"<-:create"`
	ParentCallID   domain.CallID         `gorm:"<-:create"`
	TriggerID      domain.TriggerID      `gorm:"<-:create"`
	GiverID        domain.BotID          `gorm:"<-:create"`
	BotID          domain.BotID          `gorm:"<-:create"`
	ChatID         domain.ChatID         `gorm:"<-:create"`
	Status         domain.DelegationStatus
	Task           string `gorm:"<-:create"`
	Reason         string `gorm:"<-:create"`
	Result         string
	Taint          document[domain.Taint]
	Limits         document[domain.Limits] `gorm:"<-:create"`
	Authority      document[[]domain.Authority]
	Steps          int64
	CostNanos      int64 `gorm:"<-:create"`
	StartedAt      *int64
	Clock          document[domain.WorkClock]
	Pause          document[*domain.WorkPause]
	CallID         domain.CallID
	Gate           int64
	StoppingAt     *int64
	StopWhy        string
	Notice         domain.NoticeKind
	FirstEvent     int64 `gorm:"<-:create"`
	LastEvent      int64
	NoticeDueAt    *int64
	ClosingDueAt   *int64
	ResumeDueAt    *int64
	DueAt          *int64
	ParkedBy       domain.DelegationID
	EndedAt        *int64
	Created        int64 `gorm:"column:created_at;<-:create"`
	Updated        int64 `gorm:"column:updated_at"`
	Version        int64
}

func (delegationRow) TableName() string { return "delegations" }

func fromDelegation(g *domain.Delegation, version int64) delegationRow {
	return delegationRow{ID: g.ID, OrganizationID: g.Organization, MemberID: g.Member, ExecutionID: g.Execution, AboveID: g.Above,
		ParentChatID: g.Parent.Chat, ParentTurnID: g.Parent.Turn, ParentCallID: g.Parent.Call, TriggerID: g.Trigger, GiverID: g.Giver,
		BotID: g.Bot, ChatID: g.Chat, Status: g.Status, Task: g.Task, Reason: g.Reason, Result: g.Result, Taint: documentOf(g.Taint), Limits: documentOf(g.Limits),
		Authority: documentOf(g.Authority), Steps: g.Steps, CostNanos: g.CostNanos, StartedAt: microsOrNil(g.StartedAt),
		Clock: documentOf(g.Clock), Pause: documentOf(g.Pause), CallID: g.Call, Gate: g.Gate, StoppingAt: microsOrNil(g.StoppingAt), StopWhy: g.StopWhy,
		Notice: g.Notice, FirstEvent: g.FirstEvent, LastEvent: g.LastEvent, NoticeDueAt: microsOrNil(g.NoticeDueAt),
		ClosingDueAt: microsOrNil(g.ClosingDueAt), ResumeDueAt: microsOrNil(g.ResumeDueAt), DueAt: microsOrNil(g.DueAt),
		ParkedBy: g.ParkedBy, EndedAt: microsOrNil(g.EndedAt), Created: micros(g.CreatedAt), Updated: micros(g.UpdatedAt), Version: version}
}

func (r delegationRow) domain() domain.Delegation {
	return domain.Delegation{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Execution: r.ExecutionID, Above: r.AboveID,
		Parent:  domain.WorkParent{Chat: r.ParentChatID, Turn: r.ParentTurnID, Call: r.ParentCallID},
		Trigger: r.TriggerID, Giver: r.GiverID, Bot: r.BotID, Chat: r.ChatID, Status: r.Status, Task: r.Task, Reason: r.Reason,
		Result: r.Result, Taint: r.Taint.value, Limits: r.Limits.value, Authority: r.Authority.value, Steps: r.Steps, CostNanos: r.CostNanos,
		StartedAt: momentOrNil(r.StartedAt), Clock: r.Clock.value, Pause: r.Pause.value, Call: r.CallID, Gate: r.Gate,
		StoppingAt: momentOrNil(r.StoppingAt), StopWhy: r.StopWhy, Notice: r.Notice, FirstEvent: r.FirstEvent, LastEvent: r.LastEvent,
		NoticeDueAt: momentOrNil(r.NoticeDueAt), ClosingDueAt: momentOrNil(r.ClosingDueAt), ResumeDueAt: momentOrNil(r.ResumeDueAt),
		DueAt: momentOrNil(r.DueAt), ParkedBy: r.ParkedBy, EndedAt: momentOrNil(r.EndedAt),
		CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}
