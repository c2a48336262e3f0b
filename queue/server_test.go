package queue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"openbot/domain"
)

func TestAnIdleServerStopsAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		handler, seen := record()
		s := p.serve(q, 4, handler)
		q.Ring(t.Context(), task("a"))
		await(t, seen)
		start := time.Now()
		s.Stop()
		took := time.Since(start)
		t.Logf("stopped after %v", took)
		if took > nap/2 {
			t.Fatalf("stopping took %v: it waited for the nap", took)
		}
		if s.Start() == nil {
			t.Fatal("a stopped server started again")
		}
	})
}

func TestStopHandsRunningWorkToAPeer(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
		first := p.serve(q, 4, func(ctx context.Context, _ domain.Task) error {
			started <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
			return ctx.Err()
		})
		q.Ring(t.Context(), task("a"))
		await(t, started)
		peer := q
		if p.url != "" {
			peer = p.open()
		}
		handler, seen := record()
		p.serve(peer, 4, handler)
		start := time.Now()
		first.Stop()
		await(t, ended)
		if got := await(t, seen).Subject; got != "a" {
			t.Fatalf("the peer ran %q", got)
		}
		took := time.Since(start)
		t.Logf("the peer started after %v", took)
		if took > 3*time.Second {
			t.Fatalf("the peer started only after %v", took)
		}
		if p.logs.count("a task failed") != 0 {
			t.Fatal("handing a task back was logged as a failure")
		}
	})
}

func TestStopWaitsForHandlers(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		started, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		s := p.serve(q, 4, func(ctx context.Context, _ domain.Task) error {
			close(started)
			<-ctx.Done()
			<-release
			close(ended)
			return nil
		})
		q.Ring(t.Context(), task("a"))
		await(t, started)
		stopped := make(chan struct{})
		go func() {
			s.Stop()
			close(stopped)
		}()
		eventually(t, "cancelling the handlers", func() bool { return s.base.Err() != nil })
		none(t, stopped)
		close(release)
		await(t, stopped)
		select {
		case <-ended:
		default:
			t.Fatal("the server stopped before its handler ended")
		}
	})
}

func TestAServerThatNeverStartedStops(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		s := NewServer(p.open(), ServerOptions{}, func(context.Context, domain.Task) error { return nil })
		s.Stop()
		s.Stop()
	})
}

func TestAFailedTaskIsLoggedOnceAndRunsAgain(t *testing.T) {
	for what, fail := range map[string]func() error{
		"error": func() error { return domain.Errorf(domain.CodeUnavailable, "App", "the secret word is swordfish") },
		"panic": func() error { panic("swordfish") },
	} {
		t.Run(what, func(t *testing.T) {
			everywhere(t, func(t *testing.T, p *place) {
				q := p.open()
				runs := make(chan int, 10)
				count := 0
				p.serve(q, 1, func(context.Context, domain.Task) error {
					count++
					runs <- count
					if count == 1 {
						return fail()
					}
					return nil
				})
				q.Ring(t.Context(), task("a"))
				await(t, runs)
				var info *asynq.TaskInfo
				eventually(t, "planning a retry", func() bool {
					var err error
					info, err = asynq.NewInspectorFromRedisClient(p.raw).GetTaskInfo("turns", identity(task("a")))
					return err == nil && info.State == asynq.TaskStateRetry
				})
				want := map[string]string{"error": "unavailable", "panic": "internal"}[what]
				if info.LastErr != want {
					t.Fatalf("Redis keeps the error %q, want its code %q alone", info.LastErr, want)
				}
				if n := p.logs.count("a task failed"); n != 1 {
					t.Fatalf("logged %d times", n)
				}
				if what == "panic" && p.logs.count("server_test.go") == 0 {
					t.Fatal("the log does not show where it panicked")
				}
				if got := await(t, runs); got != 2 {
					t.Fatalf("run %d", got)
				}
			})
		})
	}
}

func TestAForgedTaskHarmsNobody(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		if _, err := q.asynq.Enqueue(asynq.NewTask("x", []byte("\xff\x00not a task"), asynq.Queue("turns"))); err != nil {
			t.Fatal(err)
		}
		q.Ring(t.Context(), task("a"))
		handler, seen := record()
		p.serve(q, 1, handler)
		if got := await(t, seen).Subject; got != "a" {
			t.Fatalf("ran %q", got)
		}
		if p.logs.count("cannot be read") != 1 {
			t.Fatal("the forged task was not logged")
		}
	})
}

func TestAnswersHaveWorkersOfTheirOwn(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		busy, release := make(chan struct{}, 1), make(chan struct{})
		p.serve(q, 1, func(_ context.Context, got domain.Task) error {
			if got.Urgency == domain.UrgencyTurn {
				busy <- struct{}{}
				<-release
			}
			return nil
		})
		t.Cleanup(func() { close(release) })
		q.Ring(t.Context(), task("slow"))
		await(t, busy)
		handler, seen := record()
		answers := NewServer(q, ServerOptions{Concurrency: 1, Only: []domain.Urgency{domain.UrgencyAnswer}}, handler)
		t.Cleanup(answers.Stop)
		if err := answers.Start(); err != nil {
			t.Fatal(err)
		}
		answer := domain.Task{Kind: domain.TaskCallSend, Subject: "answered", Revision: 1, Urgency: domain.UrgencyAnswer}
		q.Ring(t.Context(), task("waits"), answer)
		if got := await(t, seen).Subject; got != "answered" {
			t.Fatalf("the answers' server ran %q", got)
		}
	})
}

func TestHandBackIsNoFailure(t *testing.T) {
	p := &place{t: t, logs: &logs{}}
	s := NewServer(p.open(), ServerOptions{}, func(context.Context, domain.Task) error { return nil })
	t.Cleanup(s.Stop)
	if s.isHandBack(failure{context.Canceled}) {
		t.Error("a handler that cancelled itself would run again for ever without a count")
	}
	if !s.isHandBack(asynq.ErrLeaseExpired) {
		t.Error("a dead worker's task counts as failed")
	}
	s.Stop()
	if !s.isHandBack(failure{errors.Join(errors.New("saving"), context.Canceled)}) {
		t.Error("a task of a stopping server counts as failed")
	}
	if got := (failure{errors.New("swordfish")}).Error(); strings.Contains(got, "swordfish") {
		t.Errorf("an error's text reaches Redis: %q", got)
	}
}
