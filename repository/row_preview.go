package repository

import "openbot/domain"

// previewRow is worked on until it has no due time, and deleted some time later.
type previewRow struct {
	ID             domain.PreviewID      `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	BotID          domain.BotID          `gorm:"<-:create"`
	Text           string                `gorm:"<-:create"`
	Effect         string                `gorm:"<-:create"`
	Number         int                   `gorm:"<-:create"`
	Results        document[[]domain.PreviewResult]
	Tries          int
	DueAt          *int64
	Created        int64 `gorm:"column:created_at;<-:create"`
	Version        int64
}

func (previewRow) TableName() string { return "previews" }

func fromPreview(p *domain.Preview, version int64) previewRow {
	return previewRow{ID: p.ID, OrganizationID: p.Organization, MemberID: p.Member, BotID: p.Bot, Text: p.Text, Effect: p.Effect,
		Number: p.Number, Results: documentOf(p.Results), Tries: p.Tries, DueAt: microsOrNil(p.DueAt),
		Created: micros(p.CreatedAt), Version: version}
}

func (r previewRow) domain() domain.Preview {
	return domain.Preview{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Bot: r.BotID, Text: r.Text, Effect: r.Effect,
		Number: r.Number, Results: r.Results.value, Tries: r.Tries, DueAt: momentOrNil(r.DueAt),
		CreatedAt: moment(r.Created), Version: r.Version}
}
