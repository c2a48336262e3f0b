package repository

import (
	"context"

	"gorm.io/gorm"

	"openbot/domain"
)

// Channel gives one Channel, deleted or not.
func (s *Store) Channel(ctx context.Context, id domain.ChannelID) (domain.Channel, error) {
	return one(ctx, s, "Channel", channelRow.domain, byID(id))
}

// Channels lists a Member's Channels that are not deleted, and with all those of the
// organization, newest first.
func (s *Store) Channels(ctx context.Context, org domain.OrganizationID, member domain.MemberID, all bool, page domain.Page) ([]domain.Channel, error) {
	return list(ctx, s, "list Channels", channelRow.domain, func(db *gorm.DB) *gorm.DB {
		db = db.Where("organization_id = ? AND deleted_at IS NULL", org)
		if !all {
			db = db.Where("member_id = ?", member)
		}
		return paged(db, page)
	})
}

// ChannelChat gives the Chat of an outside chat that is not deleted; not_found when there
// is none.
func (s *Store) ChannelChat(ctx context.Context, channel domain.ChannelID, outside string) (domain.Chat, error) {
	return one(ctx, s, "Chat", chatRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where("channel_id = ? AND channel_id <> '' AND outside = ? AND deleted_at IS NULL", channel, clean(outside))
	})
}

// PendingVia gives pending Requests of work whose input came in by a token of this Member
// in the name of others, by ID after a given one. It looks at every pending Request of the
// organization: it is asked when a token is revoked or a Member disabled.
func (s *Store) PendingVia(ctx context.Context, org domain.OrganizationID, member domain.MemberID, after domain.RequestID, limit int) ([]domain.RequestID, error) {
	var ids []domain.RequestID
	err := s.read(ctx).Raw(`SELECT r.id FROM requests r WHERE r.organization_id = ? AND r.status = 'pending' AND r.id > ?
		AND (SELECT t.authority FROM turns t WHERE t.id = r.turn_id) LIKE ? ORDER BY r.id LIMIT ?`, org, after, `%"via":"`+clean(string(member))+`"%`, atLeastOne(limit)).Scan(&ids).Error
	return ids, s.wrap(ctx, "list pending Requests of others", err)
}
