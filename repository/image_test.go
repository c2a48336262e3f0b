package repository_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/repository"
)

// An update carries what has changed since the row was read or written here, and what a
// version does not tell. A row that another server wrote last, which is not known here, is
// written whole once it is read again.
func TestAnUpdateCarriesWhatHasChanged(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		ctx, store, other := t.Context(), migrated(t, o), opened(t, o)
		at := time.UnixMicro(1_900_000_000_000_000).UTC()
		chat := &domain.Chat{ID: "chat_1", Title: "one", Mode: "plan", CreatedAt: at, UpdatedAt: at}
		must(t, store.Commit(ctx, domain.Commit{Rows: []domain.Row{chat}}))

		var sets []string
		update := regexp.MustCompile(`^UPDATE .chats. SET (.*) WHERE id`)
		name := regexp.MustCompile(`["\x60](\w+)["\x60] = `)
		store.Watch(func(query string) {
			if found := update.FindStringSubmatch(query); found != nil {
				sets = nil
				for _, column := range name.FindAllStringSubmatch(found[1], -1) {
					sets = append(sets, column[1])
				}
			}
		})
		save := func(s *repository.Store, what string, columns ...string) {
			t.Helper()
			sets = nil
			must(t, s.Commit(ctx, domain.Commit{Rows: []domain.Row{chat}}))
			if len(columns) > 0 && !slices.Equal(sets, columns) {
				t.Errorf("%s: written were %v, want %v", what, sets, columns)
			}
			stands, err := s.Chat(ctx, chat.ID)
			must(t, err)
			if stands.Title != chat.Title || stands.Mode != chat.Mode || stands.LastItem != chat.LastItem || len(stands.Taint) != len(chat.Taint) {
				t.Errorf("%s: the row is %+v, want %+v", what, stands, chat)
			}
		}
		chat.Title = "two"
		save(store, "after an insert, all")
		if len(sets) < 10 {
			t.Errorf("a row of which nothing is known was written as %v", sets)
		}
		chat.Title = "three"
		save(store, "one column", "title", "status", "version")
		chat.Taint = domain.Taint{{Connection: "con_1"}}
		save(store, "a document", "status", "tainted", "taint", "version")
		save(store, "nothing", "status", "version")

		chat.Mode, chat.Title = "", strings.Repeat("long ", 100)
		save(other, "another server")
		chat.LastItem = 7
		save(store, "after another server's")
		if len(sets) < 10 {
			t.Errorf("a row that another server wrote was written as %v", sets)
		}
		chat.Mode = "plan"
		save(other, "another server, again")
		_, err := store.Chat(ctx, chat.ID)
		must(t, err)
		chat.LastItem = 8
		save(store, "another server's, read, with a long text", "title", "status", "last_item", "version")
	})
}

// A statement that leaves the version alone may only touch columns that each update writes,
// or that no update writes: what is remembered of a row would be wrong otherwise.
func TestStatementsThatLeaveTheVersionAloneTouchLooseColumns(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must(t, err)
	update := regexp.MustCompile(`(?s)UPDATE (\w+) SET (.*?) WHERE`)
	set := regexp.MustCompile(`(?:^|,)\s*(\w+) = `)
	// cost_nanos is never written by an update; the tables are written by nothing else.
	free := map[string]bool{"status": true, "due_at": true, "lease_until": true, "last_used_at": true, "cost_nanos": true}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		must(t, err)
		for _, found := range update.FindAllStringSubmatch(string(text), -1) {
			table, sets := found[1], found[2]
			if table == "heartbeat" || table == "event_offset" || strings.Contains(sets, "version = version + 1") {
				continue
			}
			for _, column := range set.FindAllStringSubmatch(sets, -1) {
				seen++
				if !free[column[1]] {
					t.Errorf("%s changes %s.%s and leaves the version alone", file, table, column[1])
				}
			}
		}
	}
	if seen < 6 {
		t.Fatalf("only %d columns were found", seen)
	}
}
