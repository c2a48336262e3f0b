package repository

import (
	"context"

	"gorm.io/gorm"

	"openbot/domain"
)

// Bot gives one Bot, archived or not.
func (s *Store) Bot(ctx context.Context, id domain.BotID) (domain.Bot, error) {
	return one(ctx, s, "Bot", botRow.domain, byID(id))
}

// Bots lists those that a Member works with: its own and the shared ones, of every
// kind, archived ones included.
func (s *Store) Bots(ctx context.Context, org domain.OrganizationID, member domain.MemberID, page domain.Page) ([]domain.Bot, error) {
	query, args := ownAndShared("bots", "", org, member, page)
	return list(ctx, s, "list Bots", botRow.domain, func(db *gorm.DB) *gorm.DB { return db.Raw(query, args...) })
}

// ownAndShared lists a Member's own rows and the shared ones of its organization,
// newest first. Each half is read from an index of its own and cut to the page
// before they are put together; with OR the whole of both would be sorted.
func ownAndShared(table, and string, org domain.OrganizationID, member domain.MemberID, page domain.Page) (string, []any) {
	below, args := before(page)
	limit := atLeastOne(page.Limit)
	half := func(where string) string {
		return "SELECT * FROM (SELECT * FROM " + table + " WHERE " + where + and + below + " ORDER BY id DESC LIMIT ?) half"
	}
	query := half("member_id = ? AND organization_id = ? AND NOT shared") + " UNION ALL " +
		half("organization_id = ? AND shared") + " ORDER BY id DESC LIMIT ?"
	all := append([]any{member, org}, args...)
	all = append(all, limit, org)
	all = append(all, args...)
	return query, append(all, limit, limit)
}

// Connection gives one Connection, deleted or not.
func (s *Store) Connection(ctx context.Context, id domain.ConnectionID) (domain.Connection, error) {
	return one(ctx, s, "Connection", connectionRow.domain, byID(id))
}

// Connections lists those that a Member can see and that are not deleted.
func (s *Store) Connections(ctx context.Context, org domain.OrganizationID, member domain.MemberID, page domain.Page) ([]domain.Connection, error) {
	query, args := ownAndShared("connections", " AND deleted_at IS NULL", org, member, page)
	return list(ctx, s, "list Connections", connectionRow.domain, func(db *gorm.DB) *gorm.DB { return db.Raw(query, args...) })
}

// HostTool gives one tool of the host, deleted or not.
func (s *Store) HostTool(ctx context.Context, id domain.HostToolID) (domain.HostTool, error) {
	return one(ctx, s, "HostTool", hostToolRow.domain, byID(id))
}

// HostTools lists the tools of the host that are not deleted.
func (s *Store) HostTools(ctx context.Context, org domain.OrganizationID, page domain.Page) ([]domain.HostTool, error) {
	return list(ctx, s, "list host tools", hostToolRow.domain, func(db *gorm.DB) *gorm.DB {
		return paged(db.Where("organization_id = ? AND deleted_at IS NULL", org), page)
	})
}

// Helpers gives the session Bots of a Chat that are not archived.
func (s *Store) Helpers(ctx context.Context, chat domain.ChatID) ([]domain.Bot, error) {
	return list(ctx, s, "list the helpers of a Chat", botRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where("chat_id = ? AND chat_id <> '' AND kind = 'session' AND archived_at IS NULL", chat).Order("id")
	})
}
