package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"openbot/domain"
)

// Positions of audit entries are made as those of events are, with more room: one
// commit may revoke many Grants. What is chained must lie below the oldest open
// transaction, so that nothing can come in before it.
const (
	auditBits          = 16
	maxAudit           = 1 << auditBits
	auditPositionOfNew = "((pg_current_xact_id()::text::bigint + (SELECT value FROM event_offset)) << 16) + ?"
	auditPositionBound = ` AND audit_entries."position" < (` + oldestOpen + ` << 16)`
)

const auditColumns = `audit_entries.organization_id, audit_entries."position", kind, subject, actor_tag, actor_id, token_id, address, data, created_at,
	COALESCE(audit_links.number, 0) AS number, COALESCE(audit_links.previous, '') AS previous, COALESCE(audit_links.hash, '') AS hash`

const auditTables = ` FROM audit_entries LEFT JOIN audit_links ON audit_links.organization_id = audit_entries.organization_id
	AND audit_links."position" = audit_entries."position"`

// insertAudit adds entries; the database gives the positions.
func (s *Store) insertAudit(entries []domain.AuditEntry) ([]written, error) {
	if len(entries) > maxAudit {
		return nil, domain.Errorf(domain.CodeInternal, "CommitAudit", "A commit leaves %d entries in the audit log; at most %d fit.", len(entries), maxAudit)
	}
	columns, places := "", "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
	if s.postgres {
		columns, places = `, "position"`, "(?, ?, ?, ?, ?, ?, ?, ?, ?, "+auditPositionOfNew+")"
	}
	var writes []written
	for start := 0; start < len(entries); start += insertBatch {
		batch := entries[start:min(start+insertBatch, len(entries))]
		args := make([]any, 0, 10*len(batch))
		for i, e := range batch {
			args = append(args, clean(string(e.Organization)), clean(e.Kind), clean(e.Subject), clean(e.Actor.Tag), clean(idOf(e.Actor)),
				clean(string(e.Token)), clean(e.Address), clean(string(e.Data)), micros(e.At))
			if s.postgres {
				args = append(args, int64(start+i))
			}
		}
		query := fmt.Sprintf("INSERT INTO audit_entries (organization_id, kind, subject, actor_tag, actor_id, token_id, address, data, created_at%s) VALUES %s",
			columns, strings.Repeat(places+", ", len(batch)-1)+places)
		writes = append(writes, written{write: func(tx *gorm.DB) *gorm.DB { return done(tx, query, args...) }})
	}
	return writes, nil
}

// audited builds the condition of a filter; it begins with WHERE.
func audited(org domain.OrganizationID, f domain.AuditFilter) (string, []any) {
	where, args := " WHERE audit_entries.organization_id = ?", []any{org}
	add := func(condition string, value any) {
		where += " AND " + condition
		args = append(args, value)
	}
	if f.Kind != "" {
		add("kind = ?", clean(f.Kind))
	}
	if f.Subject != "" {
		add("subject = ?", clean(f.Subject))
	}
	switch {
	case f.Actor == "":
	case slices.Contains(domain.ActorTags(), f.Actor):
		add("actor_tag = ?", f.Actor)
	default:
		add("actor_id = ?", clean(f.Actor))
	}
	if !f.From.IsZero() {
		add("created_at >= ?", micros(f.From))
	}
	if !f.To.IsZero() {
		add("created_at < ?", micros(f.To))
	}
	return where, args
}

// Audit lists an organization's entries below a position, newest first; 0 begins at
// the newest.
func (s *Store) Audit(ctx context.Context, org domain.OrganizationID, f domain.AuditFilter, before int64, limit int) ([]domain.AuditEntry, error) {
	where, args := audited(org, f)
	if before > 0 {
		where += ` AND audit_entries."position" < ?`
		args = append(args, before)
	}
	query := "SELECT " + auditColumns + auditTables + where + ` ORDER BY audit_entries."position" DESC LIMIT ?`
	return list(ctx, s, "read the audit log", auditRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Raw(query, append(args, atLeastOne(limit))...)
	})
}

// AuditAfter gives an organization's entries after a position, in order, never one
// whose place an unfinished transaction could still come before.
func (s *Store) AuditAfter(ctx context.Context, org domain.OrganizationID, f domain.AuditFilter, after int64, limit int) ([]domain.AuditEntry, error) {
	where, args := audited(org, f)
	where += ` AND audit_entries."position" > ?`
	if s.postgres {
		where += auditPositionBound
	}
	query := "SELECT " + auditColumns + auditTables + where + ` ORDER BY audit_entries."position" LIMIT ?`
	return list(ctx, s, "read the audit log", auditRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Raw(query, append(args, after, atLeastOne(limit))...)
	})
}

// AuditLinks gives the links of an organization's chain after a position, in order.
func (s *Store) AuditLinks(ctx context.Context, org domain.OrganizationID, after int64, limit int) ([]domain.AuditLink, error) {
	return list(ctx, s, "read the chain of the audit log", linkRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where(`organization_id = ? AND "position" > ?`, org, after).Order(`"position"`).Limit(atLeastOne(limit))
	})
}

// AuditHead gives the end of an organization's chain; not_found when there is none.
func (s *Store) AuditHead(ctx context.Context, org domain.OrganizationID) (domain.AuditHead, error) {
	return one(ctx, s, "AuditHead", headRow.domain, func(db *gorm.DB) *gorm.DB { return db.Where("id = ?", org) })
}

// Unchained lists organizations with entries after the end of their chain, by ID after
// a given one.
func (s *Store) Unchained(ctx context.Context, after domain.OrganizationID, limit int) ([]domain.OrganizationID, error) {
	return s.organizations(ctx, "find what is not chained", `SELECT organizations.id FROM organizations LEFT JOIN audit_heads ON audit_heads.id = organizations.id
		WHERE organizations.id > ? AND EXISTS (SELECT 1 FROM audit_entries WHERE audit_entries.organization_id = organizations.id
			AND audit_entries."position" > COALESCE(audit_heads."position", 0)) ORDER BY organizations.id LIMIT ?`, after, limit)
}

// Organizations lists every organization, and whatever else has an audit log, by ID
// after a given one.
func (s *Store) Organizations(ctx context.Context, after domain.OrganizationID, limit int) ([]domain.OrganizationID, error) {
	return s.organizations(ctx, "list the organizations", `SELECT id FROM (SELECT id FROM organizations UNION SELECT id FROM audit_heads) AS everyone
		WHERE id > ? ORDER BY id LIMIT ?`, after, limit)
}

func (s *Store) organizations(ctx context.Context, attempt, query string, after domain.OrganizationID, limit int) ([]domain.OrganizationID, error) {
	var ids []domain.OrganizationID
	err := s.read(ctx).Raw(query, after, atLeastOne(limit)).Scan(&ids).Error
	return ids, s.wrap(ctx, attempt, err)
}

// SigningKeys gives every key that signs or signed, oldest first.
func (s *Store) SigningKeys(ctx context.Context) ([]domain.SigningKey, error) {
	return list(ctx, s, "read the signing keys", keyRow.domain, func(db *gorm.DB) *gorm.DB { return db.Order("number").Limit(1000) })
}
