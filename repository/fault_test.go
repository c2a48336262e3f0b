package repository_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openbot/domain"
	"openbot/repository"
)

func TestRuleComesBackWhole(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store := migrated(t, o)
		at := time.Date(2031, 4, 5, 6, 7, 8, 123456000, time.UTC)
		rule := domain.Rule{ID: "rul_1", Organization: "org_1", Member: "mem_1", Bot: "bot_1", Text: "text", Effect: "deny", Enabled: true,
			Source: "person", Request: "req_1", CreatedAt: at, DeletedAt: &at}
		if err := store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{&rule}}); err != nil {
			t.Fatal(err)
		}
		got, err := store.Rule(t.Context(), rule.ID)
		if err != nil {
			t.Fatal(err)
		}
		if *got.DeletedAt != *rule.DeletedAt {
			t.Errorf("deleted at %v, want %v", got.DeletedAt, rule.DeletedAt)
		}
		got.DeletedAt = rule.DeletedAt
		if got != rule {
			t.Errorf("got %+v, want %+v", got, rule)
		}
	})
}

// Two commits that write the same rows in two orders would wait for each other.
func TestRowsAreWrittenInOneOrder(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store := migrated(t, o)
		rows := []domain.Row{&domain.Organization{ID: "org_1"}, &domain.Chat{ID: "chat_1"}, &domain.Chat{ID: "chat_2"}, &domain.Chat{ID: "chat_3"},
			&domain.Turn{ID: "turn_1"}, &domain.Request{ID: "req_1"}, &domain.Request{ID: "req_2"}}
		var written []string
		target := regexp.MustCompile(`^UPDATE ["\x60](\w+)["\x60] .* WHERE id = ["'](\w+)["']`)
		store.Watch(func(query string) {
			if found := target.FindStringSubmatch(query); found != nil {
				written = append(written, found[2])
			}
		})
		for round := range 6 {
			written = nil
			if err := store.Commit(t.Context(), domain.Commit{Rows: rows}); err != nil {
				t.Fatal(err)
			}
			if want := []string{"org_1", "chat_1", "chat_2", "chat_3", "turn_1", "req_1", "req_2"}; round > 0 && !slices.Equal(written, want) {
				t.Fatalf("round %d wrote %v, want %v", round, written, want)
			}
			slices.Reverse(rows)
			rows[round], rows[round+1] = rows[round+1], rows[round]
		}
	})
}

func TestClosedStoreIsUnavailable(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store := migrated(t, o)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		everythingIs(t, t.Context(), store, domain.CodeUnavailable)
	})
}

func TestDeadlineOfTheCallerIsKept(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store := migrated(t, o)
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		everythingIs(t, ctx, store, domain.CodeUnavailable)
		_, err := store.Chat(ctx, "chat_1")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded inside", err)
		}
	})
}

func TestMissingTablesAreNotTakenForMissingRows(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		everythingIs(t, t.Context(), opened(t, o), domain.CodeInternal)
	})
}

