package queue

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"openbot/domain"
)

// closedPort gives an address where nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// silentPort gives an address that takes connections and never answers.
func silentPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var open []net.Conn
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open = append(open, c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range open {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

func TestRedisAwayHoldsNobodyUp(t *testing.T) {
	for what, address := range map[string]func(*testing.T) string{"refuses": closedPort, "hangs": silentPort} {
		t.Run(what, func(t *testing.T) {
			p := &place{t: t, url: "redis://" + address(t), logs: &logs{}}
			q := p.open()
			const slow = 5 * moment // with room for a busy machine
			tasks := make([]domain.Task, 3*batch)
			for i := range tasks {
				tasks[i] = overdue(task(strings.Repeat("x", i+1)))
			}
			var total time.Duration
			for range 20 {
				start := time.Now()
				q.Ring(t.Context(), tasks...)
				q.Publish(t.Context(), "chat:1")
				took := time.Since(start)
				if total += took; took > slow {
					t.Fatalf("a ring took %v", took)
				}
			}
			if total > 10*moment {
				t.Fatalf("20 rings took %v: they still wait though Redis is known to be away", total)
			}
			eventually(t, "telling that Redis is away", func() bool { return p.logs.count("level=WARN") == 1 })
			if err := q.Ping(t.Context()); !domain.IsCode(err, domain.CodeUnavailable) {
				t.Fatalf("Ping gives %v", err)
			}
			if _, err := q.Backlog(t.Context()); !domain.IsCode(err, domain.CodeUnavailable) {
				t.Fatalf("Backlog gives %v", err)
			}
			if _, err := q.Lag(t.Context()); !domain.IsCode(err, domain.CodeUnavailable) {
				t.Fatalf("Lag gives %v", err)
			}
		})
	}
}

// A ring that takes longer than its caller waits is not lost: on a busy machine the sweep
// would be seconds later.
func TestASlowRingGoesOnBehindItsCaller(t *testing.T) {
	mini := miniredis.RunT(t)
	p := &place{t: t, url: "redis://" + mini.Addr(), logs: &logs{}}
	q := p.open()
	handler, seen := record()
	p.serve(q, 1, handler)
	q.Ring(t.Context(), task("first"))
	await(t, seen)
	release := make(chan struct{})
	var held atomic.Int64
	mini.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
		if strings.HasPrefix(strings.ToUpper(command), "EVAL") && len(args) > 2 && strings.Contains(args[2], ":t:") {
			held.Add(1)
			<-release // asynq's script that enqueues
		}
		return false
	})
	ctx, hangUp := context.WithCancel(t.Context())
	start := time.Now()
	q.Ring(ctx, task("second"))
	hangUp()
	for range 5 {
		q.Ring(t.Context(), task("third")) // which does not wait behind a late one
	}
	took := time.Since(start)
	close(release)
	if took > 5*moment || held.Load() == 0 {
		t.Errorf("the callers waited %v for %d rings that were held up", took, held.Load())
	}
	got := []string{await(t, seen).Subject, await(t, seen).Subject}
	slices.Sort(got)
	if !slices.Equal(got, []string{"second", "third"}) {
		t.Errorf("%v were rung", got)
	}
}

// With too many late rings Redis is away: more would only pile up.
func TestLateRingsAreBounded(t *testing.T) {
	b := newBehind()
	done := make(chan struct{})
	for range behindMost {
		if !b.enter() || !b.patient() {
			t.Fatal("a ring was refused, or is not waited for, though none was late")
		}
	}
	b.late(done)
	if b.enter() || b.patient() {
		t.Error("one more was let in, or would be waited for")
	}
	close(done)
	b.leave()
	eventually(t, "waiting again", b.patient)
	if !b.enter() {
		t.Error("none is let in after the late one was done")
	}
	for range behindMost {
		b.leave()
	}
	b.close()
	if b.enter() {
		t.Error("one was let in after the end")
	}
}

