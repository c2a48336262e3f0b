package repository

import "openbot/domain"

// reminderRow is inserted when a Bot asks for it and deleted when its reminder fires or
// is cancelled.
type reminderRow struct {
	ID             domain.ReminderID            `gorm:"<-:create"`
	OrganizationID domain.OrganizationID        `gorm:"<-:create"`
	MemberID       domain.MemberID              `gorm:"<-:create"`
	ChatID         domain.ChatID                `gorm:"<-:create"`
	BotID          domain.BotID                 `gorm:"<-:create"`
	Text           string                       `gorm:"<-:create"`
	Authority      document[[]domain.Authority] `gorm:"<-:create"`
	DueAt          int64                        `gorm:"<-:create"`
	Created        int64                        `gorm:"column:created_at;<-:create"`
	Version        int64
}

func (reminderRow) TableName() string { return "reminders" }

func fromReminder(r *domain.Reminder, version int64) reminderRow {
	return reminderRow{ID: r.ID, OrganizationID: r.Organization, MemberID: r.Member, ChatID: r.Chat, BotID: r.Bot, Text: r.Text,
		Authority: documentOf(r.Authority), DueAt: micros(r.DueAt), Created: micros(r.CreatedAt), Version: version}
}

func (r reminderRow) domain() domain.Reminder {
	return domain.Reminder{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Chat: r.ChatID, Bot: r.BotID, Text: r.Text,
		Authority: r.Authority.value, DueAt: moment(r.DueAt), CreatedAt: moment(r.Created), Version: r.Version}
}
