package repository_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"openbot/domain"
	"openbot/repository"
)

func TestSchemaIsMadeByMigrateAloneAndAskedForInWords(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store := opened(t, o)
		old := fmt.Sprintf("The database has schema version 0, this program needs %d: run `openbot migrate up`.", newest(t, store))
		refuses(t, store.Ready(t.Context()), old)
		status, err := store.MigrationStatus(t.Context())
		number := len(status)
		if err != nil || number < 5 || status[0].AppliedAt != nil {
			t.Fatalf("status before: %+v, %v", status, err)
		}
		refuses(t, store.Ready(t.Context()), old)
		for range 2 {
			if err := store.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := store.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		status, err = store.MigrationStatus(t.Context())
		if err != nil || len(status) != number || status[0].AppliedAt == nil || status[number-1].AppliedAt == nil || status[0].Name != "0001_init.sql" || status[0].Version != 1 {
			t.Fatalf("status after: %+v, %v", status, err)
		}
	})
}

func TestMigrateKeepsWhatIsThere(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store := migrated(t, o)
		org := &domain.Organization{ID: "org_1", Name: "Ours"}
		if err := store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{org}}); err != nil {
			t.Fatal(err)
		}
		again := migrated(t, o)
		got, err := again.Organization(t.Context(), "org_1")
		if err != nil || got.Name != "Ours" {
			t.Fatalf("got %+v, %v", got, err)
		}
	})
}

func TestNewerSchemaIsRefused(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store := migrated(t, o)
		if err := store.Exec(t.Context(), "INSERT INTO schema_versions (version_id, is_applied) VALUES (9999, ?)", true); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("The database has schema version 9999, this program knows only %d: run the newer program.", newest(t, store))
		refuses(t, store.Ready(t.Context()), want)
		refuses(t, store.Migrate(t.Context()), want)
	})
}

func TestProgramsThatMigrateAtOnce(t *testing.T) {
	needPostgres(t)
	o := onPostgres(t)
	var all sync.WaitGroup
	for range 4 {
		store := opened(t, o)
		all.Go(func() {
			if err := store.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
			if err := store.Ready(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestBothDatabasesHaveTheSameMigrations(t *testing.T) {
	needPostgres(t)
	lite, err := opened(t, onSQLite(t)).MigrationStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	full, err := opened(t, onPostgres(t)).MigrationStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(lite) != len(full) {
		t.Fatalf("SQLite has %d migrations, PostgreSQL %d", len(lite), len(full))
	}
	for i := range lite {
		if lite[i].Name != full[i].Name {
			t.Errorf("SQLite has %s where PostgreSQL has %s", lite[i].Name, full[i].Name)
		}
	}
}

// newest is the number of the last migration that the program knows.
func newest(t *testing.T, store *repository.Store) int64 {
	t.Helper()
	status, err := store.MigrationStatus(t.Context())
	if err != nil || len(status) == 0 {
		t.Fatalf("%d migrations: %v", len(status), err)
	}
	return status[len(status)-1].Version
}

func refuses(t *testing.T, err error, message string) {
	t.Helper()
	var ours *domain.Error
	if !errors.As(err, &ours) || ours.Code != domain.CodeUnavailable || !strings.Contains(ours.Message, message) {
		t.Fatalf("got %v, want unavailable: %s", err, message)
	}
}