func TestAServerStartsWithoutRedisAndWorksWhenItIsThere(t *testing.T) {
	address := closedPort(t)
	p := &place{t: t, url: "redis://" + address, logs: &logs{}}
	q := p.open()
	handler, seen := record()
	p.serve(q, 1, handler)
	eventually(t, "giving Redis up", func() bool {
		q.Ring(t.Context(), task("early"))
		return p.logs.count("level=WARN") > 0
	})

	mini := miniredis.NewMiniRedis()
	if err := mini.StartAddr(address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mini.Close)
	start := time.Now()
	for done := false; !done; {
		q.Ring(t.Context(), overdue(task("early"))) // as the sweep does
		select {
		case <-seen:
			done = true
		case <-time.After(100 * time.Millisecond):
			if time.Since(start) > patience {
				t.Fatal("the work did not go on")
			}
		}
	}
	t.Logf("worked %v after Redis was back", time.Since(start))
	eventually(t, "telling that Redis is back", func() bool { return p.logs.count("answers again") == 1 })
}

func TestAServerStopsWithoutRedis(t *testing.T) {
	for what, address := range map[string]func(*testing.T) string{"refuses": closedPort, "hangs": silentPort} {
		t.Run(what, func(t *testing.T) {
			p := &place{t: t, url: "redis://" + address(t), logs: &logs{}}
			handler, _ := record()
			s := p.serve(p.open(), 1, handler)
			start := time.Now()
			s.Stop()
			took := time.Since(start)
			t.Logf("stopped after %v", took)
			if took > stopLimit/2 {
				t.Fatalf("stopping took %v", took)
			}
		})
	}
}

func TestAServerStopsWhenRedisHangsUnderIt(t *testing.T) {
	mini := miniredis.RunT(t)
	p := &place{t: t, url: "redis://" + mini.Addr(), logs: &logs{}}
	q := p.open()
	handler, seen := record()
	s := p.serve(q, 1, handler)
	q.Ring(t.Context(), task("a"))
	await(t, seen)
	release, hung := make(chan struct{}), make(chan struct{}, 1)
	mini.Server().SetPreHook(func(*server.Peer, string, ...string) bool {
		select {
		case hung <- struct{}{}:
		default:
		}
		<-release
		return false
	})
	await(t, hung)
	start := time.Now()
	s.Stop()
	took := time.Since(start)
	close(release)
	t.Logf("stopped after %v", took)
	if took > stopLimit/2 {
		t.Fatalf("stopping took %v", took)
	}
}

func TestAsynqsComplaintsAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &logs{}
		l := newAsynqLog(kept.logger())
		for range 100 {
			l.Error("Failed to forward scheduled tasks: refused")
			l.Warn("Could not remove task id=1")
			l.Info("Starting")
		}
		l.Error()
		if f, c, i := kept.count("forward"), kept.count("remove"), kept.count("Starting"); f != 1 || c != 1 || i != 0 {
			t.Fatalf("logged %d, %d and %d times", f, c, i)
		}
		<-time.After(repeatAfter)
		l.Error("Failed to forward scheduled tasks: refused")
		if kept.count("hidden=99") != 1 {
			t.Fatal("a repeated complaint does not say how often it was held back")
		}
	})
}

func TestAnAnswerOfErrorsDoesNotSpin(t *testing.T) {
	mini := miniredis.RunT(t)
	var fetches atomic.Int64
	failed := make(chan time.Time, 1000)
	mini.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		if !strings.HasPrefix(strings.ToUpper(cmd), "EVAL") || len(args) < 4 || !strings.HasSuffix(args[3], ":paused") {
			return false
		}
		fetches.Add(1)
		select {
		case failed <- time.Now():
		default:
		}
		c.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
		return true
	})
	p := &place{t: t, url: "redis://" + mini.Addr(), logs: &logs{}}
	q := p.open()
	handler, seen := record()
	p.serve(q, 4, handler)
	first := await(t, failed)
	for range 4 {
		await(t, failed)
	}
	if took := time.Since(first); took < 3*backOff {
		t.Fatalf("five failed looks for work took only %v", took)
	}
	mini.Server().SetPreHook(nil)
	q.Ring(t.Context(), task("a"))
	await(t, seen)
	t.Logf("%d looks for work failed", fetches.Load())
}
