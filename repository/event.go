package repository

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"openbot/domain"
)

// Positions of events.
//
// A reader who has seen position N must never miss one below it. A counter does not
// give that: of two transactions the one with the lower number may commit last. On
// PostgreSQL a position is therefore the ID of the transaction, 12 bits to the left,
// plus the event's index in its commit; and a reader sees only events of
// transactions below the oldest one that was still open in its own snapshot. Every
// transaction below that one has ended, so nothing can come in under what is seen.
// An open transaction of this database that has written holds readers up until it ends;
// it never makes them miss. One of another database cannot write here and holds nobody up:
// of any open transaction but those that surely are elsewhere the reader takes that it is
// of this database.
//
// On SQLite there is one writer, so the numbers of rows rise in the order of the
// commits.
const (
	positionBits  = 12
	maxEvents     = 1 << positionBits
	positionOfNew = "((pg_current_xact_id()::text::bigint + (SELECT value FROM event_offset)) << 12) + ?"
	positionBound = ` AND "position" < (` + oldestOpen + ` << 12)`
	// oldestOpen is the oldest transaction that may still write here, and the first of
	// those to come when there is none. Every role may see who holds which transaction.
	// A transaction may hold one such statement only: what PostgreSQL says about its
	// processes stays as it was first read, and might then be older than the snapshot.
	oldestOpen = `(LEAST(pg_current_xact_id_if_assigned(), COALESCE((
		SELECT open.id FROM pg_snapshot_xip(pg_current_snapshot()) AS open(id)
		WHERE NOT EXISTS (SELECT 1 FROM pg_stat_get_activity(NULL) AS elsewhere WHERE elsewhere.backend_xid = open.id::xid
			AND elsewhere.datid <> (SELECT oid FROM pg_database WHERE datname = current_database()))
		ORDER BY open.id LIMIT 1), pg_snapshot_xmax(pg_current_snapshot())))::text::bigint + (SELECT value FROM event_offset))`
)

type eventRow struct {
	OrganizationID domain.OrganizationID
	MemberID       domain.MemberID
	ChatID         domain.ChatID
	Sequence       int64
	Position       int64
	Kind           string
	Subject        string
	Data           string
	Created        int64 `gorm:"column:created_at"`
}

func (eventRow) TableName() string { return "events" }

func (r eventRow) domain() domain.Event {
	return domain.Event{Organization: r.OrganizationID, Member: r.MemberID, Chat: r.ChatID, Sequence: r.Sequence,
		Position: r.Position, Kind: r.Kind, Subject: r.Subject, Data: raw(r.Data), At: moment(r.Created)}
}

// insertEvents adds events; the database gives the positions.
func (s *Store) insertEvents(events []domain.Event) ([]written, error) {
	if len(events) > maxEvents {
		return nil, domain.Errorf(domain.CodeInternal, "CommitEvents", "A commit holds %d events; at most %d fit.", len(events), maxEvents)
	}
	columns, places := "", "(?, ?, ?, ?, ?, ?, ?, ?)"
	if s.postgres {
		columns, places = `, "position"`, "(?, ?, ?, ?, ?, ?, ?, ?, "+positionOfNew+")"
	}
	var writes []written
	for start := 0; start < len(events); start += insertBatch {
		batch := events[start:min(start+insertBatch, len(events))]
		args := make([]any, 0, 9*len(batch))
		for i, e := range batch {
			args = append(args, clean(string(e.Organization)), clean(string(e.Member)), clean(string(e.Chat)), e.Sequence,
				clean(e.Kind), clean(e.Subject), clean(string(e.Data)), micros(e.At))
			if s.postgres {
				args = append(args, int64(start+i))
			}
		}
		query := fmt.Sprintf("INSERT INTO events (organization_id, member_id, chat_id, sequence, kind, subject, data, created_at%s) VALUES %s",
			columns, strings.Repeat(places+", ", len(batch)-1)+places)
		writes = append(writes, written{write: func(tx *gorm.DB) *gorm.DB { return done(tx, query, args...) }})
	}
	return writes, nil
}

func (s *Store) edge() string {
	if s.postgres {
		return positionBound
	}
	return ""
}

// ChatEvents gives a Chat's events after a sequence, in order. The version of the
// Chat makes its commits follow each other, so the sequence alone is enough here.
func (s *Store) ChatEvents(ctx context.Context, chat domain.ChatID, after int64, limit int) ([]domain.Event, error) {
	return list(ctx, s, "read the events of a Chat", eventRow.domain, func(db *gorm.DB) *gorm.DB {
		return said(db, "SELECT * FROM events WHERE chat_id = ? AND sequence > ? ORDER BY sequence LIMIT ?", chat, after, atLeastOne(limit))
	})
}

// MemberEvents gives a Member's events after a position, in order, never one whose
// place an unfinished transaction could still come before.
func (s *Store) MemberEvents(ctx context.Context, member domain.MemberID, after int64, limit int) ([]domain.Event, error) {
	return list(ctx, s, "read the events of a Member", eventRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where(`member_id = ? AND "position" > ?`+s.edge(), member, after).Order(`"position"`).Limit(atLeastOne(limit))
	})
}

// LastPosition gives the newest position that MemberEvents would give; 0 for none.
func (s *Store) LastPosition(ctx context.Context, member domain.MemberID) (int64, error) {
	var position int64
	err := s.read(ctx).Raw(`SELECT "position" FROM events WHERE member_id = ?`+s.edge()+` ORDER BY "position" DESC LIMIT 1`, member).
		Scan(&position).Error
	return position, s.wrap(ctx, "read the newest position", err)
}
