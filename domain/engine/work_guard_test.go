package engine_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/repository"
)

// guarded has PostgreSQL look, in the last moment of each commit, whether a step or a call
// began below work that is paused or was stopped: what the engine saw before counts for
// nothing there.
const guarded = `
CREATE FUNCTION began() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (WITH RECURSIVE above (id, above_id) AS (
			SELECT d.id, d.above_id FROM delegations d JOIN chats c ON c.delegation_id = d.id WHERE c.id = NEW.chat_id
			UNION ALL SELECT d.id, d.above_id FROM above JOIN delegations d ON d.id = above.above_id)
		SELECT 1 FROM above JOIN delegations d ON d.id = above.id WHERE d.ended_at IS NULL AND (d.pause <> '' OR d.stopping_at IS NOT NULL)) THEN
		RAISE EXCEPTION 'a % of % slipped in beside a pause or a cancel', TG_TABLE_NAME, NEW.chat_id;
	END IF;
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER stepped AFTER UPDATE ON turns DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.steps > OLD.steps) EXECUTE FUNCTION began();
CREATE CONSTRAINT TRIGGER sent AFTER UPDATE ON calls DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.sends > OLD.sends) EXECUTE FUNCTION began();`

// busy is a server of several processes at work on one PostgreSQL.
type busy struct {
	t       *testing.T
	engines []*engine.Engine // each with connections of its own
	bell    *queued
	me      domain.Principal
	look    *sql.DB
	limit   atomic.Int64 // steps until Bots have nothing more to do
	steps   atomic.Int64
	paused  atomic.Int64 // Requests to go on that were answered
}

// queued gives what was rung to whoever asks first, once.
type queued struct {
	mu     sync.Mutex
	tasks  []domain.Task
	seen   map[string]bool
	rung   chan struct{}
	closed chan struct{}
}

func (q *queued) Ring(_ context.Context, tasks ...domain.Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, task := range tasks {
		// What the sweep finds was rung before, and its worker may have dropped it.
		if key := fmt.Sprint(task.Kind, task.Subject, task.Revision); !q.seen[key] || task.Overdue {
			q.seen[key] = true
			q.tasks = append(q.tasks, task)
		}
	}
	select {
	case q.rung <- struct{}{}:
	default:
	}
}

func (q *queued) next() (domain.Task, bool) {
	for {
		q.mu.Lock()
		if len(q.tasks) > 0 {
			i := rand.IntN(min(len(q.tasks), 4))
			task := q.tasks[i]
			q.tasks = slices.Delete(q.tasks, i, i+1)
			more := len(q.tasks) > 0
			q.mu.Unlock()
			if more {
				q.Ring(context.Background())
			}
			return task, true
		}
		q.mu.Unlock()
		select {
		case <-q.rung:
		case <-q.closed:
			return domain.Task{}, false
		}
	}
}

