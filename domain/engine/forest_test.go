package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/glebarez/go-sqlite" // to look into the database beside the store
	"pgregory.net/rapid"

	"openbot/domain"
	"openbot/domain/engine"
)

// forest is a world in which work is given, limited and stopped at random, on two
// engines, as two processes have them. It holds workers in the middle of what they do.
type forest struct {
	*world
	rapid  *rapid.T
	other  *engine.Engine // another process on the same database
	beside *sql.DB
	chats  []domain.ChatID // plain ones of the person
	bots   []domain.BotID  // besides the Main Bot: one that it owns, one that it does not
	steps  []*engine.Step  // model calls that are out
	sends  []*engine.Sending

	work    map[domain.DelegationID]domain.Delegation // as it stands
	order   []domain.DelegationID
	used    map[domain.DelegationID]time.Duration     // counted moment by moment
	ended   map[domain.DelegationID]domain.Delegation // as it ended
	covered map[domain.DelegationID]bool              // it ended while work above it was being stopped
	silent  map[domain.DelegationID]bool              // the Bot that gave it stopped it
	deleted map[domain.ChatID]bool
	starts  map[domain.ChatID]started
	holds   map[domain.ChatID]string

	most    int           // pieces of work in this history, about
	fan     int           // pieces that one step gives at most
	chain   bool          // each piece gives one more
	closing bool          // Bots begin nothing any more
	quiet   bool          // work comes about undisturbed
	last    []domain.Task // what the last sweep found
	reached map[string]int
}

// started counts what began in a Chat: steps that were taken, calls that were saved and
// calls that went out.
type started struct{ steps, calls, sends int64 }

// priced makes each token cost a nano-USD. It is never asked: the test says what a model
// answers.
type priced struct{ engine.Models }

func (priced) Price(string) (domain.ModelPrice, bool) {
	return domain.ModelPrice{Input: 1000, Output: 1000}, true
}

var seeded struct {
	sync.Once
	bytes  []byte
	secret string
	mail   domain.Connection
	bots   []domain.BotID
}

// seed makes the database with which each history begins: a person, an App and Bots.
func seed(t *testing.T) {
	t.Helper()
	seeded.Do(func() {
		file := filepath.Join(t.TempDir(), "seed.db")
		w := worldIn(t, file)
		w.begin()
		w.reads("list")
		seeded.secret, seeded.mail = w.secret, w.mail
		seeded.bots = []domain.BotID{w.bot("Own", "", w.main()), w.sharedBot("Shared").ID}
		w.must(w.store.Close())
		var err error
		seeded.bytes, err = os.ReadFile(file)
		w.must(err)
	})
}

// newForest begins a history.
func newForest(t *rapid.T, folder string, reached map[string]int) *forest {
	file, err := os.CreateTemp(folder, "forest-*.db")
	if err == nil {
		_, err = file.Write(seeded.bytes)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	name := file.Name()
	t.Cleanup(func() {
		for _, end := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(name + end)
		}
	})
	f := &forest{world: worldIn(t, name), rapid: t, bots: seeded.bots, reached: reached,
		work: map[domain.DelegationID]domain.Delegation{}, used: map[domain.DelegationID]time.Duration{},
		ended: map[domain.DelegationID]domain.Delegation{}, covered: map[domain.DelegationID]bool{}, silent: map[domain.DelegationID]bool{},
		deleted: map[domain.ChatID]bool{}, starts: map[domain.ChatID]started{}, holds: map[domain.ChatID]string{}}
	f.secret, f.mail, f.models = seeded.secret, seeded.mail, priced{f.models}
	f.crash()
	f.me, err = f.engine.Authenticate(t.Context(), f.secret)
	f.must(err)
	f.beside, err = sql.Open("sqlite", name)
	f.must(err)
	t.Cleanup(func() { _ = f.beside.Close() })
	for range rapid.IntRange(1, 2).Draw(t, "chats") {
		f.chats = append(f.chats, f.newChat())
	}
	// A few pieces, a chain, or many at once: each is rare enough to stay cheap.
	f.most, f.fan = rapid.IntRange(3, 9).Draw(t, "pieces"), 3
	switch rapid.IntRange(0, 19).Draw(t, "shape") {
	case 0:
		f.most, f.chain = 13, true
	case 1:
		f.most, f.fan = 50, 50
	}
	return f
}

// crash is the death of both processes: what was rung is lost, and so is what their
// workers were at.
func (f *forest) crash() {
	f.restart()
	f.other = engine.New(engine.Options{Store: f.store, Ringer: f.rings, Live: silence{}, Models: f.models, Sealer: sealed{},
		Clock: f.clock.now, DefaultModel: "playbook"})
	f.steps, f.sends = nil, nil
}

func (f *forest) draw(what string, n int) int { return rapid.IntRange(0, n-1).Draw(f.rapid, what) }

// chance is true once in n draws.
func (f *forest) chance(what string, n int) bool { return f.draw(what, n) == 0 }

func (f *forest) ctx() context.Context { return context.WithoutCancel(f.t.Context()) }

// load reads what changed since the last look.
func (f *forest) load() {
	f.t.Helper()
	rows, err := f.beside.Query("SELECT id, version, cost_nanos FROM delegations ORDER BY id")
	f.must(err)
	defer func() { _ = rows.Close() }()
	f.order = f.order[:0]
	for rows.Next() {
		var id domain.DelegationID
		var version, cost int64
		f.must(rows.Scan(&id, &version, &cost))
		f.order = append(f.order, id)
		if g := f.work[id]; g.Version != version || g.CostNanos != cost {
			g, err := f.store.Delegation(f.ctx(), id)
			f.must(err)
			f.work[id] = g
		}
	}
	f.must(rows.Err())
}

// path gives a piece of work and all work above it, as loaded, nearest first.
func (f *forest) path(id domain.DelegationID) []domain.Delegation {
	var path []domain.Delegation
	for ; id != ""; id = f.work[id].Above {
		path = append(path, f.work[id])
	}
	return path
}

// forward lets time pass, and counts it for all work that runs.
func (f *forest) forward(by time.Duration) {
	f.load()
	for _, id := range f.order {
		if g := f.work[id]; g.StartedAt != nil && g.Open() && domain.HeldBy(f.path(id)).Paused == "" {
			f.used[id] += by
		}
	}
	f.clock.forward(by)
}

// newest gives the work of each task Chat: its newest round.
func (f *forest) newest() map[domain.ChatID]domain.Delegation {
	newest := map[domain.ChatID]domain.Delegation{}
	for _, id := range f.order {
		g := f.work[id]
		newest[g.Chat] = g
	}
	return newest
}

// count gives the one number of a query.
func (f *forest) count(query string, args ...any) int {
	f.t.Helper()
	var n int
	f.must(f.beside.QueryRow(query, args...).Scan(&n))
	return n
}

// texts gives all texts of one column, for a failure.
func (f *forest) list(query string, args ...any) []string {
	f.t.Helper()
	rows, err := f.beside.Query(query, args...)
	f.must(err)
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	f.must(err)
	var out []string
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		f.must(rows.Scan(into...))
		out = append(out, strings.TrimSuffix(fmt.Sprintln(values...), "\n"))
	}
	f.must(rows.Err())
	return out
}
