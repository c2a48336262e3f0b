package repository_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"openbot/domain"
	"openbot/repository"
)

// gated is a store with a Chat and a piece of work, and a connection beside it that can
// hold locks.
func gated(t *testing.T) (store *repository.Store, chat *domain.Chat, work *domain.Delegation, beside *pgx.Conn) {
	t.Helper()
	needPostgres(t)
	o := onPostgres(t)
	store = migrated(t, o)
	chat, work = &domain.Chat{ID: "chat_1"}, &domain.Delegation{ID: "dlg_1", Execution: "run_1", Status: domain.DelegationRunning}
	must(t, store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{chat, work}}))
	return store, chat, work, connect(t, o.URL)
}

// waits returns when a backend waits for the connection, and, for depth 2, another one
// for that.
func waits(t *testing.T, conn *pgx.Conn, depth int) {
	t.Helper()
	query := "SELECT count(*) FROM pg_locks a WHERE NOT a.granted AND pg_backend_pid() = ANY(pg_blocking_pids(a.pid))"
	if depth == 2 {
		query = "SELECT count(*) FROM pg_locks a, pg_locks b WHERE NOT a.granted AND NOT b.granted AND pg_backend_pid() = ANY(pg_blocking_pids(a.pid)) AND a.pid = ANY(pg_blocking_pids(b.pid))"
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		var n int
		must(t, conn.QueryRow(t.Context(), query).Scan(&n))
		if n > 0 {
			return
		}
	}
	t.Fatal("nobody waits for the lock")
}

// A pause that is being committed holds up a commit below, which then sees that the gate
// has moved.
func TestACommitBelowWaitsForAPauseAndSeesIt(t *testing.T) {
	store, chat, work, beside := gated(t)
	exec(t, beside, "BEGIN")
	exec(t, beside, "UPDATE delegations SET gate = gate + 1 WHERE id = 'dlg_1'")
	below := make(chan error, 1)
	go func() {
		below <- store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{chat}, Gates: []domain.WorkGate{{ID: work.ID, Gate: work.Gate}}})
	}()
	waits(t, beside, 1)
	exec(t, beside, "COMMIT")
	if err := <-below; !domain.IsCode(err, domain.CodeConflict) || chat.Version != 1 {
		t.Fatalf("a commit beside a pause gave %v", err)
	}
}

// A commit below that has passed its gates holds up a pause until it is over.
func TestAPauseWaitsForACommitBelow(t *testing.T) {
	store, chat, work, beside := gated(t)
	exec(t, beside, "BEGIN")
	exec(t, beside, "SELECT 1 FROM chats WHERE id = 'chat_1' FOR UPDATE")
	below, pause := make(chan error, 1), make(chan error, 1)
	go func() {
		below <- store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{chat}, Gates: []domain.WorkGate{{ID: work.ID, Gate: work.Gate}}})
	}()
	waits(t, beside, 1)
	go func() {
		paused := *work
		paused.Gate++
		pause <- store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{&paused}})
	}()
	waits(t, beside, 2)
	select {
	case err := <-pause:
		t.Fatalf("the pause slipped in beside a commit below: %v", err)
	default:
	}
	exec(t, beside, "ROLLBACK")
	must(t, <-below)
	must(t, <-pause)
}
