package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"openbot/domain"
)

const (
	// stopLimit is the longest that Stop takes.
	stopLimit = 20 * time.Second
	// handBack is when asynq pushes back what ignores its cancelled context.
	handBack = 15 * time.Second
	// goodbye is how long asynq may take to write to Redis once no handler runs.
	goodbye = 3 * time.Second
	// forwardEvery is how often delayed tasks are looked at, and so about how soon a
	// peer gets what a stopping server hands back.
	forwardEvery = 500 * time.Millisecond
	// forwardLater is the same where nobody waits for a second more.
	forwardLater = time.Second
)

// Handler looks at the row that a task names. It must be safe to run twice at once
// for the same task. An error runs the task again a little later, a few times; a
// panic counts as one (internal). The server logs it, so the handler need not.
type Handler func(ctx context.Context, task domain.Task) error

// ServerOptions says how much a Server does at once.
type ServerOptions struct {
	// Concurrency is the number of tasks at once; below 1 means 10.
	Concurrency int
	// Only names the queues to serve; empty means all, by their weights. A second
	// Server for the answers alone keeps slow work of other kinds from holding them up.
	Only []domain.Urgency
	// Logger gets failures of handlers and what asynq reports; nil means that of the Queue.
	Logger *slog.Logger
}

// Server runs a handler for each task. It can be started and stopped once.
type Server struct {
	queue   *Queue
	logger  *slog.Logger
	handler Handler
	client  redis.UniversalClient
	asynq   *asynq.Server
	waiter  waiter

	fetching context.CancelFunc // ends looking for work
	giveUp   context.CancelFunc // ends talking to Redis
	base     context.Context    // of every handler
	cancel   context.CancelFunc
	running  *running
	upkeep   sync.WaitGroup
	once     sync.Once
}

// NewServer prepares a Server on q; Start starts it.
func NewServer(q *Queue, options ServerOptions, handler Handler) *Server {
	s := &Server{queue: q, handler: handler, running: newRunning(),
		logger: cmp.Or(options.Logger, q.logger)}
	served := options.Only
	if len(served) == 0 {
		served = urgencies
	}
	shares := make(map[string]int, len(served))
	for _, u := range served {
		shares[string(queueOf(u))] = weights[queueOf(u)]
	}
	concurrency := options.Concurrency
	if concurrency < 1 {
		concurrency = 10
	}
	forward := forwardEvery
	if !slices.Contains(served, domain.UrgencyTurn) {
		forward = forwardLater // each look at a queue costs an idle worker two scripts
	}
	var fetch, talk context.Context
	fetch, s.fetching = context.WithCancel(context.Background())
	talk, s.giveUp = context.WithCancel(context.Background())
	s.base, s.cancel = context.WithCancel(context.Background())
	s.waiter = q.bell.waiter(served)
	s.client = q.address.client(serverProfile)
	s.client.AddHook(&hook{queues: len(shares), quiet: make(map[domain.Urgency]time.Time), waiter: s.waiter, bell: q.bell, stop: fetch, talk: talk})
	s.asynq = asynq.NewServerFromRedisClient(s.client, asynq.Config{
		Concurrency: concurrency,
		Queues:      shares,
		// The hook does the waiting, so asynq's own sleep only adds to it.
		TaskCheckInterval:        1, // halves to no sleep; any other lasts a millisecond at least
		DelayedTaskCheckInterval: forward,
		ShutdownTimeout:          handBack,
		BaseContext:              func() context.Context { return s.base },
		IsFailure:                func(err error) bool { return err != nil && !s.isHandBack(err) },
		RetryDelayFunc: func(n int, err error, _ *asynq.Task) time.Duration {
			if s.isHandBack(err) {
				return 0
			}
			return time.Second << min(2*n+1, 5)
		},
		Logger:   newAsynqLog(s.logger),
		LogLevel: asynq.InfoLevel,
	})
	return s
}

// isHandBack reports whether a task comes back through no fault of its own: its
// worker died or is stopping. A poisoned task that kills its worker is not counted
// here; the row counts its attempts.
func (s *Server) isHandBack(err error) bool {
	return errors.Is(err, asynq.ErrLeaseExpired) || (errors.Is(err, context.Canceled) && s.base.Err() != nil)
}

