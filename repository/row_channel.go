package repository

import "openbot/domain"

type channelRow struct {
	ID             domain.ChannelID      `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	Name           string
	BotID          domain.BotID
	URL            string
	Sealed         []byte
	Actors         document[map[string]domain.MemberID]
	Enabled        bool
	DisabledWhy    string
	Deleted        *int64 `gorm:"column:deleted_at"`
	Created        int64  `gorm:"column:created_at;<-:create"`
	Updated        int64  `gorm:"column:updated_at"`
	Version        int64
}

func (channelRow) TableName() string { return "channels" }

func fromChannel(c *domain.Channel, version int64) channelRow {
	return channelRow{ID: c.ID, OrganizationID: c.Organization, MemberID: c.Member, Name: c.Name, BotID: c.Bot, URL: c.URL, Sealed: c.Sealed,
		Actors: documentOf(c.Actors), Enabled: c.Enabled, DisabledWhy: c.DisabledWhy, Deleted: microsOrNil(c.DeletedAt),
		Created: micros(c.CreatedAt), Updated: micros(c.UpdatedAt), Version: version}
}

func (r channelRow) domain() domain.Channel {
	return domain.Channel{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Name: r.Name, Bot: r.BotID, URL: r.URL, Sealed: r.Sealed,
		Actors: r.Actors.value, Enabled: r.Enabled, DisabledWhy: r.DisabledWhy, DeletedAt: momentOrNil(r.Deleted),
		CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}
