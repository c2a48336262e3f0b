package repository

import "openbot/domain"

// In the row types, "<-:create" marks what is written once. Fields are not called
// CreatedAt or UpdatedAt, because GORM fills fields of these names from its own
// clock.

type organizationRow struct {
	ID       domain.OrganizationID `gorm:"<-:create"`
	Name     string
	Settings document[domain.Settings]
	Created  int64 `gorm:"column:created_at;<-:create"`
	Updated  int64 `gorm:"column:updated_at"`
	Version  int64
}

func (organizationRow) TableName() string { return "organizations" }

func fromOrganization(o *domain.Organization, version int64) organizationRow {
	return organizationRow{ID: o.ID, Name: o.Name, Settings: documentOf(o.Settings),
		Created: micros(o.CreatedAt), Updated: micros(o.UpdatedAt), Version: version}
}

func (r organizationRow) domain() domain.Organization {
	return domain.Organization{ID: r.ID, Name: r.Name, Settings: r.Settings.value,
		CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}

type memberRow struct {
	ID             domain.MemberID       `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	Name           string
	Permissions    document[domain.Permissions]
	MainBotID      domain.BotID
	DisabledAt     *int64
	ClosingDueAt   *int64
	Created        int64 `gorm:"column:created_at;<-:create"`
	Updated        int64 `gorm:"column:updated_at"`
	Version        int64
}

func (memberRow) TableName() string { return "members" }

func fromMember(m *domain.Member, version int64) memberRow {
	return memberRow{ID: m.ID, OrganizationID: m.Organization, Name: m.Name, Permissions: documentOf(m.Permissions),
		MainBotID: m.MainBot, DisabledAt: microsOrNil(m.DisabledAt), ClosingDueAt: microsOrNil(m.ClosingDueAt),
		Created: micros(m.CreatedAt), Updated: micros(m.UpdatedAt), Version: version}
}

func (r memberRow) domain() domain.Member {
	return domain.Member{ID: r.ID, Organization: r.OrganizationID, Name: r.Name, Permissions: r.Permissions.value,
		MainBot: r.MainBotID, DisabledAt: momentOrNil(r.DisabledAt), ClosingDueAt: momentOrNil(r.ClosingDueAt),
		CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}

type tokenRow struct {
	ID             domain.TokenID        `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	Name           string
	Hash           string `gorm:"<-:create"`
	Scopes         document[domain.Permissions]
	ExpiresAt      *int64
	// The last use moves by TouchToken alone, without the version: a commit must not
	// set it back to what was read before.
	LastUsedAt   *int64 `gorm:"<-:create"`
	RevokedAt    *int64
	ClosingDueAt *int64
	Created      int64 `gorm:"column:created_at;<-:create"`
	Version      int64
}

func (tokenRow) TableName() string { return "tokens" }

func fromToken(t *domain.Token, version int64) tokenRow {
	return tokenRow{ID: t.ID, OrganizationID: t.Organization, MemberID: t.Member, Name: t.Name, Hash: t.Hash,
		Scopes: documentOf(t.Scopes), ExpiresAt: microsOrNil(t.ExpiresAt), LastUsedAt: microsOrNil(t.LastUsedAt),
		RevokedAt: microsOrNil(t.RevokedAt), ClosingDueAt: microsOrNil(t.ClosingDueAt),
		Created: micros(t.CreatedAt), Version: version}
}

func (r tokenRow) domain() domain.Token {
	return domain.Token{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Name: r.Name, Hash: r.Hash,
		Scopes: r.Scopes.value, ExpiresAt: momentOrNil(r.ExpiresAt), LastUsedAt: momentOrNil(r.LastUsedAt),
		RevokedAt: momentOrNil(r.RevokedAt), ClosingDueAt: momentOrNil(r.ClosingDueAt),
		CreatedAt: moment(r.Created), Version: r.Version}
}
