package repository

import "openbot/domain"

// requestRow keeps what is asked as it was first shown; only who decides, what was
// said about it, and how it ended can change.
type requestRow struct {
	ID             domain.RequestID            `gorm:"<-:create"`
	OrganizationID domain.OrganizationID       `gorm:"<-:create"`
	MemberID       domain.MemberID             `gorm:"<-:create"`
	BotID          domain.BotID                `gorm:"<-:create"`
	Action         string                      `gorm:"<-:create"`
	Target         string                      `gorm:"<-:create"`
	Reason         string                      `gorm:"<-:create"`
	ApproverTag    string                      `gorm:"column:approver_tag"`
	ApproverUser   domain.MemberID             `gorm:"column:approver_user"`
	ApproverBot    domain.BotID                `gorm:"column:approver_bot"`
	ApproverGrant  domain.GrantID              `gorm:"column:approver_grant"`
	ApproverRule   domain.RuleID               `gorm:"column:approver_rule"`
	Chain          document[[]domain.BotID]    `gorm:"<-:create"`
	ChatID         domain.ChatID               `gorm:"<-:create"`
	TurnID         domain.TurnID               `gorm:"<-:create"`
	CallID         domain.CallID               `gorm:"<-:create"`
	AskedID        domain.CallID               `gorm:"<-:create"`
	DelegationID   domain.DelegationID         `gorm:"<-:create"`
	LimitKind      string                      `gorm:"<-:create"`
	Arguments      string                      `gorm:"<-:create"`
	App            document[*domain.SavedCall] `gorm:"<-:create"`
	Code           document[*domain.SavedCode] `gorm:"<-:create"`
	Plan           string                      `gorm:"<-:create"`
	OnExpire       string                      `gorm:"<-:create"`
	Unknown        document[*domain.Unknown]   `gorm:"<-:create"`
	Endorsements   document[[]domain.Endorsement]
	Tags           document[[]string]       `gorm:"<-:create"`
	TagLine        document[domain.TagLine] `gorm:"<-:create"`
	Taint          document[domain.Taint]   `gorm:"<-:create"`
	TaintedTag     string                   `gorm:"<-:create"`
	Resource       string                   `gorm:"<-:create"`
	ReviewVerdict  document[*domain.ReviewVerdict]
	VerdictDueAt   *int64
	VerdictTries   int
	ReviewID       domain.ChatID
	ReviewDueAt    *int64
	RemindAt       *int64
	Escalation     document[*domain.Escalation] `gorm:"<-:create"`
	EscalateAt     *int64
	SecondID       domain.MemberID
	Status         domain.RequestStatus
	Decision       document[*domain.Decision]
	Receipt        string
	Revision       int64
	Created        int64 `gorm:"column:created_at;<-:create"`
	ExpiresAt      int64
	Updated        int64 `gorm:"column:updated_at"`
	Version        int64
}

func (requestRow) TableName() string { return "requests" }

func fromRequest(q *domain.Request, version int64) requestRow {
	return requestRow{Code: documentOf(q.Code), Plan: q.Plan, OnExpire: q.OnExpire, ReviewID: q.Review, ReviewDueAt: microsOrNil(q.ReviewDueAt),
		RemindAt: microsOrNil(q.RemindAt), Escalation: documentOf(q.Escalation), EscalateAt: microsOrNil(q.EscalateAt), SecondID: q.Second, ID: q.ID, OrganizationID: q.Organization, MemberID: q.Member, BotID: q.Bot,
		Action: q.Capability.Action, Target: q.Capability.Target, Reason: q.Reason,
		ApproverTag: q.Approver.Tag, ApproverUser: q.Approver.User, ApproverBot: q.Approver.Bot,
		ApproverGrant: q.Approver.Grant, ApproverRule: q.Approver.Rule, Chain: documentOf(q.Chain), ChatID: q.Chat,
		TurnID: q.Turn, CallID: q.Call, AskedID: q.Asked, DelegationID: q.Delegation, LimitKind: q.Limit, Arguments: string(q.Arguments), App: documentOf(q.App),
		Unknown: documentOf(q.Unknown), Endorsements: documentOf(q.Endorsements), Tags: documentOf(q.Tags),
		TagLine: documentOf(q.TagLine), Taint: documentOf(q.Taint), TaintedTag: q.TaintedTag, Resource: q.Resource,
		ReviewVerdict: documentOf(q.ReviewVerdict), VerdictDueAt: microsOrNil(q.VerdictDueAt), VerdictTries: q.VerdictTries, Status: q.Status, Decision: documentOf(q.Decision), Receipt: q.Receipt, Revision: q.Revision,
		Created: micros(q.CreatedAt), ExpiresAt: micros(q.ExpiresAt), Updated: micros(q.UpdatedAt), Version: version}
}

func (r requestRow) domain() domain.Request {
	return domain.Request{Code: r.Code.value, Plan: r.Plan, OnExpire: r.OnExpire, Review: r.ReviewID, ReviewDueAt: momentOrNil(r.ReviewDueAt),
		RemindAt: momentOrNil(r.RemindAt), Escalation: r.Escalation.value, EscalateAt: momentOrNil(r.EscalateAt), Second: r.SecondID, ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Bot: r.BotID,
		Capability: domain.Capability{Action: r.Action, Target: r.Target}, Reason: r.Reason,
		Approver: domain.Actor{Tag: r.ApproverTag, User: r.ApproverUser, Bot: r.ApproverBot, Grant: r.ApproverGrant,
			Rule: r.ApproverRule}, Chain: r.Chain.value, Chat: r.ChatID, Turn: r.TurnID, Call: r.CallID,
		Asked: r.AskedID, Delegation: r.DelegationID, Limit: r.LimitKind, Arguments: raw(r.Arguments), App: r.App.value, Unknown: r.Unknown.value,
		Endorsements: r.Endorsements.value, Tags: r.Tags.value, TagLine: r.TagLine.value, Taint: r.Taint.value,
		TaintedTag: r.TaintedTag, Resource: r.Resource, VerdictDueAt: momentOrNil(r.VerdictDueAt), VerdictTries: r.VerdictTries, ReviewVerdict: r.ReviewVerdict.value, Status: r.Status,
		Decision: r.Decision.value, Receipt: r.Receipt, Revision: r.Revision, CreatedAt: moment(r.Created), ExpiresAt: moment(r.ExpiresAt),
		UpdatedAt: moment(r.Updated), Version: r.Version}
}
