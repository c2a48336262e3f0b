package repository

import (
	"context"

	"gorm.io/gorm"

	"openbot/domain"
)

type triggerRow struct {
	ID             domain.TriggerID      `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	Name           string
	Kind           string `gorm:"<-:create"`
	Cron           string
	TimeZone       string
	Missed         string
	Sealed         []byte
	BotID          domain.BotID
	ChatID         domain.ChatID
	Task           string
	Enabled        bool
	Problem        string
	Authority      document[[]domain.Authority]
	NextAt         *int64
	LastAt         *int64
	LastWorkID     domain.DelegationID
	Deleted        *int64 `gorm:"column:deleted_at"`
	Created        int64  `gorm:"column:created_at;<-:create"`
	Updated        int64  `gorm:"column:updated_at"`
	Version        int64
}

func (triggerRow) TableName() string { return "triggers" }

func fromTrigger(t *domain.Trigger, version int64) triggerRow {
	return triggerRow{ID: t.ID, OrganizationID: t.Organization, MemberID: t.Member, Name: t.Name, Kind: t.Kind, Cron: t.Cron,
		TimeZone: t.TimeZone, Missed: t.Missed, Sealed: t.Sealed, BotID: t.Bot, ChatID: t.Chat, Task: t.Task, Enabled: t.Enabled,
		Problem: t.Problem, Authority: documentOf(t.Authority), NextAt: microsOrNil(t.NextAt), LastAt: microsOrNil(t.LastAt),
		LastWorkID: t.LastWork, Deleted: microsOrNil(t.DeletedAt), Created: micros(t.CreatedAt), Updated: micros(t.UpdatedAt), Version: version}
}

func (r triggerRow) domain() domain.Trigger {
	return domain.Trigger{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Name: r.Name, Kind: r.Kind, Cron: r.Cron,
		TimeZone: r.TimeZone, Missed: r.Missed, Sealed: r.Sealed, Bot: r.BotID, Chat: r.ChatID, Task: r.Task, Enabled: r.Enabled,
		Problem: r.Problem, Authority: r.Authority.value, NextAt: momentOrNil(r.NextAt), LastAt: momentOrNil(r.LastAt),
		LastWork: r.LastWorkID, DeletedAt: momentOrNil(r.Deleted), CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}

// Trigger gives one trigger, deleted or not.
func (s *Store) Trigger(ctx context.Context, id domain.TriggerID) (domain.Trigger, error) {
	return one(ctx, s, "Trigger", triggerRow.domain, byID(id))
}

// Triggers lists a Member's triggers that are not deleted, newest first.
func (s *Store) Triggers(ctx context.Context, member domain.MemberID, page domain.Page) ([]domain.Trigger, error) {
	return list(ctx, s, "list triggers", triggerRow.domain, func(db *gorm.DB) *gorm.DB {
		return paged(db.Where("member_id = ? AND deleted_at IS NULL", member), page)
	})
}
