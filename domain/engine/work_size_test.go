package engine_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"openbot/domain"
)

// sized reads how large a test is; by hand it can be larger than where every test runs.
func sized(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s must be a number above 0", variable)
	}
	return n
}

// grow puts n pieces of work below a piece, in layers of up to fifty, each with a Turn
// that is due.
func (w *world) grow(top domain.Delegation, n int) []domain.DelegationID {
	w.t.Helper()
	path, err := w.store.Work(w.t.Context(), top.ID)
	w.must(err)
	parents := []domain.Delegation{path[0]}
	var ids []domain.DelegationID
	for next := 0; n > 0; next++ {
		var rows []domain.Row
		above := parents[next]
		for range min(n, 50) {
			now := w.clock.now()
			due := now.Add(-time.Second)
			g := domain.Delegation{ID: newID[domain.DelegationID](domain.PrefixDelegation), Organization: above.Organization, Member: above.Member,
				Execution: domain.ExecutionID(uuid.Must(uuid.NewV7()).String()), Above: above.ID, Parent: domain.WorkParent{Chat: above.Chat}, Giver: above.Bot, Bot: above.Bot,
				Chat: newID[domain.ChatID](domain.PrefixChat), Status: domain.DelegationQueued, Task: "/say done", Limits: domain.Limits{TimeMs: domain.MaxWorkTimeMs},
				Authority: above.Authority, StartedAt: &now, Clock: domain.WorkClock{Start: now.UnixMicro(), Window: now.UnixMicro()}, CreatedAt: now, UpdatedAt: now}
			turn := domain.Turn{ID: newID[domain.TurnID](domain.PrefixTurn), Organization: g.Organization, Chat: g.Chat, Bot: g.Bot, Member: g.Member,
				Authority: g.Authority, Status: domain.TurnQueued, DueAt: &due, CreatedAt: now, UpdatedAt: now}
			chat := domain.Chat{ID: g.Chat, Organization: g.Organization, Member: g.Member, Bot: g.Bot, Kind: domain.ChatTask, Status: domain.ChatRunning,
				Parent: &domain.ChatParent{Chat: above.Chat, Delegation: g.ID}, Turn: turn.ID, LastTurn: turn.ID, CreatedAt: now, UpdatedAt: now}
			rows = append(rows, &g, &turn, &chat)
			parents = append(parents, g)
			ids = append(ids, g.ID)
			n--
		}
		w.must(w.store.Commit(w.t.Context(), domain.Commit{At: w.clock.now(), Rows: rows}))
	}
	return ids
}

func newID[T ~string](prefix string) T {
	return T(prefix + strings.ReplaceAll(uuid.Must(uuid.NewV7()).String(), "-", ""))
}

// rowsOf counts the rows that commits write until it is called.
func (w *world) rowsOf() func() int {
	rows := 0
	w.store.before = func(_ int, c domain.Commit) error {
		rows += len(c.Rows)
		return nil
	}
	return func() int {
		w.store.before = nil
		return rows
	}
}

