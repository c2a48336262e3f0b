//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/glebarez/sqlite"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// floor is the least that a durable step can cost here: one row inserted and
// committed, with the settings that the product uses.
type floor interface {
	insert(ctx context.Context, n int64) error
	close() error
}

// payload is about as long as a small row of the product.
const payload = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

type serverFloor struct{ pool *pgxpool.Pool }

// newServerFloor prepares a table in a database of its own on the same PostgreSQL.
func newServerFloor(ctx context.Context, address string, clients int) (floor, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.ConnConfig.DefaultQueryExecMode = int32(clients), pgx.QueryExecModeCacheStatement
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE floor (n bigint, payload text)"); err != nil {
		pool.Close()
		return nil, err
	}
	return serverFloor{pool}, nil
}

func (f serverFloor) insert(ctx context.Context, n int64) error {
	_, err := f.pool.Exec(ctx, "INSERT INTO floor VALUES ($1, $2)", n, payload)
	return err
}

func (f serverFloor) close() error {
	f.pool.Close()
	return nil
}

type fileFloor struct {
	db *sql.DB
}

// newFileFloor prepares a table in a file beside that of the product, with the same
// pragmas: one writer, a log that is written ahead, and a wait for the disk at each
// commit.
func newFileFloor(path string) (floor, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"}, "_txlock": {"immediate"},
	}.Encode()}
	db, err := sql.Open(sqlite.DriverName, dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE floor (n INTEGER, payload TEXT)"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return fileFloor{db}, nil
}

func (f fileFloor) insert(ctx context.Context, n int64) error {
	_, err := f.db.ExecContext(ctx, "INSERT INTO floor VALUES (?, ?)", n, payload)
	return err
}

func (f fileFloor) close() error { return f.db.Close() }

// measureFloor gives the commits a second of some clients for a while, and the
// median time of one commit.
func measureFloor(ctx context.Context, f floor, clients int, length time.Duration) (perSecond, median float64, err error) {
	// The end is looked at between inserts: one that is cut off would cost its
	// connection.
	end := time.Now().Add(length)
	var (
		group  sync.WaitGroup
		done   atomic.Int64
		once   sync.Once
		mu     sync.Mutex
		all    []float64
		failed error
	)
	started := time.Now()
	for range clients {
		group.Go(func() {
			var times []float64
			for before := time.Now(); before.Before(end) && ctx.Err() == nil; {
				if e := f.insert(ctx, done.Add(1)); e != nil {
					once.Do(func() { failed = e })
					break
				}
				after := time.Now()
				times = append(times, milliseconds(after.Sub(before)))
				before = after
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, times...)
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return 0, 0, context.Cause(ctx)
	}
	return float64(len(all)) / time.Since(started).Seconds(), percentile(all, 50), failed
}

// keepFloor measures the floor for a workload that does not run beside it.
func (b *bench) keepFloor(ctx context.Context, s *subject, to *section) error {
	bare, _, err := measureFloor(ctx, s.floor, b.clients, b.floor)
	if err == nil {
		to.add(floorPerSecond, "1/s", bare)
	}
	return err
}
