package repository

import "openbot/domain"

// callRow keeps what was asked for as it was saved: what a decision was given on
// cannot change under it.
type callRow struct {
	ID             domain.CallID                     `gorm:"<-:create"`
	OrganizationID domain.OrganizationID             `gorm:"<-:create"`
	MemberID       domain.MemberID                   `gorm:"<-:create"`
	ChatID         domain.ChatID                     `gorm:"<-:create"`
	TurnID         domain.TurnID                     `gorm:"<-:create"`
	Step           int                               `gorm:"<-:create"`
	Position       int                               `gorm:"<-:create"`
	ParentID       domain.CallID                     `gorm:"<-:create"`
	Code           document[*domain.ProgramPosition] `gorm:"<-:create"`
	ModelID        string                            `gorm:"<-:create"`
	Name           string                            `gorm:"<-:create"`
	Kind           domain.CallKind                   `gorm:"<-:create"`
	Action         string                            `gorm:"<-:create"`
	Target         string                            `gorm:"<-:create"`
	ConnectionID   domain.ConnectionID               `gorm:"<-:create"`
	Revision       int64                             `gorm:"<-:create"`
	Tool           string                            `gorm:"<-:create"`
	Arguments      string                            `gorm:"<-:create"`
	Digest         string                            `gorm:"<-:create"`
	Reason         string                            `gorm:"<-:create"`
	Repeatable     bool
	Waited         bool
	Status         domain.CallStatus
	Decided        document[*domain.DecidedBy]
	Evidence       document[[]domain.Finding]
	Judgings       int
	Program        document[*domain.ProgramState]
	DelegationID   domain.DelegationID `gorm:"<-:create"`
	ParkedBy       domain.DelegationID
	RequestID      domain.RequestID
	Result         string
	Sends          int
	Lease          string
	LeaseUntil     *int64
	SentAt         *int64
	EndedAt        *int64
	DueAt          *int64
	Created        int64 `gorm:"column:created_at;<-:create"`
	Updated        int64 `gorm:"column:updated_at"`
	Version        int64
}

func (callRow) TableName() string { return "calls" }

func fromCall(c *domain.Call, version int64) callRow {
	return callRow{ID: c.ID, OrganizationID: c.Organization, MemberID: c.Member, ChatID: c.Chat, TurnID: c.Turn,
		Step: c.Step, Position: c.Position, ParentID: c.Parent, Code: documentOf(c.Code), ModelID: c.ModelID, Name: c.Name, Kind: c.Kind,
		Action: c.Capability.Action, Target: c.Capability.Target, ConnectionID: c.Connection, Revision: c.Revision,
		Tool: c.Tool, Arguments: string(c.Arguments), Digest: c.Digest, Reason: c.Reason, Repeatable: c.Repeatable,
		Waited: c.Waited, Status: c.Status, Decided: documentOf(c.Decided),
		Evidence: documentOf(c.Evidence), Judgings: c.Judgings, Program: documentOf(c.Program), DelegationID: c.Delegation, ParkedBy: c.ParkedBy, RequestID: c.Request, Result: c.Result,
		Sends: c.Sends, Lease: c.Lease, LeaseUntil: microsOrNil(c.LeaseUntil), SentAt: microsOrNil(c.SentAt),
		EndedAt: microsOrNil(c.EndedAt), DueAt: microsOrNil(c.DueAt),
		Created: micros(c.CreatedAt), Updated: micros(c.UpdatedAt), Version: version}
}

func (r callRow) domain() domain.Call {
	return domain.Call{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Chat: r.ChatID, Turn: r.TurnID,
		Step: r.Step, Position: r.Position, Parent: r.ParentID, Code: r.Code.value, ModelID: r.ModelID, Name: r.Name, Kind: r.Kind,
		Capability: domain.Capability{Action: r.Action, Target: r.Target}, Connection: r.ConnectionID, Revision: r.Revision,
		Tool: r.Tool, Arguments: raw(r.Arguments), Digest: r.Digest, Reason: r.Reason, Repeatable: r.Repeatable,
		Waited: r.Waited, Status: r.Status, Decided: r.Decided.value,
		Evidence: r.Evidence.value, Judgings: r.Judgings, Program: r.Program.value, Delegation: r.DelegationID, ParkedBy: r.ParkedBy, Request: r.RequestID, Result: r.Result,
		Sends: r.Sends, Lease: r.Lease, LeaseUntil: momentOrNil(r.LeaseUntil), SentAt: momentOrNil(r.SentAt),
		EndedAt: momentOrNil(r.EndedAt), DueAt: momentOrNil(r.DueAt),
		CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}