// A pause, its end and a cancel of the root are one row each, however much stands below,
// and hold all of it from that commit on.
func TestPauseContinueAndCancelOfALargeTreeTakeEffectAtOnce(t *testing.T) {
	w := newWorld(t)
	n := sized(t, "OPENBOT_TEST_TREE", 120)
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 10_000}), `/call mail__send {"n":1}`))
	w.run()
	top := w.onlyGiven(chat)
	ids := w.grow(top, n)

	wantHeld := func(what string, held func(domain.Held) bool) {
		t.Helper()
		for i := 0; i < len(ids); i += max(len(ids)/50, 1) {
			v := w.work1(ids[i])
			if !held(domain.HeldBy(append([]domain.Delegation{v.Delegation}, v.Above...))) {
				t.Fatalf("after the %s piece %d is not held", what, i)
			}
		}
	}
	w.clock.forward(10 * time.Second)
	rows, began := w.rowsOf(), time.Now()
	w.must(w.engine.ElapseWork(t.Context(), top.ID))
	written, took := rows(), time.Since(began)
	wantHeld("pause", func(h domain.Held) bool { return h.Paused == top.ID })
	if written > 5 {
		t.Errorf("the pause of %d pieces wrote %d rows", n, written)
	}
	t.Logf("pause of %d pieces: %d rows, %s", n, written, took)

	w.workOff(200) // whatever comes up is parked
	steps := 0
	for i := range min(n, 100) {
		steps += int(w.work1(ids[i]).Delegation.Steps)
	}
	if steps != 0 {
		t.Fatalf("%d steps were taken in the pause", steps)
	}

	rows, began = w.rowsOf(), time.Now()
	i := 0
	for ; w.pending()[i].Limit == ""; i++ {
	}
	w.mustAnswer(w.pending()[i], domain.DecisionAllow, domain.ScopeOnce)
	task, ok := w.rings.next(w.clock.now())
	for ok && task.Kind != domain.TaskCallSend {
		task, ok = w.rings.next(w.clock.now())
	}
	w.work(task)
	written, took = rows(), time.Since(began)
	wantHeld("end of the pause", func(h domain.Held) bool { return h.Free() })
	if written > 10 {
		t.Errorf("the end of the pause of %d pieces wrote %d rows", n, written)
	}
	t.Logf("end of the pause: %d rows, %s", written, took)

	rows, began = w.rowsOf(), time.Now()
	_, err := w.engine.CancelDelegation(t.Context(), w.me, top.ID, "k")
	w.must(err)
	written, took = rows(), time.Since(began)
	wantHeld("cancel", func(h domain.Held) bool { return h.Stopping == top.ID })
	if written > 3 {
		t.Errorf("the cancel of %d pieces wrote %d rows", n, written)
	}
	t.Logf("cancel: %d rows, %s", written, took)

	commits, rows, began := w.store.count(), w.rowsOf(), time.Now()
	w.must(w.engine.CloseWork(t.Context(), top.ID))
	t.Logf("release of %d pieces: %d commits, %d rows, %s", n, w.store.count()-commits, rows(), time.Since(began))
	for _, id := range ids {
		if g := w.work1(id).Delegation; g.Status != domain.DelegationCancelled || g.Steps > 0 {
			t.Fatalf("%s is %s after %d steps", id, g.Status, g.Steps)
		}
	}
}

// workOff works off some of what is due.
func (w *world) workOff(n int) {
	w.t.Helper()
	tasks, err := w.engine.DueTasks(w.t.Context(), domain.TaskTurnStep, 0, n)
	w.must(err)
	for _, task := range tasks {
		w.work(task)
	}
}

// Many ends at the same moment are told to the giving Chat in few Turns.
func TestManyEndsAtOnceTakeABoundedNumberOfTurns(t *testing.T) {
	w := newWorld(t)
	n := sized(t, "OPENBOT_TEST_ENDS", 120)
	chat := w.newChat()
	for i := 0; i < n; i += 40 {
		var lines []string
		for j := i; j < min(i+40, n); j++ {
			lines = append(lines, delegate(limited(map[string]any{"timeMs": 3_600_000}), fmt.Sprintf("/say end %d.", j)))
		}
		w.say(chat, lines...)
	}
	// All end before anything is told.
	for {
		task, ok := w.rings.next(w.clock.now())
		if !ok {
			break
		}
		if task.Kind != domain.TaskWorkNotify {
			w.work(task)
		}
	}
	before := len(w.turns(chat))
	w.sweepFor(10 * time.Second)
	turns := w.turns(chat)
	if got := len(turns) - before; got < 1 || got > 3 {
		t.Errorf("%d ends took %d Turns", n, got)
	}
	told := map[string]int{}
	for _, text := range w.history(chat) {
		if rest, ok := strings.CutPrefix(text, "notice: "); ok {
			_, result, _ := strings.Cut(rest, "Result:\n")
			told[result]++
		}
	}
	for i := range n {
		if key := fmt.Sprintf("end %d.", i); told[key] != 1 {
			t.Fatalf("%q came %d times", key, told[key])
		}
	}
}