// everythingIs tries one of each way into the store, except Ready.
func everythingIs(t *testing.T, ctx context.Context, store *repository.Store, code domain.Code) {
	t.Helper()
	commit := domain.Commit{Rows: []domain.Row{&domain.Organization{ID: "org_1"}}}
	for name, try := range map[string]func() error{
		"Commit":       func() error { return store.Commit(ctx, commit) },
		"FirstStart":   func() error { _, err := store.FirstStart(ctx, commit); return err },
		"Chat":         func() error { _, err := store.Chat(ctx, "chat_1"); return err },
		"Bots":         func() error { _, err := store.Bots(ctx, "org_1", "mem_1", domain.Page{}); return err },
		"StepFacts":    func() error { _, err := store.StepFacts(ctx, "turn_1"); return err },
		"CallFacts":    func() error { _, err := store.CallFacts(ctx, "call_1"); return err },
		"TurnFacts":    func() error { _, err := store.TurnFacts(ctx, "turn_1"); return err },
		"RenewLease":   func() error { _, err := store.RenewLease(ctx, "call_1", "x", time.Now()); return err },
		"PushTurn":     func() error { _, err := store.PushTurn(ctx, "turn_1", 1, time.Now()); return err },
		"Due":          func() error { _, err := store.Due(ctx, domain.TaskCallSend, time.Now(), 1); return err },
		"MemberEvents": func() error { _, err := store.MemberEvents(ctx, "mem_1", 0, 1); return err },
		"LastPosition": func() error { _, err := store.LastPosition(ctx, "mem_1"); return err },
		"TouchToken":   func() error { return store.TouchToken(ctx, "tok_1", time.Now()) },
		"Standing":     func() error { _, err := store.Standing(ctx, time.Now()); return err },
		"PendingLike":  func() error { _, err := store.PendingLike(ctx, domain.Grant{}, "", 1); return err },
		"Principal":    func() error { _, err := store.Principal(ctx, "hash"); return err },
	} {
		if err := try(); !domain.IsCode(err, code) {
			t.Errorf("%s: got %v, want code %q", name, err, code)
		}
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("not a database, and long enough to be seen as none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options repository.Options
		code    domain.Code
	}{
		"nothing":           {repository.Options{}, domain.CodeInvalid},
		"broken URL":        {repository.Options{URL: "postgres://%zz"}, domain.CodeInvalid},
		"folder is a file":  {repository.Options{File: filepath.Join(file, "x.db")}, domain.CodeUnavailable},
		"nobody listens":    {repository.Options{URL: "postgres://u:hidden@127.0.0.1:1/x?sslmode=disable"}, domain.CodeUnavailable},
		"file is something": {repository.Options{File: file}, domain.CodeInternal},
	} {
		store, err := repository.Open(t.Context(), c.options)
		if !domain.IsCode(err, c.code) || store != nil {
			t.Errorf("%s: got %v, want code %q", name, err, c.code)
		}
	}
}

func TestFileIsForItsOwnerAlone(t *testing.T) {
	o := onSQLite(t)
	migrated(t, o)
	for _, name := range []string{o.File, o.File + "-wal", filepath.Dir(o.File)} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", filepath.Base(name), info.Mode().Perm())
		}
	}
}

func TestDatabaseThatGoesAwayAndComesBack(t *testing.T) {
	needPostgres(t)
	o := onPostgres(t)
	gate, o := behindGate(t, o)
	store := migrated(t, o)
	chat := &domain.Chat{ID: "chat_1", Member: "mem_1"}
	if err := store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{chat}}); err != nil {
		t.Fatal(err)
	}
	gate.shut()
	everythingIs(t, t.Context(), store, domain.CodeUnavailable)
	if err := store.Ready(t.Context()); !domain.IsCode(err, domain.CodeUnavailable) {
		t.Errorf("Ready: got %v, want unavailable", err)
	}
	if err := store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{chat}}); !domain.IsCode(err, domain.CodeUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	gate.open(t)
	if err := store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{chat}}); err != nil || chat.Version != 2 {
		t.Errorf("after it came back: %v, version %d", err, chat.Version)
	}
}

func TestServerThatShutsDownInACommit(t *testing.T) {
	needPostgres(t)
	o := onPostgres(t)
	store := migrated(t, o)
	chat := &domain.Chat{ID: "chat_1", Member: "mem_1"}
	if err := store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{chat}}); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, o.URL)
	exec(t, conn, "BEGIN")
	exec(t, conn, "SELECT 1 FROM chats FOR UPDATE")
	result := make(chan error, 1)
	go func() { result <- store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{chat}}) }()
	watch := connect(t, o.URL)
	ended := false
	for !ended {
		err := watch.QueryRow(t.Context(), `SELECT COALESCE(bool_or(pg_terminate_backend(pid)), false) FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE "chats"%' AND pg_blocking_pids(pid) @> ARRAY[$1::int]`,
			conn.PgConn().PID()).Scan(&ended)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-result; !domain.IsCode(err, domain.CodeUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	if chat.Version != 1 {
		t.Errorf("version %d, want 1", chat.Version)
	}
}

func TestFailureOfTheCommitItselfIsReturned(t *testing.T) {
	needPostgres(t)
	o := onPostgres(t)
	store := migrated(t, o)
	conn := connect(t, o.URL)
	exec(t, conn, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE EXCEPTION 'no' USING ERRCODE = 'serialization_failure'; END $$`)
	exec(t, conn, `CREATE CONSTRAINT TRIGGER late AFTER INSERT ON chats DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	chat := &domain.Chat{ID: "chat_1", Member: "mem_1"}
	err := store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{chat}})
	if !domain.IsCode(err, domain.CodeConflict) || chat.Version != 0 {
		t.Errorf("got %v and version %d, want conflict and 0", err, chat.Version)
	}
}

