// Package engine is the only writer of state. It loads what a decision needs, asks
// the pure functions of domain, commits their outcome with compare-and-set on
// versions in one transaction, and only then rings workers and readers. On a
// conflict it loads and decides again; it never writes an old decision again.
//
// It never calls a model or an App, and knows nothing of HTTP, SQL or Redis: those
// stand behind the ports in ports.go.
package engine

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"openbot/domain"
)

// Options are what an Engine is made of.
type Options struct {
	Store   Store
	Ringer  Ringer
	Live    Live
	Limiter Limiter
	Models  Models
	// Sealer encrypts secrets. Without one nothing that needs a secret or a signature
	// can be done, and no Request can be decided.
	Sealer Sealer
	Logger *slog.Logger
	// Meter is told what was committed; nil counts nothing.
	Meter Meter
	// Clock gives the time; nil means the machine's.
	Clock func() time.Time
	// DefaultModel is that of Bots without one of their own, as provider:model.
	DefaultModel string
	// JudgeModel reads Rules where the organization names no other; "" means
	// DefaultModel.
	JudgeModel string
	// ReviewerModel leaves verdicts on new Requests where the organization turned the
	// automatic reviewer on; "" means DefaultModel.
	ReviewerModel string
	// JudgeLimit is how long the judge, and the reviewer, may take about one attempt; 0 means
	// 15 s.
	JudgeLimit time.Duration
	// ReviewLimit and ReviewSteps bound a review; 0 means 2 minutes and 5 model steps.
	ReviewLimit time.Duration
	ReviewSteps int
	// CheckModel says in one line what is wrong with a model's name; nil takes any.
	CheckModel func(model string) error
	// CheckURL says in one line what is wrong with an App's address; nil takes any.
	CheckURL func(address string) error
	// PublicURL is where people reach the inbox, without a slash at its end. "" means that
	// nobody can be sent a link to it.
	PublicURL string
	// MailDomain is the domain that mail is sent from; "" means that no mail is sent.
	MailDomain string
	// AllowCommands lets admins connect Apps that are started as commands.
	AllowCommands bool
}

// Engine carries out commands. It keeps no state of its own beside caches, so any
// number of engines may work on one store.
type Engine struct {
	Options
	lanes [laneCount]chan struct{}
	seed  maphash.Seed
	tools preparedTools
	keys  keyring
}

// laneCount bounds how many Chats of one process commit at the same time; it is
// far above the pool of any database.
const laneCount = 512

// maxDecides is how often a decision is made anew before the caller hears of the
// conflict.
const maxDecides = 40

// errMoved is given by a plan whose rows moved on while it loaded them: it is made
// again, as after a conflict.
var errMoved = domain.Errorf(domain.CodeConflict, "Conflict", "This changed while it was read. Try again.")

// New makes an Engine.
func New(o Options) *Engine {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Sealer == nil {
		o.Sealer = noSealer{}
	}
	o.JudgeModel = cmp.Or(o.JudgeModel, o.DefaultModel)
	o.ReviewerModel = cmp.Or(o.ReviewerModel, o.DefaultModel)
	o.JudgeLimit = cmp.Or(o.JudgeLimit, DefaultJudgeLimit)
	o.ReviewLimit = cmp.Or(o.ReviewLimit, DefaultReviewLimit)
	o.ReviewSteps = cmp.Or(o.ReviewSteps, DefaultReviewSteps)
	e := &Engine{Options: o, seed: maphash.MakeSeed()}
	for i := range e.lanes {
		e.lanes[i] = make(chan struct{}, 1)
	}
	return e
}

// now is the time in the precision that rows keep.
func (e *Engine) now() time.Time { return e.Clock().UTC().Truncate(time.Microsecond) }

// newID makes an ID: a prefix and a UUIDv7 in hex.
func newID[T ~string](prefix string) T {
	id := uuid.Must(uuid.NewV7())
	return T(prefix + strings.ReplaceAll(id.String(), "-", ""))
}

// decide carries out one decision: plan loads, decides and fills the draft, which
// is then committed. Decisions about the same subject take turns within this
// process, so that many answers at once cost one try each; between processes the
// versions decide and the loser plans again.
func (e *Engine) decide(ctx context.Context, subject string, plan func(d *draft) error) error {
	lane := e.lanes[maphash.String(e.seed, subject)%laneCount]
	select {
	case lane <- struct{}{}:
		defer func() { <-lane }()
	case <-ctx.Done():
		return domain.Wrap(domain.CodeUnavailable, "Unavailable", "The server was too busy to take this in time. Try again.", ctx.Err())
	}
	keeping := keepingFrom(ctx)
	for try := 1; ; try++ {
		d := &draft{at: e.now()}
		d.commit.At = d.at
		if err := plan(d); err != nil {
			if errors.Is(err, errMoved) && try < maxDecides {
				continue
			}
			return err
		}
		if d.empty() && (keeping == nil || d.result == nil) {
			return nil // with a key, the answer that nothing had to change is kept too
		}
		if err := e.attest(ctx, d); err != nil {
			return err
		}
		if err := keeping.keep(d); err != nil {
			return err
		}
		d.sealGates()
		d.tellWebhooks()
		notes := e.notes(d)
		err := e.Store.Commit(ctx, d.commit)
		if err == nil {
			e.announce(ctx, d)
			for _, tell := range notes {
				tell(ctx)
			}
			return nil
		}
		if !domain.IsCode(err, domain.CodeConflict) {
			return err
		}
		if kept, found := e.alreadyKept(ctx, keeping); found {
			return kept
		}
		if try == maxDecides {
			return err
		}
		select {
		case <-time.After(time.Duration(rand.Int64N(int64(min(try, 10)) * int64(2*time.Millisecond)))):
		case <-ctx.Done():
			return err
		}
	}
}

// announce rings workers and readers after a commit. Both are best effort: a ring
// that is lost is made up for by the sweep.
func (e *Engine) announce(ctx context.Context, d *draft) {
	ctx = context.WithoutCancel(ctx)
	tasks := d.rings()
	if d.onward != nil {
		tasks = d.keepStep(tasks)
	}
	if len(tasks) > 0 {
		e.Ringer.Ring(ctx, tasks...)
	}
	if streams := d.streams(); len(streams) > 0 {
		e.Live.Publish(ctx, streams...)
	}
}

// keepStep takes the step that the worker of a call goes on with out of what is rung
// for.
func (d *draft) keepStep(tasks []domain.Task) []domain.Task {
	return slices.DeleteFunc(tasks, func(t domain.Task) bool {
		if t.Kind != domain.TaskTurnStep || t.Subject != string(d.onward.Call.Turn) || !t.At.IsZero() {
			return false
		}
		d.onward.Step = &t
		return true
	})
}

// Ring wakes a worker for a task that its taker could not finish.
func (e *Engine) Ring(ctx context.Context, task domain.Task) {
	e.Ringer.Ring(context.WithoutCancel(ctx), task)
}
