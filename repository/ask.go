package repository

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"openbot/domain"
)

// question is one statement that reads, and what becomes of its rows. It is said
// once for both databases.
type question struct {
	attempt string
	// ask runs the statement alone.
	ask func(db *gorm.DB) error
	// build makes the statement without running it.
	build func(db *gorm.DB) *gorm.DB
	// answer takes the rows of a statement that was built.
	answer func(rows pgx.Rows) error
}

func asking[R any](attempt string, query func(*gorm.DB) *gorm.DB, take func([]R) error) question {
	return question{
		attempt: attempt,
		ask: func(db *gorm.DB) error {
			var rows []R
			if err := query(db).Find(&rows).Error; err != nil {
				return err
			}
			return take(rows)
		},
		build: func(db *gorm.DB) *gorm.DB {
			built := query(db)
			if built.Statement.SQL.Len() == 0 {
				return built.Find(new([]R))
			}
			show(built) // its text stands: GORM has nothing to add
			return built
		},
		answer: func(found pgx.Rows) error {
			rows, err := readRows[R](found)
			if err != nil {
				return err
			}
			return take(rows)
		},
	}
}

// askOne gives one row to take; not_found when there is none.
func askOne[R any](what string, take func(R) error, query string, args ...any) question {
	return asking("read a "+what, func(db *gorm.DB) *gorm.DB { return said(db, query, args...) }, func(rows []R) error {
		if len(rows) == 0 {
			return notFound(what)
		}
		return take(rows[0])
	})
}

// askList puts the rows into a list.
func askList[R, D any](attempt string, into *[]D, to func(R) D, query func(*gorm.DB) *gorm.DB) question {
	return asking(attempt, query, func(rows []R) error {
		*into = make([]D, len(rows))
		for i, row := range rows {
			(*into)[i] = to(row)
		}
		return nil
	})
}

// ask has questions answered in their order, each in a snapshot of its own that is
// not older than the one before.
type ask func(questions ...question) error

// together answers questions on one connection. On PostgreSQL those of one call go
// out at once and cost one round trip.
func (s *Store) together(ctx context.Context, load func(ask) error) error {
	if !s.postgres {
		return s.wrap(ctx, "load facts", s.read(ctx).Connection(func(db *gorm.DB) error {
			// Without a new session each statement would carry the clauses of the last.
			db = db.Session(&gorm.Session{NewDB: true})
			return load(func(questions ...question) error {
				for _, q := range questions {
					if err := q.ask(db); err != nil {
						return s.wrap(ctx, q.attempt, err)
					}
				}
				return nil
			})
		}))
	}
	return s.wrap(ctx, "load facts", s.onConn(ctx, func(conn *pgx.Conn) error {
		return load(func(questions ...question) error { return s.askAtOnce(ctx, conn, questions) })
	}))
}

func (s *Store) askAtOnce(ctx context.Context, conn *pgx.Conn, questions []question) error {
	dry := s.dry(ctx)
	var batch pgx.Batch
	for _, q := range questions {
		if err := queue(&batch, q.build(dry)); err != nil {
			return s.wrap(ctx, q.attempt, err)
		}
	}
	results := conn.SendBatch(ctx, &batch)
	for _, q := range questions {
		rows, err := results.Query()
		if err == nil {
			err = q.answer(rows)
			rows.Close()
		}
		if err != nil {
			_ = results.Close() // reads what is left; the first error counts
			return s.wrap(ctx, q.attempt, err)
		}
	}
	return results.Close()
}

// dry builds statements without running them.
func (s *Store) dry(ctx context.Context) *gorm.DB {
	return s.write(ctx).Session(&gorm.Session{DryRun: true, NewDB: true})
}

// queue adds a statement that was built to a batch.
func queue(batch *pgx.Batch, built *gorm.DB) error {
	if built.Error != nil {
		return built.Error
	}
	batch.Queue(built.Statement.SQL.String(), built.Statement.Vars...)
	return nil
}

// onConn gives the bare connection of the driver. One that comes back broken or
// inside a transaction is dropped by the driver before it is used again.
func (s *Store) onConn(ctx context.Context, use func(*pgx.Conn) error) error {
	conn, err := s.pools[0].Conn(ctx)
	if err != nil {
		return err
	}
	err = conn.Raw(func(bare any) error {
		ours, ok := bare.(*stdlib.Conn)
		if !ok {
			return domain.Errorf(domain.CodeInternal, "DatabaseDriver", "The database is not reached by the driver that was opened.")
		}
		return use(ours.Conn())
	})
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return err
}