// Start begins to run tasks and returns. It does not wait for Redis: with Redis
// down the server works as soon as it is back. It fails on a Server that was
// started or stopped before.
func (s *Server) Start() error {
	if s.base.Err() != nil {
		return domain.Errorf(domain.CodeInternal, "Queue", "a stopped worker cannot start again; make a new one")
	}
	if err := s.asynq.Start(asynq.HandlerFunc(s.process)); err != nil {
		return domain.Wrap(domain.CodeInternal, "Queue", "the worker cannot start", err)
	}
	s.upkeep.Go(s.keepUp)
	return nil
}

// Stop ends looking for work, cancels the handlers' context and waits until they
// have returned, at most 20 seconds. What was running goes to another worker at once.
func (s *Server) Stop() {
	s.once.Do(s.stop)
}

func (s *Server) stop() {
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	ended := make(chan struct{})
	s.fetching()
	s.cancel()
	idle := s.running.refuse()
	s.waiter.close()
	go func() {
		defer close(ended)
		s.asynq.Stop()
		s.asynq.Shutdown()
		s.upkeep.Wait()
		// Not before: asynq crashes when its subscription is closed under it.
		_ = s.client.Close()
	}()
	defer s.giveUp()
	select {
	case <-idle:
	case <-limit.C:
		s.logger.Error("a handler did not return in time though its context is over; what it held is given back")
		return
	}
	select {
	case <-ended:
		return
	case <-time.After(goodbye):
		s.logger.Warn("Redis did not answer while the worker stopped; what it held is given back later")
	}
	s.giveUp()
	select {
	case <-ended:
	case <-limit.C:
	}
}

// process runs the handler for one task of asynq's.
func (s *Server) process(ctx context.Context, raw *asynq.Task) error {
	if !s.running.enter() {
		return context.Canceled // it came off the queue while stopping
	}
	defer s.running.leave()
	name, _ := asynq.GetQueueName(ctx)
	task, err := decode(raw.Payload(), name)
	if err != nil {
		s.logger.Error("a task in Redis cannot be read and is dropped", "error", err)
		return fmt.Errorf("%w: unreadable", asynq.RevokeTask)
	}
	err = s.call(ctx, task)
	switch {
	case err == nil:
		return nil
	case s.isHandBack(err):
		s.logger.Debug("a task is handed back", "kind", task.Kind, "subject", task.Subject)
	default:
		s.logger.Warn("a task failed", "kind", task.Kind, "subject", task.Subject,
			"revision", task.Revision, "code", domain.CodeOf(err), "error", err)
	}
	return failure{err}
}

// call runs the handler and turns a panic into an error.
func (s *Server) call(ctx context.Context, task domain.Task) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.logger.Error("a handler panicked", "kind", task.Kind, "subject", task.Subject,
				"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = domain.Errorf(domain.CodeInternal, "Queue", "the handler of %s panicked", task.Kind)
		}
	}()
	return s.handler(ctx, task)
}

// failure is a handler's error as asynq keeps it in Redis and shows it: the code
// alone, for messages can hold what people wrote.
type failure struct{ err error }

func (f failure) Error() string { return string(domain.CodeOf(f.err)) }
func (f failure) Unwrap() error { return f.err }

// running knows which handlers still run. asynq forgets a handler as soon as its
// context is cancelled, but what it uses must not be closed under it.
type running struct {
	mu      sync.Mutex
	count   int
	refused bool
	idle    chan struct{}
}

func newRunning() *running { return &running{idle: make(chan struct{})} }

// enter counts a handler in; false once refused.
func (r *running) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused {
		return false
	}
	r.count++
	return true
}

func (r *running) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count--; r.refused && r.count == 0 {
		close(r.idle)
	}
}

// refuse lets no more handlers in and gives a channel that closes when the last has
// returned. It is called once.
func (r *running) refuse() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused = true; r.count == 0 {
		close(r.idle)
	}
	return r.idle
}
