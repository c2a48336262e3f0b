package repository_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"openbot/domain/engine"
	"openbot/repository"
	"openbot/repository/repositorytest"
)

var _ engine.Store = (*repository.Store)(nil)

// databaseURL names the environment variable that holds the URL of a PostgreSQL in
// which the tests may make schemas.
const databaseURL = "OPENBOT_TEST_DATABASE_URL"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSQLite(t *testing.T) {
	repositorytest.Run(t, func(t *testing.T) engine.Store { return migrated(t, onSQLite(t)) })
}

func TestPostgreSQL(t *testing.T) {
	needPostgres(t)
	repositorytest.Run(t, func(t *testing.T) engine.Store { return migrated(t, onPostgres(t)) })
}

// both runs a test on each database that is there.
func both(t *testing.T, test func(t *testing.T, o repository.Options)) {
	t.Run("SQLite", func(t *testing.T) { test(t, onSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		needPostgres(t)
		test(t, onPostgres(t))
	})
}

func needPostgres(t *testing.T) {
	t.Helper()
	if os.Getenv(databaseURL) == "" {
		t.Skipf("NOT TESTED ON POSTGRESQL: set %s to the URL of a PostgreSQL in which schemas may be made", databaseURL)
	}
}

func onSQLite(t *testing.T) repository.Options {
	// The name has what an address would read as something else.
	return repository.Options{File: filepath.Join(t.TempDir(), "a b?c#d%20", "openbot.db")}
}

var schemas atomic.Int64

// onPostgres makes an empty schema that is dropped when the test ends.
func onPostgres(t *testing.T) repository.Options {
	t.Helper()
	base := os.Getenv(databaseURL)
	name := fmt.Sprintf("openbot_test_%d_%d", os.Getpid(), schemas.Add(1))
	conn := connect(t, base)
	exec(t, conn, "CREATE SCHEMA "+name)
	t.Cleanup(func() { exec(t, conn, "DROP SCHEMA "+name+" CASCADE") })
	address, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("search_path", name)
	address.RawQuery = query.Encode()
	return repository.Options{URL: address.String()}
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(cleanup(t)) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, query string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(cleanup(t), query, args...); err != nil {
		t.Fatal(err)
	}
}

// cleanup is a context that still lives while a test is being cleaned up.
func cleanup(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func opened(t *testing.T, o repository.Options) *repository.Store {
	t.Helper()
	store, err := repository.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func migrated(t *testing.T, o repository.Options) *repository.Store {
	t.Helper()
	store := opened(t, o)
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}
