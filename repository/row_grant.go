package repository

import "openbot/domain"

// grantRow can only be settled and revoked.
type grantRow struct {
	ID             domain.GrantID         `gorm:"<-:create"`
	OrganizationID domain.OrganizationID  `gorm:"<-:create"`
	MemberID       domain.MemberID        `gorm:"<-:create"`
	BotID          domain.BotID           `gorm:"<-:create"`
	Action         string                 `gorm:"<-:create"`
	Target         string                 `gorm:"<-:create"`
	LimitKind      string                 `gorm:"<-:create"`
	Decision       string                 `gorm:"<-:create"`
	Scope          string                 `gorm:"<-:create"`
	ChatID         domain.ChatID          `gorm:"<-:create"`
	Revision       int64                  `gorm:"<-:create"`
	Source         string                 `gorm:"<-:create"`
	RequestID      domain.RequestID       `gorm:"<-:create"`
	ParentID       domain.GrantID         `gorm:"<-:create"`
	Shown          document[domain.Taint] `gorm:"<-:create"`
	ShownIn        domain.ChatID          `gorm:"<-:create"`
	SettleDueAt    *int64
	Created        int64 `gorm:"column:created_at;<-:create"`
	RevokedAt      *int64
	Version        int64
}

func (grantRow) TableName() string { return "grants" }

func fromGrant(g *domain.Grant, version int64) grantRow {
	return grantRow{ID: g.ID, OrganizationID: g.Organization, MemberID: g.Member, BotID: g.Bot,
		Action: g.Capability.Action, Target: g.Capability.Target, LimitKind: g.Limit, Decision: g.Decision, Scope: g.Scope, ChatID: g.Chat,
		Revision: g.Revision, Source: g.Source, RequestID: g.Request, ParentID: g.Parent, Shown: documentOf(g.Shown), ShownIn: g.ShownIn, SettleDueAt: microsOrNil(g.SettleDueAt),
		Created: micros(g.CreatedAt), RevokedAt: microsOrNil(g.RevokedAt), Version: version}
}

func (r grantRow) domain() domain.Grant {
	return domain.Grant{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Bot: r.BotID,
		Capability: domain.Capability{Action: r.Action, Target: r.Target}, Limit: r.LimitKind, Decision: r.Decision, Scope: r.Scope,
		Chat: r.ChatID, Revision: r.Revision, Source: r.Source, Request: r.RequestID, Parent: r.ParentID, Shown: r.Shown.value, ShownIn: r.ShownIn,
		SettleDueAt: momentOrNil(r.SettleDueAt), CreatedAt: moment(r.Created), RevokedAt: momentOrNil(r.RevokedAt),
		Version: r.Version}
}

type ruleRow struct {
	ID             domain.RuleID         `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	BotID          domain.BotID          `gorm:"<-:create"`
	Text           string
	Effect         string
	Enabled        bool
	Source         string           `gorm:"<-:create"`
	KeeperID       domain.BotID     `gorm:"<-:create"`
	RequestID      domain.RequestID `gorm:"<-:create"`
	Created        int64            `gorm:"column:created_at;<-:create"`
	Deleted        *int64           `gorm:"column:deleted_at"`
	Version        int64
}

func (ruleRow) TableName() string { return "rules" }

func fromRule(r *domain.Rule, version int64) ruleRow {
	return ruleRow{ID: r.ID, OrganizationID: r.Organization, MemberID: r.Member, BotID: r.Bot, Text: r.Text,
		Effect: r.Effect, Enabled: r.Enabled, Source: r.Source, KeeperID: r.Keeper, RequestID: r.Request,
		Created: micros(r.CreatedAt), Deleted: microsOrNil(r.DeletedAt), Version: version}
}

func (r ruleRow) domain() domain.Rule {
	return domain.Rule{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Bot: r.BotID,
		Text: r.Text, Effect: r.Effect, Enabled: r.Enabled, Source: r.Source, Keeper: r.KeeperID, Request: r.RequestID,
		CreatedAt: moment(r.Created), DeletedAt: momentOrNil(r.Deleted), Version: r.Version}
}
