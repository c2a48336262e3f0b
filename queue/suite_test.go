package queue

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"openbot/domain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 15 * time.Second

// place is one Redis that the suite runs on.
type place struct {
	t    *testing.T
	url  string                // "" for the embedded one
	mini *miniredis.Miniredis  // nil unless the test can age its keys
	raw  redis.UniversalClient // to look at and damage what is stored
	logs *logs
	busy bool // a machine may be busy: Redis gets longer than a moment
}

// everywhere runs a test on the embedded Redis, on one over TCP and, when
// OPENBOT_TEST_REDIS_URL names one, on a real Redis, whose database 9 it empties.
func everywhere(t *testing.T, test func(t *testing.T, p *place)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, &place{t: t, logs: &logs{}}) })
	outside(t, test)
}

// outside runs a test where several queues can share one Redis.
func outside(t *testing.T, test func(t *testing.T, p *place)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		mini := miniredis.RunT(t)
		test(t, &place{t: t, url: "redis://" + mini.Addr(), mini: mini, logs: &logs{}, busy: true})
	})
	url := os.Getenv("OPENBOT_TEST_REDIS_URL")
	if url == "" {
		return
	}
	t.Run("redis", func(t *testing.T) {
		options, err := redis.ParseURL(url)
		if err != nil {
			t.Fatalf("OPENBOT_TEST_REDIS_URL cannot be used: %v", err)
		}
		options.DB = 9
		raw := redis.NewClient(options)
		t.Cleanup(func() { _ = raw.Close() })
		if err := raw.FlushDB(t.Context()).Err(); err != nil {
			t.Fatalf("the Redis of OPENBOT_TEST_REDIS_URL does not answer: %v", err)
		}
		head, _, _ := strings.Cut(strings.TrimPrefix(url, "redis://"), "/")
		test(t, &place{t: t, url: "redis://" + head + "/9", raw: raw, logs: &logs{}, busy: true})
	})
}

// open gives a queue on this Redis.
func (p *place) open() *Queue {
	p.t.Helper()
	q, err := Open(p.t.Context(), Options{RedisURL: p.url, Logger: p.logs.logger()})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = q.Close() })
	if p.busy || p.url == "" {
		q.moment = behindLimit
	}
	if p.raw == nil {
		p.raw = q.address.client(monitorProfile)
		p.t.Cleanup(func() { _ = p.raw.Close() })
	}
	return q
}

// serve starts a server that is stopped at the test's end.
func (p *place) serve(q *Queue, concurrency int, handler Handler) *Server {
	p.t.Helper()
	s := NewServer(q, ServerOptions{Concurrency: concurrency}, handler)
	p.t.Cleanup(s.Stop)
	if err := s.Start(); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// task makes a task of a new Turn.
func task(subject string) domain.Task {
	return domain.Task{Kind: domain.TaskTurnStep, Subject: subject, Revision: 1, Urgency: domain.UrgencyTurn}
}

func overdue(t domain.Task) domain.Task {
	t.Overdue = true
	return t
}

// record gives a handler that reports each task to a channel.
func record() (Handler, chan domain.Task) {
	seen := make(chan domain.Task, 1000)
	return func(_ context.Context, t domain.Task) error {
		seen <- t
		return nil
	}, seen
}

// await gives the next value or fails the test.
func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came in time")
		panic("unreachable")
	}
}

// rungUntil rings each second, as the sweep does, until the wanted task comes: on a busy
// machine a ring can miss its moment.
func rungUntil(t *testing.T, q *Queue, seen <-chan domain.Task, want domain.Task, tasks ...domain.Task) {
	t.Helper()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	end := time.After(4 * patience)
	q.Ring(t.Context(), tasks...)
	for {
		select {
		case got := <-seen:
			if got.Subject == want.Subject && got.Revision == want.Revision {
				return
			}
		case <-again.C:
			q.Ring(t.Context(), tasks...)
		case <-end:
			t.Fatalf("%s did not come in time", want.Subject)
		}
	}
}

// none fails the test when something has come already.
func none[T any](t *testing.T, c <-chan T) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("unexpected: %v", v)
	default:
	}
}

// eventually waits until a condition of another party holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	end := time.After(patience)
	for !holds() {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatalf("%s did not happen in time", what)
		}
	}
}

// logs keeps what was logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logs) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}
