package repository

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"

	"openbot/domain"
)

// planned is a row of a commit with its place in the order of writing.
type planned struct {
	row     domain.Row
	table   int
	version *int64
}

// Commit writes everything in one transaction or nothing. On success each row's
// Version is the one that now stands; on failure no row is touched.
//
// It gives conflict when a row's version has moved, an input was already taken, a
// key is already kept or a unique name is taken, and when the database broke off the
// transaction because of another one. A key whose time was up before the new answer
// counts as not kept.
func (s *Store) Commit(ctx context.Context, c domain.Commit) error {
	rows, err := plan(c.Rows)
	if err != nil {
		return err
	}
	err = s.write(ctx).Transaction(func(tx *gorm.DB) error { return s.writeAll(tx, rows, c) })
	if err != nil {
		return s.wrap(ctx, "commit", err)
	}
	settle(rows)
	return nil
}

// firstStartLock is the key of an advisory lock on PostgreSQL: "openbot" in ASCII.
const firstStartLock = 0x6f70656e626f74

// FirstStart writes c only when there is no token at all, and reports whether it
// wrote. On PostgreSQL an advisory lock makes other processes wait; on SQLite a
// write transaction is that lock.
func (s *Store) FirstStart(ctx context.Context, c domain.Commit) (bool, error) {
	rows, err := plan(c.Rows)
	if err != nil {
		return false, err
	}
	wrote := false
	err = s.write(ctx).Transaction(func(tx *gorm.DB) error {
		if s.postgres {
			if err := tx.Exec("SELECT pg_advisory_xact_lock(?)", int64(firstStartLock)).Error; err != nil {
				return err
			}
		}
		var any bool
		if err := tx.Raw("SELECT EXISTS (SELECT 1 FROM tokens)").Scan(&any).Error; err != nil || any {
			return err
		}
		wrote = true
		return s.writeAll(tx, rows, c)
	})
	if err != nil {
		return false, s.wrap(ctx, "make the first start", err)
	}
	if wrote {
		settle(rows)
	}
	return wrote, nil
}

// plan orders the rows and refuses what no caller may send.
func plan(rows []domain.Row) ([]planned, error) {
	list := make([]planned, len(rows))
	for i, row := range rows {
		index, version, err := placeOf(row)
		if err != nil {
			return nil, err
		}
		if domain.RowID(row) == "" {
			return nil, domain.Errorf(domain.CodeInternal, "CommitRow", "A row of %s has no ID.", tables[index].name)
		}
		list[i] = planned{row, index, version}
	}
	slices.SortFunc(list, func(a, b planned) int {
		return cmp.Or(cmp.Compare(a.table, b.table), strings.Compare(domain.RowID(a.row), domain.RowID(b.row)))
	})
	for i := 1; i < len(list); i++ {
		if list[i].table == list[i-1].table && domain.RowID(list[i].row) == domain.RowID(list[i-1].row) {
			return nil, domain.Errorf(domain.CodeInternal, "CommitRow", "A commit holds the same row of %s twice.", tables[list[i].table].name)
		}
	}
	return list, nil
}

func settle(rows []planned) {
	for _, p := range rows {
		*p.version++
	}
}

func (s *Store) writeAll(tx *gorm.DB, rows []planned, c domain.Commit) error {
	if c.Kept != nil {
		if err := keep(tx, c.Kept); err != nil {
			return err
		}
	}
	if err := writeRows(tx, rows); err != nil {
		return err
	}
	if err := take(tx, c.Taken); err != nil {
		return err
	}
	if err := insertAll(tx, mapAll(c.Inputs, fromInput)); err != nil {
		return err
	}
	if err := insertAll(tx, mapAll(c.Items, fromItem)); err != nil {
		return err
	}
	if err := s.insertEvents(tx, c.Events); err != nil {
		return err
	}
	return closeChats(tx, c.CloseChats)
}

// writeRows writes kind by kind, the updates of a kind before its inserts.
func writeRows(tx *gorm.DB, rows []planned) error {
	for len(rows) > 0 {
		t := tables[rows[0].table]
		var fresh []domain.Row
		n := 0
		for ; n < len(rows) && rows[n].table == rows[0].table; n++ {
			p := rows[n]
			if *p.version == 0 {
				fresh = append(fresh, p.row)
				continue
			}
			touched, err := t.update(tx, p.row, *p.version)
			if err != nil {
				return named(t, err)
			}
			if touched != 1 {
				return stale()
			}
		}
		if len(fresh) > 0 {
			if err := t.insert(tx, fresh); err != nil {
				return named(t, err)
			}
		}
		rows = rows[n:]
	}
	return nil
}

// named tells a taken name from a taken ID: host tools are the only rows that are
// unique by a name that people choose.
func named(t table, err error) error {
	if t.name == "host_tools" && unique(err) {
		return domain.Wrap(domain.CodeConflict, tagName, "This name is taken. Choose another.", err)
	}
	return err
}

// keep inserts a kept answer. One whose time is up makes room.
func keep(tx *gorm.DB, k *domain.KeptAnswer) error {
	done := tx.Exec(`INSERT INTO kept_answers (member_id, "key", fingerprint, status, body, chat_id, until, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (member_id, "key") DO UPDATE SET fingerprint = excluded.fingerprint, status = excluded.status,
			body = excluded.body, chat_id = excluded.chat_id, until = excluded.until, created_at = excluded.created_at
		WHERE kept_answers.until <= excluded.created_at`,
		k.Member, clean(k.Key), clean(k.Fingerprint), k.Status, k.Body, k.Chat, microsOrNil(k.Until), micros(k.CreatedAt))
	if done.Error == nil && done.RowsAffected != 1 {
		return conflict(tagKept, "An answer is already kept under this key.")
	}
	return done.Error
}

func take(tx *gorm.DB, ids []domain.InputID) error {
	if len(ids) == 0 {
		return nil
	}
	done := tx.Where("id IN ?", ids).Delete(&inputRow{})
	if done.Error == nil && done.RowsAffected != int64(len(ids)) {
		return conflict(tagTaken, "This input was already taken.")
	}
	return done.Error
}

func closeChats(tx *gorm.DB, ids []domain.ChatID) error {
	if len(ids) == 0 {
		return nil
	}
	if err := tx.Where("chat_id IN ?", ids).Delete(&inputRow{}).Error; err != nil {
		return err
	}
	return tx.Where("chat_id IN ? AND chat_id <> ''", ids).Delete(&keptRow{}).Error
}

func mapAll[D, R any](list []D, from func(*D) R) []R {
	out := make([]R, len(list))
	for i := range list {
		out[i] = from(&list[i])
	}
	return out
}
