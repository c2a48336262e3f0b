package repository

import (
	"context"
	"strings"

	"gorm.io/gorm"

	"openbot/domain"
)

// Request gives one Request.
func (s *Store) Request(ctx context.Context, id domain.RequestID) (domain.Request, error) {
	return one(ctx, s, "Request", requestRow.domain, byID(id))
}

// Requests lists the Requests of an organization that fit the filter, newest first.
func (s *Store) Requests(ctx context.Context, org domain.OrganizationID, filter domain.RequestFilter, page domain.Page) ([]domain.Request, error) {
	return list(ctx, s, "list Requests", requestRow.domain, func(db *gorm.DB) *gorm.DB {
		return pagedRequests(db, org, filter, page)
	})
}

// pagedRequests narrows a list of Requests to a page. Those that an approver may answer
// are its own and those that were escalated to it: each half is read from an index of its
// own and cut to the page before they are put together.
func pagedRequests(db *gorm.DB, org domain.OrganizationID, filter domain.RequestFilter, page domain.Page) *gorm.DB {
	if filter.Approver == "" {
		return paged(filterRequests(db, org, filter), page)
	}
	own, passed := answerable(db, org, filter, func(half *gorm.DB) *gorm.DB { return paged(half, page) })
	return db.Where("requests.id IN (SELECT id FROM (?) AS own UNION ALL SELECT id FROM (?) AS passed)", own, passed).
		Order("id DESC").Limit(atLeastOne(page.Limit))
}

// answerable gives the IDs of the Requests that wait for an approver, and of those that were
// escalated to it.
func answerable(db *gorm.DB, org domain.OrganizationID, filter domain.RequestFilter, cut func(*gorm.DB) *gorm.DB) (own, passed *gorm.DB) {
	approver := filter.Approver
	filter.Approver = ""
	half := func(who string) *gorm.DB {
		ids := db.Session(&gorm.Session{NewDB: true}).Table("requests").Select("id").Where(who, approver)
		return cut(filterRequests(ids, org, filter))
	}
	return half("approver_user = ?"), half("second_id = ? AND second_id <> ''")
}

func filterRequests(db *gorm.DB, org domain.OrganizationID, filter domain.RequestFilter) *gorm.DB {
	db = db.Where("organization_id = ?", org)
	if filter.Approver != "" {
		db = db.Where("approver_user = ?", filter.Approver)
	}
	if filter.Member != "" {
		db = db.Where("member_id = ?", filter.Member)
	}
	if filter.Decided {
		db = db.Where("status IN ('allowed', 'denied')")
	}
	if filter.Known {
		db = db.Where("unknown = ''")
	}
	switch filter.Status {
	case "":
	case domain.RequestPending:
		// Written out, since a partial index is used only for a condition that is known
		// when the statement is planned.
		db = db.Where("status = 'pending'")
	default:
		db = db.Where("status = ?", clean(string(filter.Status)))
	}
	if filter.Bot != "" {
		db = db.Where("bot_id = ?", filter.Bot)
	}
	if filter.Chat != "" {
		db = db.Where("chat_id = ?", filter.Chat)
	}
	if filter.Action != "" {
		db = db.Where("action = ?", clean(filter.Action))
	}
	if filter.Target != "" {
		db = db.Where("target = ?", clean(filter.Target))
	}
	if filter.Search != "" {
		like := "%" + likeEscape.Replace(strings.ToLower(clean(filter.Search))) + "%"
		if len(filter.Bots) > 0 {
			db = db.Where(`(LOWER(target) LIKE ? ESCAPE '\' OR bot_id IN ?)`, like, filter.Bots)
		} else {
			db = db.Where(`LOWER(target) LIKE ? ESCAPE '\'`, like)
		}
	}
	return db
}

// likeEscape takes the meaning from what LIKE reads as a pattern.
var likeEscape = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// PendingLike gives pending Requests that a Grant may settle: of its Bot, Member and
// capability, and of its Chat when it has one; by ID after a given one.
func (s *Store) PendingLike(ctx context.Context, grant domain.Grant, after domain.RequestID, limit int) ([]domain.RequestID, error) {
	return s.pendingIDs(ctx, after, limit, func(db *gorm.DB) *gorm.DB {
		db = db.Where("bot_id = ? AND member_id = ? AND action = ? AND target = ?",
			grant.Bot, grant.Member, clean(grant.Capability.Action), clean(grant.Capability.Target))
		if grant.Chat != "" {
			db = db.Where("chat_id = ?", grant.Chat)
		}
		return db
	})
}

// PendingOfMember gives a Member's pending Requests by ID after a given one.
func (s *Store) PendingOfMember(ctx context.Context, member domain.MemberID, after domain.RequestID, limit int) ([]domain.RequestID, error) {
	return s.pendingIDs(ctx, after, limit, func(db *gorm.DB) *gorm.DB { return db.Where("member_id = ?", member) })
}

func (s *Store) pendingIDs(ctx context.Context, after domain.RequestID, limit int, narrow func(*gorm.DB) *gorm.DB) ([]domain.RequestID, error) {
	var ids []domain.RequestID
	err := narrow(s.read(ctx).Model(&requestRow{}).Where("status = 'pending' AND id > ?", after)).
		Order("id").Limit(atLeastOne(limit)).Pluck("id", &ids).Error
	return ids, s.wrap(ctx, "list pending Requests", err)
}
