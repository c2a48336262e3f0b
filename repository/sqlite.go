package repository

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"

	"openbot/domain"
)

// openSQLite opens one connection for writes and a few for reads. SQLite has one
// writer; a second connection would only wait in its lock instead of in ours.
func (s *Store) openSQLite(ctx context.Context, o Options) error {
	if o.File == "" {
		return domain.Errorf(domain.CodeInvalid, "DatabaseFile", "Name a file for the database, or the URL of a PostgreSQL.")
	}
	path, err := filepath.Abs(o.File)
	if err == nil {
		err = makeFile(path)
	}
	if err != nil {
		return domain.Wrap(domain.CodeUnavailable, "DatabaseFile",
			"The database file cannot be made. Look at its path and at who may write there.", err)
	}
	// In WAL mode only synchronous=FULL keeps the last commits over a loss of power.
	// A write transaction takes the lock when it begins, so that it never has to be
	// begun again in the middle.
	if s.writer, err = s.openFile(ctx, path, 1, url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"},
		"_txlock": {"immediate"},
	}); err != nil {
		return err
	}
	s.reader, err = s.openFile(ctx, path, max(4, runtime.GOMAXPROCS(0)), url.Values{
		"_pragma": {"busy_timeout(5000)", "query_only(1)"},
	})
	return err
}

func (s *Store) openFile(ctx context.Context, path string, conns int, query url.Values) (*gorm.DB, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	pool, err := sql.Open(sqlite.DriverName, dsn.String())
	if err != nil {
		return nil, s.wrap(ctx, "open the database", err)
	}
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	s.pools = append(s.pools, pool)
	if err := pool.PingContext(ctx); err != nil {
		return nil, s.wrap(ctx, "open the database", err)
	}
	db, err := gorm.Open(&sqlite.Dialector{Conn: pool}, gormConfig())
	if err != nil {
		return nil, s.wrap(ctx, "open the database", err)
	}
	return db, nil
}

// makeFile makes the file readable by its owner alone: it holds hashes of tokens
// and sealed secrets. SQLite gives its side files the same mode.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}
