package repository

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
// reminder is not open any more, a key is already kept or a unique name is taken, and when the database broke off the
// transaction because of another one. A key whose time was up before the new answer
// counts as not kept.
func (s *Store) Commit(ctx context.Context, c domain.Commit) error {
	rows, err := plan(c.Rows)
	if err != nil {
		return err
	}
	writes, err := s.writesOf(rows, c)
	if err != nil {
		return err
	}
	if s.postgres {
		err = s.onConn(ctx, func(conn *pgx.Conn) error { return s.writeAtOnce(ctx, conn, writes) })
	} else {
		err = s.write(ctx).Transaction(func(tx *gorm.DB) error { return writeInTurn(tx, writes) })
	}
	if err != nil {
		return s.wrap(ctx, "commit", err)
	}
	settle(rows, writes)
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
	writes, err := s.writesOf(rows, c)
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
		return writeInTurn(tx, writes)
	})
	if err != nil {
		return false, s.wrap(ctx, "make the first start", err)
	}
	if wrote {
		settle(rows, writes)
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

func settle(rows []planned, writes []written) {
	for _, p := range rows {
		*p.version++
	}
	for _, w := range writes {
		if w.kept != nil {
			w.kept()
		}
	}
}

// written is one statement of a commit, and what its outcome must be.
type written struct {
	write func(tx *gorm.DB) *gorm.DB
	// check refuses an outcome; nil takes any that is no error.
	check func(touched int64) error
	// kept is called when the commit has succeeded; nil for nothing.
	kept func()
	// name gives the error of the statement the name that a caller knows; nil leaves it.
	name func(err error) error
}

func (w written) outcome(touched int64, err error) error {
	switch {
	case err != nil && w.name != nil:
		return w.name(err)
	case err != nil:
		return err
	case w.check != nil:
		return w.check(touched)
	}
	return nil
}

// touches refuses every other number of rows.
func touches(number int, refusal func() *domain.Error) func(int64) error {
	return func(touched int64) error {
		if touched != int64(number) {
			return refusal()
		}
		return nil
	}
}

// writesOf lists the statements of a commit in the order of writing.
func (s *Store) writesOf(rows []planned, c domain.Commit) ([]written, error) {
	var writes []written
	if c.Kept != nil {
		writes = append(writes, keep(c.Kept))
	}
	// Work is locked before anything else, from the top down and in every commit, so
	// that no two commits wait for each other in a ring.
	if c.Cost != nil {
		writes = append(writes, s.addCost(*c.Cost)...)
	}
	writes = append(writes, s.guard(c.Gates)...)
	if c.StopWork != nil {
		writes = append(writes, s.stopWork(*c.StopWork, c.At))
	}
	writes = append(writes, s.writesOfRows(rows)...)
	if len(c.Taken) > 0 {
		writes = append(writes, take(c.Taken))
	}
	if len(c.Reminded) > 0 {
		writes = append(writes, reminded(c.Reminded))
	}
	writes = append(writes, inserts(mapAll(c.Inputs, fromInput))...)
	writes = append(writes, inserts(mapAll(c.Items, fromItem))...)
	writes = append(writes, inserts(mapAll(c.Usage, fromUsage))...)
	events, err := s.insertEvents(c.Events)
	if err != nil {
		return nil, err
	}
	writes = append(writes, events...)
	if len(c.CloseReminders) > 0 {
		writes = append(writes, written{write: func(tx *gorm.DB) *gorm.DB { return tx.Where("chat_id IN ?", c.CloseReminders).Delete(&reminderRow{}) }})
	}
	audit, err := s.insertAudit(c.Audit)
	if err != nil {
		return nil, err
	}
	writes = append(writes, audit...)
	writes = append(writes, inserts(mapAll(c.Links, fromLink))...)
	if len(c.CloseChats) > 0 {
		writes = append(writes, closeChats(c.CloseChats)...)
	}
	for _, set := range c.Deliveries {
		writes = append(writes, s.tellWebhooks(set, c.At))
	}
	return writes, nil
}

// writesOfRows goes kind by kind, the updates of a kind before its inserts.
func (s *Store) writesOfRows(rows []planned) []written {
	var writes []written
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
			write, kept := t.update(s.images, p.row, *p.version)
			writes = append(writes, written{write: write, check: touches(1, stale), kept: kept, name: t.named})
		}
		for _, w := range t.insert(fresh) {
			w.name = t.named
			writes = append(writes, w)
		}
		rows = rows[n:]
	}
	return writes
}

