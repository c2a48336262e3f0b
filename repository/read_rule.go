package repository

import (
	"context"
	"time"

	"gorm.io/gorm"

	"openbot/domain"
)

// rulesQuery gives the Rules in force in work of a Bot for a Member: its own, and
// those of the organization. Each half is read from an index of its own.
const rulesQuery = `SELECT * FROM rules WHERE bot_id = ? AND member_id = ? AND deleted_at IS NULL AND enabled
	UNION ALL SELECT * FROM rules WHERE organization_id = ? AND deleted_at IS NULL AND bot_id = '' AND enabled ORDER BY id`

func askRules(into *[]domain.Rule, org domain.OrganizationID, bot domain.BotID, member domain.MemberID) question {
	return askList("read the Rules", into, ruleRow.domain, func(db *gorm.DB) *gorm.DB {
		return said(db, rulesQuery, bot, member, org)
	})
}

// RulesFor gives the Rules in force in work of a Bot for a Member.
func (s *Store) RulesFor(ctx context.Context, org domain.OrganizationID, bot domain.BotID, member domain.MemberID) ([]domain.Rule, error) {
	var rules []domain.Rule
	err := s.together(ctx, func(ask ask) error { return ask(askRules(&rules, org, bot, member)) })
	return rules, err
}

// Rule gives one Rule, deleted or not.
func (s *Store) Rule(ctx context.Context, id domain.RuleID) (domain.Rule, error) {
	return one(ctx, s, "Rule", ruleRow.domain, byID(id))
}

// Rules lists a Member's Rules and those of the organization that are not deleted,
// newest first; those of one Bot when it is named. Each half is read from an index of
// its own and cut to the page before they are put together.
func (s *Store) Rules(ctx context.Context, org domain.OrganizationID, member domain.MemberID, bot domain.BotID, page domain.Page) ([]domain.Rule, error) {
	below, at := before(page)
	limit := atLeastOne(page.Limit)
	half := func(where string) string {
		return "SELECT * FROM (SELECT * FROM rules WHERE deleted_at IS NULL AND " + where + below + " ORDER BY id DESC LIMIT ?) half"
	}
	own, args := half("bot_id <> '' AND member_id = ?"), []any{member}
	if bot != "" {
		own, args = half("bot_id = ? AND member_id = ?"), []any{bot, member}
	}
	args = append(append(args, at...), limit)
	query := own
	if bot == "" {
		query += " UNION ALL " + half("bot_id = '' AND organization_id = ?")
		args = append(append(append(args, org), at...), limit)
	}
	query += " ORDER BY id DESC LIMIT ?"
	args = append(args, limit)
	return list(ctx, s, "list Rules", ruleRow.domain, func(db *gorm.DB) *gorm.DB { return db.Raw(query, args...) })
}

// Grant gives one Grant, revoked or not.
func (s *Store) Grant(ctx context.Context, id domain.GrantID) (domain.Grant, error) {
	return one(ctx, s, "Grant", grantRow.domain, byID(id))
}

// Grants lists the Grants that fit the filter, newest first.
func (s *Store) Grants(ctx context.Context, org domain.OrganizationID, filter domain.GrantFilter, page domain.Page) ([]domain.Grant, error) {
	return list(ctx, s, "list Grants", grantRow.domain, func(db *gorm.DB) *gorm.DB {
		db = db.Where("organization_id = ?", org)
		if filter.Member != "" {
			db = db.Where("member_id = ?", filter.Member)
		}
		if filter.Bot != "" {
			db = db.Where("bot_id = ?", filter.Bot)
		}
		if filter.Revoked {
			db = db.Where("revoked_at IS NOT NULL")
		} else {
			db = db.Where("revoked_at IS NULL")
		}
		return paged(db, page)
	})
}

// below walks down from a Grant to those that were given on its strength. UNION
// drops what it has seen.
const belowQuery = `WITH RECURSIVE below (id) AS (
	SELECT id FROM grants WHERE parent_id = ? AND parent_id <> ''
	UNION
	SELECT g.id FROM below JOIN grants g ON g.parent_id = below.id AND g.parent_id <> ''
) SELECT grants.* FROM below JOIN grants ON grants.id = below.id WHERE grants.revoked_at IS NULL ORDER BY grants.id`

// GrantsBelow gives the Grants in force that rest on a Grant, however far down.
func (s *Store) GrantsBelow(ctx context.Context, id domain.GrantID) ([]domain.Grant, error) {
	return list(ctx, s, "read the Grants below", grantRow.domain, func(db *gorm.DB) *gorm.DB { return db.Raw(belowQuery, id) })
}

// GrantsOf gives the Grants in force of a Bot in work for a Member, for one
// capability.
func (s *Store) GrantsOf(ctx context.Context, bot domain.BotID, member domain.MemberID, c domain.Capability) ([]domain.Grant, error) {
	return list(ctx, s, "read the Grants", grantRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where("bot_id = ? AND member_id = ? AND action = ? AND target = ? AND revoked_at IS NULL",
			bot, member, clean(c.Action), clean(c.Target)).Order("id")
	})
}

// Preview gives one preview of a Rule.
func (s *Store) Preview(ctx context.Context, id domain.PreviewID) (domain.Preview, error) {
	return one(ctx, s, "Preview", previewRow.domain, byID(id))
}

// ForgetPreviews deletes up to limit previews that were made before a time.
func (s *Store) ForgetPreviews(ctx context.Context, before time.Time, limit int) (int, error) {
	done := s.write(ctx).Exec("DELETE FROM previews WHERE id IN (SELECT id FROM previews WHERE created_at < ? ORDER BY created_at LIMIT ?)",
		micros(before), atLeastOne(limit))
	return int(done.RowsAffected), s.wrap(ctx, "forget previews", done.Error)
}

// Beat notes that a server runs. When none did for longer than gap, the Requests that
// run when nobody answers get the lost time back: their end moves ahead by it, and so
// does their version. Of many callers at once one counts.
func (s *Store) Beat(ctx context.Context, now time.Time, gap time.Duration) error {
	err := s.write(ctx).Transaction(func(tx *gorm.DB) error {
		var last int64
		if err := tx.Raw("SELECT beat_at FROM heartbeat").Scan(&last).Error; err != nil {
			return err
		}
		at := micros(now)
		if at <= last {
			return nil
		}
		done := tx.Exec("UPDATE heartbeat SET beat_at = ? WHERE beat_at = ?", at, last)
		if done.Error != nil || done.RowsAffected != 1 || last == 0 || at-last <= gap.Microseconds() {
			return done.Error
		}
		return tx.Exec(`UPDATE requests SET version = version + 1,
			expires_at = expires_at + (? - CASE WHEN created_at > ? THEN created_at ELSE ? END)
			WHERE status = 'pending' AND on_expire = 'allow' AND created_at < ?`, at, last, last, at).Error
	})
	return s.wrap(ctx, "note that a server runs", err)
}
