package repository_test

import (
	"fmt"
	"net/url"
	"os"
	"testing"

	"openbot/domain"
	"openbot/repository"
	"openbot/repository/repositorytest"
)

// chatWithEvents commits a new Chat of the Member with one event.
func chatWithEvents(t *testing.T, store *repository.Store, id domain.ChatID) {
	t.Helper()
	chat := &domain.Chat{ID: id, Member: "mem_1", LastEvent: 1}
	err := store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{chat},
		Events: []domain.Event{{Member: "mem_1", Chat: id, Sequence: 1, Kind: domain.EventMessage}}})
	if err != nil {
		t.Fatal(err)
	}
}

func seen(t *testing.T, store *repository.Store, after int64) (chats []string, last int64) {
	t.Helper()
	events, err := store.MemberEvents(t.Context(), "mem_1", after, 100)
	if err != nil {
		t.Fatal(err)
	}
	chats = []string{}
	for _, e := range events {
		if e.Position <= after {
			t.Fatalf("position %d comes after %d", e.Position, after)
		}
		chats, after = append(chats, string(e.Chat)), e.Position
	}
	newest, err := store.LastPosition(t.Context(), "mem_1")
	if err != nil {
		t.Fatal(err)
	}
	if newest != after {
		t.Fatalf("newest position %d, but %d was seen last", newest, after)
	}
	return chats, after
}

// seenWhen gives what is seen once there are so many.
func seenWhen(t *testing.T, store *repository.Store, after int64, many int) (chats []string, last int64) {
	t.Helper()
	repositorytest.Soon(t, func() string {
		events, err := store.MemberEvents(t.Context(), "mem_1", after, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) < many {
			return fmt.Sprintf("%d events are seen, want %d", len(events), many)
		}
		return ""
	})
	return seen(t, store, after)
}

// A transaction that began to write first and commits last must not put its event
// under what a reader has seen.
func TestOpenTransactionHoldsReadersUpButLosesNothing(t *testing.T) {
	needPostgres(t)
	o := onPostgres(t)
	store := migrated(t, o)
	chatWithEvents(t, store, "chat_before")
	got, position := seenWhen(t, store, 0, 1)
	if fmt.Sprint(got) != "[chat_before]" {
		t.Fatalf("got %v", got)
	}

	slow := connect(t, o.URL)
	exec(t, slow, "BEGIN")
	exec(t, slow, `INSERT INTO events (organization_id, member_id, chat_id, sequence, kind, subject, data, created_at, "position")
		VALUES ('', 'mem_1', 'chat_slow', 1, '', '', '', 0, (pg_current_xact_id()::text::bigint + (SELECT value FROM event_offset)) << 12)`)
	chatWithEvents(t, store, "chat_quick")
	if got, last := seen(t, store, position); len(got) != 0 || last != position {
		t.Fatalf("got %v up to %d while an older transaction is open", got, last)
	}
	chats, err := store.ChatEvents(t.Context(), "chat_quick", 0, 9)
	if err != nil || len(chats) != 1 {
		t.Fatalf("the events of the Chat itself: %v, %v", chats, err)
	}
	exec(t, slow, "COMMIT")
	got, position = seenWhen(t, store, position, 2)
	if fmt.Sprint(got) != "[chat_slow chat_quick]" {
		t.Fatalf("got %v", got)
	}
	chatWithEvents(t, store, "chat_after")
	if got, _ := seenWhen(t, store, position, 1); fmt.Sprint(got) != "[chat_after]" {
		t.Fatalf("got %v", got)
	}
}

// One of another database of the cluster cannot write here: nobody waits for it.
func TestATransactionOfAnotherDatabaseHoldsNobodyUp(t *testing.T) {
	needPostgres(t)
	o := onPostgres(t)
	store := migrated(t, o)
	elsewhere := fmt.Sprintf("openbot_elsewhere_%d", os.Getpid())
	admin := connect(t, o.URL)
	exec(t, admin, "CREATE DATABASE "+elsewhere+" TEMPLATE template0")
	t.Cleanup(func() { exec(t, admin, "DROP DATABASE "+elsewhere+" WITH (FORCE)") })
	address, err := url.Parse(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = elsewhere
	open := connect(t, address.String())
	exec(t, open, "BEGIN")
	exec(t, open, "SELECT pg_current_xact_id()")
	chatWithEvents(t, store, "chat_here")
	if got, _ := seenWhen(t, store, 0, 1); fmt.Sprint(got) != "[chat_here]" {
		t.Fatalf("got %v", got)
	}
}

// Transaction IDs begin anew in another cluster; positions must go on rising, both
// after a start and after a migration of what was restored.
func TestPositionsGoOnAfterARestoreElsewhere(t *testing.T) {
	needPostgres(t)
	for name, raise := range map[string]func(t *testing.T, o repository.Options, store *repository.Store) *repository.Store{
		"start": func(t *testing.T, o repository.Options, _ *repository.Store) *repository.Store { return opened(t, o) },
		"migration": func(t *testing.T, _ repository.Options, store *repository.Store) *repository.Store {
			if err := store.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			return store
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := onPostgres(t)
			store := migrated(t, o)
			chatWithEvents(t, store, "chat_old")
			conn := connect(t, o.URL)
			exec(t, conn, `UPDATE events SET "position" = "position" + (1::bigint << 50)`)

			store = raise(t, o, store)
			got, position := seenWhen(t, store, 0, 1)
			if fmt.Sprint(got) != "[chat_old]" {
				t.Fatalf("got %v", got)
			}
			chatWithEvents(t, store, "chat_new")
			if got, _ := seenWhen(t, store, position, 1); fmt.Sprint(got) != "[chat_new]" {
				t.Fatalf("got %v", got)
			}
			offset := func() (value int64) {
				if err := conn.QueryRow(t.Context(), "SELECT value FROM event_offset").Scan(&value); err != nil {
					t.Fatal(err)
				}
				return value
			}
			before := offset()
			opened(t, o)
			if after := offset(); after != before || before == 0 {
				t.Fatalf("the offset went from %d to %d at a start that followed no restore", before, after)
			}
		})
	}
}