// named tells a taken name from a taken ID: host tools are the only rows that are
// unique by a name that people choose.
func (t table) named(err error) error {
	if t.name == "host_tools" && unique(err) {
		return domain.Wrap(domain.CodeConflict, tagName, "This name is taken. Choose another.", err)
	}
	return err
}

// keep inserts a kept answer. One whose time is up makes room.
func keep(k *domain.KeptAnswer) written {
	return written{
		write: func(tx *gorm.DB) *gorm.DB {
			return tx.Exec(`INSERT INTO kept_answers (member_id, "key", fingerprint, status, body, chat_id, until, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (member_id, "key") DO UPDATE SET fingerprint = excluded.fingerprint, status = excluded.status,
			body = excluded.body, chat_id = excluded.chat_id, until = excluded.until, created_at = excluded.created_at
		WHERE kept_answers.until <= excluded.created_at`,
				k.Member, clean(k.Key), clean(k.Fingerprint), k.Status, k.Body, k.Chat, microsOrNil(k.Until), micros(k.CreatedAt))
		},
		check: touches(1, func() *domain.Error { return conflict(tagKept, "An answer is already kept under this key.") }),
	}
}

func take(ids []domain.InputID) written {
	return written{
		write: func(tx *gorm.DB) *gorm.DB { return tx.Where("id IN ?", ids).Delete(&inputRow{}) },
		check: touches(len(ids), func() *domain.Error { return conflict(tagTaken, "This input was already taken.") }),
	}
}

func closeChats(ids []domain.ChatID) []written {
	return []written{
		{write: func(tx *gorm.DB) *gorm.DB { return tx.Where("chat_id IN ?", ids).Delete(&inputRow{}) }},
		{write: func(tx *gorm.DB) *gorm.DB { return tx.Where("chat_id IN ?", ids).Delete(&reminderRow{}) }},
		{write: func(tx *gorm.DB) *gorm.DB { return tx.Where("chat_id IN ? AND chat_id <> ''", ids).Delete(&keptRow{}) }},
	}
}

// writeInTurn writes one statement after the other and stops at the first that is
// refused.
func writeInTurn(tx *gorm.DB, writes []written) error {
	for _, w := range writes {
		done := w.write(tx)
		if err := w.outcome(done.RowsAffected, done.Error); err != nil {
			return err
		}
	}
	return nil
}

// writeAtOnce sends the beginning of the transaction and every statement in one
// round trip. Only when each has been checked does it send the end, in a second one:
// a statement that touches no row is no error to the database.
func (s *Store) writeAtOnce(ctx context.Context, conn *pgx.Conn, writes []written) error {
	dry := s.dry(ctx)
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	defer leave(ctx, conn)
	for _, w := range writes {
		if err := queue(batch, w.write(dry)); err != nil {
			return err
		}
	}
	if err := checkAll(conn.SendBatch(ctx, batch), writes); err != nil {
		return err
	}
	done, err := conn.Exec(ctx, "COMMIT")
	if err == nil && done.String() != "COMMIT" {
		return pgx.ErrTxCommitRollback
	}
	return err
}

// leaveWithin bounds the wait for the end of a transaction that failed.
const leaveWithin = 2 * time.Second

// leave ends a transaction that is still open, whatever became of the caller: in the
// pool it would go on holding its locks.
func leave(ctx context.Context, conn *pgx.Conn) {
	const idle = 'I'
	if conn.IsClosed() || conn.PgConn().TxStatus() == idle {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer stop()
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = conn.Close(ctx)
	}
}

func checkAll(results pgx.BatchResults, writes []written) error {
	_, err := results.Exec()
	for i := 0; err == nil && i < len(writes); i++ {
		var done pgconn.CommandTag
		done, err = results.Exec()
		err = writes[i].outcome(done.RowsAffected(), err)
	}
	// It reads what is left; the first error counts.
	if closing := results.Close(); err == nil {
		err = closing
	}
	return err
}

func mapAll[D, R any](list []D, from func(*D) R) []R {
	out := make([]R, len(list))
	for i := range list {
		out[i] = from(&list[i])
	}
	return out
}
