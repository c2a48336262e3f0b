package repository

import (
	"context"
	"time"

	"gorm.io/gorm"

	"openbot/domain"
)

// Webhook gives one webhook, deleted or not.
func (s *Store) Webhook(ctx context.Context, id domain.WebhookID) (domain.Webhook, error) {
	return one(ctx, s, "Webhook", webhookRow.domain, byID(id))
}

// Webhooks lists a Member's webhooks that are not deleted, and with whole those of the
// organization, newest first. Each half is read from an index of its own and cut to the
// page before they are put together.
func (s *Store) Webhooks(ctx context.Context, org domain.OrganizationID, member domain.MemberID, whole bool, page domain.Page) ([]domain.Webhook, error) {
	below, at := before(page)
	limit := atLeastOne(page.Limit)
	half := func(where string) string {
		return "SELECT * FROM (SELECT * FROM webhooks WHERE deleted_at IS NULL AND " + where + below + " ORDER BY id DESC LIMIT ?) half"
	}
	query, args := half("NOT whole AND member_id = ?"), append(append([]any{member}, at...), limit)
	if whole {
		query += " UNION ALL " + half("whole AND organization_id = ?") + " ORDER BY id DESC LIMIT ?"
		args = append(append(append(args, org), at...), limit, limit)
	}
	return list(ctx, s, "list webhooks", webhookRow.domain, func(db *gorm.DB) *gorm.DB { return db.Raw(query, args...) })
}

// Delivery gives one delivery.
func (s *Store) Delivery(ctx context.Context, id domain.DeliveryID) (domain.Delivery, error) {
	return one(ctx, s, "Delivery", deliveryRow.domain, byID(id))
}

// Deliveries lists those of a webhook, newest first; of one status when it is named.
func (s *Store) Deliveries(ctx context.Context, webhook domain.WebhookID, status domain.DeliveryStatus, page domain.Page) ([]domain.Delivery, error) {
	return s.deliveriesOf(ctx, "webhook_id = ? AND webhook_id <> ''", string(webhook), status, page)
}

// ChannelDeliveries lists those of a Channel, newest first; of one status when it is
// named.
func (s *Store) ChannelDeliveries(ctx context.Context, channel domain.ChannelID, status domain.DeliveryStatus, page domain.Page) ([]domain.Delivery, error) {
	return s.deliveriesOf(ctx, "channel_id = ? AND channel_id <> ''", string(channel), status, page)
}

func (s *Store) deliveriesOf(ctx context.Context, owner, id string, status domain.DeliveryStatus, page domain.Page) ([]domain.Delivery, error) {
	return list(ctx, s, "list deliveries", deliveryRow.domain, func(db *gorm.DB) *gorm.DB {
		db = db.Where(owner, id)
		if status != "" {
			db = db.Where("status = ?", clean(string(status)))
		}
		return paged(db, page)
	})
}

// ForgetDeliveries deletes up to limit deliveries of one status that ended before a time.
// Several may run at once: each skips what another holds.
func (s *Store) ForgetDeliveries(ctx context.Context, status domain.DeliveryStatus, before time.Time, limit int) (int, error) {
	skip := ""
	if s.postgres {
		skip = " FOR UPDATE SKIP LOCKED"
	}
	done := s.write(ctx).Exec("DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE status = ? AND ended_at < ? ORDER BY ended_at LIMIT ?"+skip+")",
		clean(string(status)), micros(before), atLeastOne(limit))
	return int(done.RowsAffected), s.wrap(ctx, "forget deliveries", done.Error)
}