// own makes a database of its own, so that its count of deadlocks is that of the test.
func ownDatabase(t *testing.T) (address string, deadlocks func() int) {
	t.Helper()
	base := os.Getenv("OPENBOT_TEST_DATABASE_URL")
	if base == "" {
		t.Skip("OPENBOT_TEST_DATABASE_URL is not set: the guard of work is NOT TESTED ON POSTGRESQL (make test sets it)")
	}
	name := fmt.Sprintf("openbot_guard_%d", os.Getpid())
	admin, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(query string) {
		t.Helper()
		if _, err := admin.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE DATABASE " + name)
	t.Cleanup(func() {
		exec("DROP DATABASE " + name + " WITH (FORCE)")
		_ = admin.Close()
	})
	at, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "/" + name
	return at.String(), func() int {
		var n int
		if err := admin.QueryRow("SELECT deadlocks FROM pg_stat_database WHERE datname = $1", name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// newBusy starts n processes on a database.
func newBusy(t *testing.T, address string, n int) *busy {
	t.Helper()
	b := &busy{t: t, bell: &queued{seen: map[string]bool{}, rung: make(chan struct{}, 1), closed: make(chan struct{})}}
	for i := range n {
		store, err := repository.Open(t.Context(), repository.Options{URL: address, MaxConns: 8})
		b.must(err)
		t.Cleanup(func() { _ = store.Close() })
		if i == 0 {
			b.must(store.Migrate(t.Context()))
		}
		b.engines = append(b.engines, engine.New(engine.Options{Store: store, Ringer: b.bell, Live: silence{}, Models: priced{}, Sealer: sealed{}, DefaultModel: "playbook"}))
	}
	secret, err := b.engines[0].FirstStart(t.Context(), "")
	b.must(err)
	b.me, err = b.engines[0].Authenticate(t.Context(), secret)
	b.must(err)
	b.look, err = sql.Open("pgx", address)
	b.must(err)
	t.Cleanup(func() { _ = b.look.Close() })
	_, err = b.look.Exec(guarded)
	b.must(err)
	return b
}

func (b *busy) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// fine takes what a person or a worker may be told when others are faster.
func (b *busy) fine(what string, err error) {
	if err != nil && !domain.IsCode(err, domain.CodeConflict) && !domain.IsCode(err, domain.CodeNotFound) {
		b.t.Errorf("%s: %v", what, err)
	}
}

// worker does what is rung until the bell is closed.
func (b *busy) worker(e *engine.Engine) {
	ctx := context.WithoutCancel(b.t.Context())
	for {
		task, ok := b.bell.next()
		if !ok {
			return
		}
		what := string(task.Kind)
		switch task.Kind {
		case domain.TaskTurnStep:
			step, err := e.PrepareStep(ctx, domain.TurnID(task.Subject), task.Revision)
			b.fine(what, err)
			if step != nil {
				b.fine(what, e.CommitStep(ctx, step, b.answer(step)))
			}
		case domain.TaskCallSend:
			taking, err := e.TakeCall(ctx, domain.CallID(task.Subject), task.Revision, true)
			b.fine(what, err)
			if taking.Sending != nil {
				b.fine(what, e.SettleCall(ctx, taking.Sending, false, "so"))
			}
		case domain.TaskWorkElapse:
			b.fine(what, e.ElapseWork(ctx, domain.DelegationID(task.Subject)))
		case domain.TaskWorkNotify:
			b.fine(what, e.NotifyWork(ctx, domain.DelegationID(task.Subject)))
		case domain.TaskWorkClose:
			b.fine(what, e.CloseWork(ctx, domain.DelegationID(task.Subject)))
		case domain.TaskWorkResume:
			b.fine(what, e.ResumeWork(ctx, domain.DelegationID(task.Subject)))
		case domain.TaskCallLapse:
			b.fine(what, e.LapseCall(ctx, domain.CallID(task.Subject)))
		}
	}
}

// answer is what a model says: it gives work while there is none, then reads mails, until
// enough was done.
func (b *busy) answer(step *engine.Step) domain.ModelReply {
	if step.Reply != nil {
		return *step.Reply
	}
	reply := domain.ModelReply{Text: "so", Usage: domain.ModelUsage{InputTokens: 300, OutputTokens: 7}}
	if b.steps.Add(1) > b.limit.Load() {
		return reply
	}
	give := func(n int, budget int) {
		for range n {
			limits := fmt.Sprintf(`{"timeMs":86400000,"budgetMicros":%d}`, budget)
			reply.Calls = append(reply.Calls, domain.ModelCall{Name: "openbot_delegate", Arguments: []byte(`{"task":"work","limits":` + limits + `}`)})
		}
	}
	var depth int
	b.must(b.look.QueryRow(`WITH RECURSIVE above (id, above_id) AS (SELECT d.id, d.above_id FROM delegations d WHERE d.chat_id = $1
		UNION ALL SELECT d.id, d.above_id FROM above JOIN delegations d ON d.id = above.above_id) SELECT count(*) FROM above`, step.Chat()).Scan(&depth))
	var given int
	b.must(b.look.QueryRow("SELECT count(*) FROM delegations WHERE parent_chat_id = $1", step.Chat()).Scan(&given))
	switch {
	case given == 0 && depth == 0:
		give(2, 6)
	case given == 0 && depth == 1:
		give(3, 4)
	case given == 0 && depth == 2:
		give(1, 2)
	case depth == 0:
	default:
		reply.Calls = []domain.ModelCall{{Name: "mail__list", Arguments: []byte(`{"n":1}`)}, {Name: "openbot_list_bots", Arguments: []byte(`{}`)}}
	}
	return reply
}

// decide answers what waits, mostly that the work goes on, until the test is over.
func (b *busy) decide(e *engine.Engine, over <-chan struct{}) {
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	ctx := context.WithoutCancel(b.t.Context())
	for {
		select {
		case <-every.C:
		case <-over:
			return
		}
		list, err := e.Requests(ctx, b.me, domain.RequestFilter{Status: domain.RequestPending}, domain.Page{Limit: 50})
		b.fine("requests", err)
		for _, r := range list {
			a := engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow, Reason: ptr("go on")}
			if rand.IntN(40) == 0 {
				a.Decision = domain.DecisionDeny
			}
			if _, err := e.AnswerRequest(ctx, b.me, r.ID, a); err == nil {
				b.paused.Add(1)
			} else {
				b.fine("answer", err)
			}
		}
	}
}

// sweep rings what is due, as the scheduler does.
func (b *busy) sweep(e *engine.Engine, over <-chan struct{}) {
	every := time.NewTicker(200 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-over:
			return
		}
		for _, kind := range domain.TaskKinds() {
			tasks, err := e.DueTasks(context.WithoutCancel(b.t.Context()), kind, 0, 100)
			b.fine("sweep", err)
			b.bell.Ring(context.Background(), tasks...)
		}
	}
}

// Steps of many pieces of work in several processes run against pauses, decisions and
// cancels of the work above them, while costs are counted up: nothing begins beside a
// pause or a cancel, nobody waits for another in a ring, and the sums are right.
func TestNothingSlipsInBesideAPauseOrACancel(t *testing.T) {
	address, deadlocks := ownDatabase(t)
	b := newBusy(t, address, 2)
	b.limit.Store(250)
	mail := domain.Connection{ID: domain.ConnectionID("con_" + fmt.Sprintf("%032x", 1)), Organization: b.me.Organization, Member: b.me.Member.ID, Name: "mail",
		Transport: domain.TransportHTTP, URL: "https://app.example/mcp", Revision: 1, Health: domain.HealthOK, LookedAt: ptr(time.Now()), CreatedAt: time.Now(), UpdatedAt: time.Now()}
	mail.Look.Tools = []domain.AppTool{{Name: "list", Schema: []byte(anyObject)}}
	b.must(b.engines[0].Store.Commit(t.Context(), domain.Commit{At: time.Now(), Rows: []domain.Row{&mail}}))
	_, err := b.engines[0].ChangeSettings(t.Context(), b.me, func(s *domain.Settings) error {
		s.AppReadRules = []string{string(mail.ID) + "/list"}
		return nil
	})
	b.must(err)
	var chats []domain.ChatID
	for range 3 {
		chat, err := b.engines[0].CreateChat(t.Context(), b.me, engine.NewChat{})
		b.must(err)
		chats = append(chats, chat.ID)
	}
	over := make(chan struct{})
	var workers, others sync.WaitGroup
	for i := range 6 {
		workers.Go(func() { b.worker(b.engines[i%2]) })
	}
	others.Go(func() { b.decide(b.engines[0], over) })
	others.Go(func() { b.sweep(b.engines[1], over) })
	for _, chat := range chats {
		_, err := b.engines[0].PostMessage(t.Context(), b.me, chat, "begin")
		b.must(err)
	}
	stopped := 0
	wait := time.NewTicker(20 * time.Millisecond)
	defer wait.Stop()
	for end := time.Now().Add(90 * time.Second); ; {
		<-wait.C
		var open, busyTurns int
		b.must(b.look.QueryRow("SELECT (SELECT count(*) FROM delegations WHERE ended_at IS NULL OR notice_due_at IS NOT NULL), (SELECT count(*) FROM turns WHERE status NOT IN ('Completed', 'Failed', 'Interrupted'))").Scan(&open, &busyTurns))
		switch steps := b.steps.Load(); {
		case steps > 90 && stopped == 0: // a cancel of one tree's top, in another process than most
			stopped++
			list, err := b.engines[1].Delegations(t.Context(), b.me, chats[0], domain.Page{Limit: 9})
			b.must(err)
			_, err = b.engines[1].CancelDelegation(t.Context(), b.me, list[0].Delegation.ID, "stop")
			b.fine("cancel", err)
		case steps > 150 && stopped == 1:
			stopped++
			_, err := b.engines[0].Interrupt(t.Context(), b.me, chats[1], true)
			b.fine("interrupt", err)
		}
		if stopped == 2 && open == 0 && busyTurns == 0 {
			break
		}
		if time.Now().After(end) || t.Failed() {
			t.Errorf("after %d steps %d pieces of work and %d Turns are open", b.steps.Load(), open, busyTurns)
			break
		}
	}
	close(over)
	others.Wait()
	close(b.bell.closed)
	workers.Wait()
	b.sums()
	if b.paused.Load() < 5 {
		t.Errorf("only %d pauses were decided", b.paused.Load())
	}
	for _, e := range b.engines {
		b.must(e.Store.(*repository.Store).Close()) // what a backend counted is there when it has gone
	}
	_ = b.look.Close()
	if n := deadlocks(); n != 0 {
		t.Errorf("%d times commits waited for each other in a ring", n)
	}
	t.Logf("%d steps, %d decisions", b.steps.Load(), b.paused.Load())
}

// sums compares what work cost with the steps of its Chat and of all work below it.
func (b *busy) sums() {
	rows, err := b.look.Query(`WITH RECURSIVE below (top, id, chat_id) AS (SELECT id, id, chat_id FROM delegations
		UNION ALL SELECT below.top, d.id, d.chat_id FROM below JOIN delegations d ON d.above_id = below.id)
		SELECT d.id, d.cost_nanos, coalesce(sum(t.cost_nanos), 0) FROM below JOIN delegations d ON d.id = below.top LEFT JOIN turns t ON t.chat_id = below.chat_id GROUP BY d.id, d.cost_nanos`)
	b.must(err)
	defer func() { _ = rows.Close() }()
	pieces, dear := 0, int64(0)
	for rows.Next() {
		var id string
		var cost, steps int64
		b.must(rows.Scan(&id, &cost, &steps))
		if cost != steps {
			b.t.Errorf("%s cost %d, its steps and those below %d", id, cost, steps)
		}
		pieces, dear = pieces+1, max(dear, cmp.Or(cost, dear))
	}
	b.must(rows.Err())
	if pieces < 20 || dear < 5000 {
		b.t.Errorf("only %d pieces of work, the dearest at %d", pieces, dear)
	}
}
