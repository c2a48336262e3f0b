package repository

import "openbot/domain"

type connectionRow struct {
	ID             domain.ConnectionID   `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	Shared         bool
	Name           string
	Transport      domain.Transport
	URL            string
	Command        string
	Args           document[[]string]
	HeaderNames    document[[]string]
	EnvNames       document[[]string]
	Sealed         []byte
	Revision       int64
	Look           document[domain.AppLook]
	Health         string
	HealthWhy      string
	LookedAt       *int64
	LookDueAt      *int64
	Deleted        *int64 `gorm:"column:deleted_at"`
	Created        int64  `gorm:"column:created_at;<-:create"`
	Updated        int64  `gorm:"column:updated_at"`
	Version        int64
}

func (connectionRow) TableName() string { return "connections" }

func fromConnection(c *domain.Connection, version int64) connectionRow {
	return connectionRow{ID: c.ID, OrganizationID: c.Organization, MemberID: c.Member, Shared: c.Shared, Name: c.Name,
		Transport: c.Transport, URL: c.URL, Command: c.Command, Args: documentOf(c.Args),
		HeaderNames: documentOf(c.HeaderNames), EnvNames: documentOf(c.EnvNames), Sealed: c.Sealed, Revision: c.Revision,
		Look: documentOf(c.Look), Health: c.Health, HealthWhy: c.HealthWhy, LookedAt: microsOrNil(c.LookedAt),
		LookDueAt: microsOrNil(c.LookDueAt), Deleted: microsOrNil(c.DeletedAt),
		Created: micros(c.CreatedAt), Updated: micros(c.UpdatedAt), Version: version}
}

func (r connectionRow) domain() domain.Connection {
	return domain.Connection{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Shared: r.Shared, Name: r.Name,
		Transport: r.Transport, URL: r.URL, Command: r.Command, Args: r.Args.value,
		HeaderNames: r.HeaderNames.value, EnvNames: r.EnvNames.value, Sealed: r.Sealed, Revision: r.Revision,
		Look: r.Look.value, Health: r.Health, HealthWhy: r.HealthWhy, LookedAt: momentOrNil(r.LookedAt),
		LookDueAt: momentOrNil(r.LookDueAt), DeletedAt: momentOrNil(r.Deleted),
		CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}

type hostToolRow struct {
	ID             domain.HostToolID     `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	Name           string
	Description    string
	Schema         string
	Endpoint       string
	Sealed         []byte
	Approval       bool
	Tags           document[[]string]
	RepeatSafe     bool
	Revision       int64
	Deleted        *int64 `gorm:"column:deleted_at"`
	Created        int64  `gorm:"column:created_at;<-:create"`
	Updated        int64  `gorm:"column:updated_at"`
	Version        int64
}

func (hostToolRow) TableName() string { return "host_tools" }

func fromHostTool(h *domain.HostTool, version int64) hostToolRow {
	return hostToolRow{ID: h.ID, OrganizationID: h.Organization, Name: h.Name, Description: h.Description,
		Schema: string(h.Schema), Endpoint: h.Endpoint, Sealed: h.Sealed, Approval: h.Approval, Tags: documentOf(h.Tags),
		RepeatSafe: h.RepeatSafe, Revision: h.Revision, Deleted: microsOrNil(h.DeletedAt),
		Created: micros(h.CreatedAt), Updated: micros(h.UpdatedAt), Version: version}
}

func (r hostToolRow) domain() domain.HostTool {
	return domain.HostTool{ID: r.ID, Organization: r.OrganizationID, Name: r.Name, Description: r.Description,
		Schema: raw(r.Schema), Endpoint: r.Endpoint, Sealed: r.Sealed, Approval: r.Approval, Tags: r.Tags.value,
		RepeatSafe: r.RepeatSafe, Revision: r.Revision, DeletedAt: momentOrNil(r.Deleted),
		CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}
