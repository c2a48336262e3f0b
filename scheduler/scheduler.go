// Package scheduler looks for what is due and rings for it. It changes no state
// and knows no task's work: a ring that comes twice, from any number of
// schedulers, is one task.
package scheduler

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"openbot/domain"
	"openbot/domain/engine"
)

// Backlog tells how many tasks wait in each queue.
type Backlog interface {
	Backlog(ctx context.Context) (map[domain.Urgency]int, error)
}

// Options are what a Scheduler is made of.
type Options struct {
	Engine  *engine.Engine
	Ringer  engine.Ringer
	Backlog Backlog
	Logger  *slog.Logger
	// Registry gets the scheduler's metrics; nil keeps none.
	Registry prometheus.Registerer
}

const (
	// sweepEvery is how often due rows are looked for.
	sweepEvery = time.Second
	// sweepBatch is how many rows of a kind are rung at a time.
	sweepBatch = 500
	// shortQueue is the length up to which a queue takes rings of the sweep. Beyond
	// it the tasks are there already, and a backlog must not double itself.
	shortQueue = 2000
	// beatEvery is how often the scheduler notes that a server runs.
	beatEvery = 5 * time.Second
	// chainEvery is how often new entries of the audit logs are chained. Until then
	// nothing shows that one was changed.
	chainEvery = time.Second
	// cleanEvery is how often kept answers whose time is up are deleted.
	cleanEvery = 10 * time.Minute
)

// Scheduler sweeps until it is stopped.
type Scheduler struct {
	Options
	catches *prometheus.CounterVec
	mu      sync.Mutex
	quiet   map[string]time.Time // when a failure was logged last
}

// New makes a Scheduler.
func New(o Options) *Scheduler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Scheduler{Options: o, quiet: map[string]time.Time{}}
	s.catches = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openbot_sweep_catches_total",
		Help: "Rows that the sweep rang for, by kind of task."}, []string{"kind"})
	for _, kind := range domain.TaskKinds() {
		s.catches.WithLabelValues(string(kind)) // an alert on a rate misses the first of a kind
	}
	if o.Registry != nil {
		o.Registry.MustRegister(s.catches)
	}
	return s
}

// Run sweeps until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	var cleaning sync.WaitGroup
	cleaning.Go(func() { s.clean(ctx) })
	cleaning.Go(func() { s.chain(ctx) })
	defer cleaning.Wait()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	beaten := time.Time{}
	for {
		if time.Since(beaten) >= beatEvery {
			beaten = time.Now()
			if err := s.Engine.Beat(ctx); err != nil {
				s.complain(ctx, "it was not noted that a server runs", err)
			}
		}
		s.Sweep(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sweep rings for everything that is due now, a batch of each kind.
func (s *Scheduler) Sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	backlog, err := s.Backlog.Backlog(ctx)
	if err != nil {
		s.complain(ctx, "the length of the queues is not known", err)
		backlog = nil // ring all the same: a ring that is there already is one task
	}
	for _, kind := range domain.TaskKinds() {
		tasks, err := s.Engine.DueTasks(ctx, kind, 0, sweepBatch)
		if err != nil {
			s.complain(ctx, "due rows could not be read", err)
			return
		}
		if len(tasks) == sweepBatch {
			tasks = crowd(kind, tasks)
		}
		var ring []domain.Task
		for _, t := range tasks {
			if backlog[t.Urgency] < shortQueue {
				ring = append(ring, t)
			}
		}
		if len(ring) > 0 {
			s.catches.WithLabelValues(string(kind)).Add(float64(len(ring)))
			s.Ringer.Ring(ctx, ring...)
		}
	}
}

// crowd gives what is rung for when more rows of a kind are due than one sweep takes.
func crowd(kind domain.TaskKind, tasks []domain.Task) []domain.Task {
	switch kind {
	case domain.TaskRequestElapse:
		// One task for each would cost more than ending them does.
		tasks = nil
		for share := range domain.ExpiryShares {
			tasks = append(tasks, domain.Task{Kind: domain.TaskRequestsElapse, Subject: strconv.Itoa(share), Urgency: domain.UrgencyTurn, Overdue: true})
		}
	case domain.TaskTurnStep:
		// So many wait that a person's answer must not wait behind them.
		for i := range tasks {
			tasks[i].Urgency = domain.UrgencyRest
		}
	}
	return tasks
}

// chain chains the audit logs. It asks no queue: evidence must not wait for Redis.
func (s *Scheduler) chain(ctx context.Context) {
	tick := time.NewTicker(chainEvery)
	defer tick.Stop()
	for {
		if err := s.Engine.ChainAudit(ctx); err != nil {
			s.complain(ctx, "new entries of the audit log were not chained", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Scheduler) clean(ctx context.Context) {
	tick := time.NewTicker(cleanEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := s.Engine.ForgetAnswers(ctx); err != nil && ctx.Err() == nil {
				s.Logger.Warn("kept answers whose time is up were not deleted", "error", err)
			}
			if err := s.Engine.ForgetDeliveries(ctx); err != nil && ctx.Err() == nil {
				s.Logger.Warn("deliveries that ended long ago were not deleted", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// complain logs a failure that comes back every second once a minute.
func (s *Scheduler) complain(ctx context.Context, what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil || time.Since(s.quiet[what]) < time.Minute {
		return
	}
	s.quiet[what] = time.Now()
	s.Logger.Warn(what, "error", err)
}
