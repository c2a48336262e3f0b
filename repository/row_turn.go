package repository

import "openbot/domain"

type turnRow struct {
	ID             domain.TurnID         `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	ChatID         domain.ChatID         `gorm:"<-:create"`
	BotID          domain.BotID          `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	Author         string                `gorm:"<-:create"`
	Authority      document[[]domain.Authority]
	Status         domain.TurnStatus
	Steps          int
	OpenCalls      int
	Tries          int
	Answer         string
	Error          string
	InputTokens    int64
	OutputTokens   int64
	CostNanos      int64
	Held           document[*domain.HeldReply]
	ParkedBy       domain.DelegationID
	DueAt          *int64
	Created        int64 `gorm:"column:created_at;<-:create"`
	Updated        int64 `gorm:"column:updated_at"`
	Version        int64
}

func (turnRow) TableName() string { return "turns" }

func fromTurn(t *domain.Turn, version int64) turnRow {
	return turnRow{ID: t.ID, OrganizationID: t.Organization, ChatID: t.Chat, BotID: t.Bot, MemberID: t.Member, Author: t.Author,
		Authority: documentOf(t.Authority), Status: t.Status, Steps: t.Steps, OpenCalls: t.OpenCalls, Tries: t.Tries,
		Answer: t.Answer, Error: t.Error, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, CostNanos: t.CostNanos,
		Held: documentOf(t.Held), ParkedBy: t.ParkedBy, DueAt: microsOrNil(t.DueAt), Created: micros(t.CreatedAt), Updated: micros(t.UpdatedAt), Version: version}
}

func (r turnRow) domain() domain.Turn {
	return domain.Turn{ID: r.ID, Organization: r.OrganizationID, Chat: r.ChatID, Bot: r.BotID, Member: r.MemberID, Author: r.Author,
		Authority: r.Authority.value, Status: r.Status, Steps: r.Steps, OpenCalls: r.OpenCalls, Tries: r.Tries,
		Answer: r.Answer, Error: r.Error, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, CostNanos: r.CostNanos,
		Held: r.Held.value, ParkedBy: r.ParkedBy, DueAt: momentOrNil(r.DueAt), CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}
