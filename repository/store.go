package repository

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"openbot/domain"
)

// Options say which database to open.
type Options struct {
	// URL is that of a PostgreSQL database, e.g. postgres://user:secret@host/name; ""
	// means SQLite.
	URL string
	// File is the path of the SQLite database; it and its folder are made if absent.
	File string
	// Logger gets what an operator should know; nil drops it. It never gets values of
	// rows, nor the URL.
	Logger *slog.Logger
	// MaxConns bounds the connections to PostgreSQL; 0 means four a core, at least 8.
	MaxConns int
}

// Store keeps every fact in one database. It is safe for use by many goroutines.
type Store struct {
	writer *gorm.DB // all writes; on SQLite a single connection
	reader *gorm.DB // all reads; on PostgreSQL the same pool
	pools  []*sql.DB
	images *images
	log    *slog.Logger

	postgres bool
	closed   atomic.Bool
}

// Open connects to the database. It makes no tables: see Migrate. It gives invalid
// for options that cannot be used and unavailable when the database cannot be
// reached.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{log: o.Logger, images: newImages()}
	if s.log == nil {
		s.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	open := s.openSQLite
	if o.URL != "" {
		open = s.openPostgres
	}
	if err := open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.raisePositions(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends every connection. Calls that are under way and later ones fail with
// unavailable.
func (s *Store) Close() error {
	s.closed.Store(true)
	var first error
	for _, pool := range s.pools {
		if err := pool.Close(); err != nil && first == nil {
			first = err
		}
	}
	if first != nil {
		return domain.Wrap(domain.CodeInternal, "StoreClose", "The database did not close cleanly.", first)
	}
	return nil
}

// gormConfig turns off whatever GORM would write, ask or log by itself: its own
// transaction around each statement doubles the time of a write, and its logger
// shows values.
func gormConfig() *gorm.Config {
	return &gorm.Config{
		SkipDefaultTransaction:   true,
		DisableNestedTransaction: true,
		DisableAutomaticPing:     true,
		Logger:                   logger.Discard,
	}
}

func (s *Store) read(ctx context.Context) *gorm.DB  { return s.reader.WithContext(ctx) }
func (s *Store) write(ctx context.Context) *gorm.DB { return s.writer.WithContext(ctx) }
