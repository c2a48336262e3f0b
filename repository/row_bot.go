package repository

import "openbot/domain"

type botRow struct {
	ID             domain.BotID          `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	Kind           domain.BotKind
	MemberID       domain.MemberID
	OwnerID        domain.BotID
	ChatID         domain.ChatID
	Shared         bool
	Name           string
	Role           string
	Instructions   string
	Model          string
	Memory         string
	Taint          document[domain.Taint]
	MemoryTaint    document[domain.Taint]
	ArchivedAt     *int64
	ClosingDueAt   *int64
	Created        int64 `gorm:"column:created_at;<-:create"`
	Updated        int64 `gorm:"column:updated_at"`
	Version        int64
}

func (botRow) TableName() string { return "bots" }

func fromBot(b *domain.Bot, version int64) botRow {
	return botRow{ID: b.ID, OrganizationID: b.Organization, Kind: b.Kind, MemberID: b.Member, OwnerID: b.Owner,
		ChatID: b.Chat, Shared: b.Shared, Name: b.Name, Role: b.Role, Instructions: b.Instructions, Model: b.Model,
		Memory: b.Memory, Taint: documentOf(b.Taint), MemoryTaint: documentOf(b.MemoryTaint), ArchivedAt: microsOrNil(b.ArchivedAt), ClosingDueAt: microsOrNil(b.ClosingDueAt),
		Created: micros(b.CreatedAt), Updated: micros(b.UpdatedAt), Version: version}
}

func (r botRow) domain() domain.Bot {
	return domain.Bot{ID: r.ID, Organization: r.OrganizationID, Kind: r.Kind, Member: r.MemberID, Owner: r.OwnerID,
		Chat: r.ChatID, Shared: r.Shared, Name: r.Name, Role: r.Role, Instructions: r.Instructions, Model: r.Model,
		Memory: r.Memory, Taint: r.Taint.value, MemoryTaint: r.MemoryTaint.value, ArchivedAt: momentOrNil(r.ArchivedAt), ClosingDueAt: momentOrNil(r.ClosingDueAt),
		CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}