// A commit that is refused must not go on holding its locks in the pool, also when
// its caller is gone by then.
func TestRefusedCommitLetsGoOfItsRows(t *testing.T) {
	needPostgres(t)
	o := onPostgres(t)
	store := migrated(t, o)
	org, chat := &domain.Organization{ID: "org_1"}, &domain.Chat{ID: "chat_1", Member: "mem_1"}
	if err := store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{org, chat}}); err != nil {
		t.Fatal(err)
	}
	moved := *chat
	moved.Version = 7
	err := store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{org, &moved, &domain.Turn{ID: "turn_1"}}})
	if !domain.IsCode(err, domain.CodeConflict) || org.Version != 1 || moved.Version != 7 {
		t.Fatalf("got %v and versions %d and %d, want conflict, 1 and 7", err, org.Version, moved.Version)
	}
	conn := connect(t, o.URL)
	exec(t, conn, "SELECT 1 FROM organizations FOR UPDATE NOWAIT")
	if _, err := store.Turn(t.Context(), "turn_1"); !domain.IsCode(err, domain.CodeNotFound) {
		t.Errorf("the Turn of a refused commit: got %v, want not_found", err)
	}
}

func TestDecisionsTakeFewRoundTrips(t *testing.T) {
	needPostgres(t)
	gate, o := behindGate(t, onPostgres(t))
	o.MaxConns = 1
	store := migrated(t, o)
	for _, query := range plenty {
		must(t, store.Exec(t.Context(), fewer(query)))
	}
	chat, err := store.Chat(t.Context(), "chat_1")
	must(t, err)
	turn, err := store.Turn(t.Context(), "turn_1")
	must(t, err)
	for _, c := range []struct {
		name string
		try  func() error
	}{
		{"StepFacts", func() error { _, err := store.StepFacts(t.Context(), "turn_1"); return err }},
		{"CallFacts", func() error { _, err := store.CallFacts(t.Context(), "call_1"); return err }},
		{"TurnFacts", func() error { _, err := store.TurnFacts(t.Context(), "turn_1"); return err }},
		{"Commit", func() error {
			return store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{&chat, &turn}, CloseChats: []domain.ChatID{"chat_9"}})
		}},
	} {
		must(t, c.try()) // makes the statements known to the connection
		before := gate.trips.Load()
		must(t, c.try())
		if trips := gate.trips.Load() - before; trips != 2 {
			t.Errorf("%s took %d round trips, want 2", c.name, trips)
		}
	}
}

// gate is a way to the database that can be shut. It counts how often the asking side
// spoke after it had heard.
type gate struct {
	trips    atomic.Int64
	target   string
	address  string
	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	running  sync.WaitGroup
}

func behindGate(t *testing.T, o repository.Options) (*gate, repository.Options) {
	t.Helper()
	address, err := url.Parse(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{target: address.Host, address: "127.0.0.1:0"}
	g.open(t)
	t.Cleanup(g.shut)
	address.Host = g.address
	return g, repository.Options{URL: address.String()}
}

func (g *gate) open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	g.listener, g.address = listener, listener.Addr().String()
	g.running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", g.target)
			if err != nil {
				_ = in.Close()
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, in, out)
			g.mu.Unlock()
			heard := &atomic.Bool{}
			heard.Store(true)
			pipe := func(to io.Writer, from io.Reader, closer io.Closer) {
				_, _ = io.Copy(to, from)
				_ = closer.Close()
			}
			g.running.Go(func() { pipe(writer(func(p []byte) (int, error) { heard.Store(true); return in.Write(p) }), out, in) })
			g.running.Go(func() {
				pipe(writer(func(p []byte) (int, error) {
					if heard.Swap(false) {
						g.trips.Add(1)
					}
					return out.Write(p)
				}), in, out)
			})
		}
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func (g *gate) shut() {
	_ = g.listener.Close()
	g.mu.Lock()
	for _, conn := range g.conns {
		_ = conn.Close()
	}
	g.conns = nil
	g.mu.Unlock()
	g.running.Wait()
}
