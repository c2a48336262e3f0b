package repository

import "openbot/domain"

type webhookRow struct {
	ID             domain.WebhookID      `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	Whole          bool
	Format         domain.HookFormat `gorm:"<-:create"`
	URL            string
	Events         document[[]string]
	Enabled        bool
	DisabledWhy    string
	Sealed         []byte
	Deleted        *int64 `gorm:"column:deleted_at"`
	Created        int64  `gorm:"column:created_at;<-:create"`
	Updated        int64  `gorm:"column:updated_at"`
	Version        int64
}

func (webhookRow) TableName() string { return "webhooks" }

func fromWebhook(w *domain.Webhook, version int64) webhookRow {
	return webhookRow{ID: w.ID, OrganizationID: w.Organization, MemberID: w.Member, Whole: w.Whole, Format: w.Format, URL: w.URL,
		Events: documentOf(w.Events), Enabled: w.Enabled, DisabledWhy: w.DisabledWhy, Sealed: w.Sealed,
		Deleted: microsOrNil(w.DeletedAt), Created: micros(w.CreatedAt), Updated: micros(w.UpdatedAt), Version: version}
}

func (r webhookRow) domain() domain.Webhook {
	return domain.Webhook{ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Whole: r.Whole, Format: r.Format, URL: r.URL,
		Events: r.Events.value, Enabled: r.Enabled, DisabledWhy: r.DisabledWhy, Sealed: r.Sealed,
		DeletedAt: momentOrNil(r.Deleted), CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}

// deliveryRow is deleted some time after its end.
type deliveryRow struct {
	ID             domain.DeliveryID     `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	WebhookID      domain.WebhookID      `gorm:"<-:create"`
	ChannelID      domain.ChannelID      `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	Event          string                `gorm:"<-:create"`
	Payload        string                `gorm:"<-:create"`
	Status         domain.DeliveryStatus
	Tries          int
	Outcome        string
	DueAt          *int64
	EndedAt        *int64
	Created        int64 `gorm:"column:created_at;<-:create"`
	Updated        int64 `gorm:"column:updated_at"`
	Version        int64
}

func (deliveryRow) TableName() string { return "deliveries" }

func fromDelivery(d *domain.Delivery, version int64) deliveryRow {
	return deliveryRow{ID: d.ID, OrganizationID: d.Organization, WebhookID: d.Webhook, ChannelID: d.Channel, MemberID: d.Member, Event: d.Event,
		Payload: string(d.Payload), Status: d.Status, Tries: d.Tries, Outcome: d.Outcome, DueAt: microsOrNil(d.DueAt),
		EndedAt: microsOrNil(d.EndedAt), Created: micros(d.CreatedAt), Updated: micros(d.UpdatedAt), Version: version}
}

func (r deliveryRow) domain() domain.Delivery {
	return domain.Delivery{ID: r.ID, Organization: r.OrganizationID, Webhook: r.WebhookID, Channel: r.ChannelID, Member: r.MemberID, Event: r.Event,
		Payload: raw(r.Payload), Status: r.Status, Tries: r.Tries, Outcome: r.Outcome, DueAt: momentOrNil(r.DueAt),
		EndedAt: momentOrNil(r.EndedAt), CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}
