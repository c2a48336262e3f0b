package queue

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTheLimitIsExactAcrossProcesses(t *testing.T) {
	outside(t, func(t *testing.T, p *place) {
		const limit, window = 50, time.Minute
		queues := []*Queue{p.open(), p.open(), p.open()}
		var allowed, refused atomic.Int64
		var group sync.WaitGroup
		for _, q := range queues {
			group.Go(func() {
				for range 40 {
					if ok, after := q.Allow(t.Context(), "key", limit, window); ok {
						allowed.Add(1)
					} else if refused.Add(1); after <= 0 || after > window {
						t.Errorf("retry after %v", after)
					}
				}
			})
		}
		group.Wait()
		if allowed.Load() != limit || refused.Load() != 120-limit {
			t.Fatalf("%d allowed, %d refused; want %d and %d", allowed.Load(), refused.Load(), limit, 120-limit)
		}
		if ok, _ := queues[0].Allow(t.Context(), "another key", limit, window); !ok {
			t.Fatal("one key's events count against another")
		}
		if p.mini != nil {
			p.mini.FastForward(window)
			if ok, _ := queues[1].Allow(t.Context(), "key", limit, window); !ok {
				t.Fatal("the window never ends")
			}
		}
	})
}

func TestTheLimitOfOneProcess(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		if p.url != "" {
			p.url = "redis://" + closedPort(t) // each process counts alone
		}
		q := p.open()
		for i := range 10 {
			ok, after := q.Allow(t.Context(), "key", 7, time.Minute)
			if ok != (i < 7) {
				t.Fatalf("event %d: allowed %v", i+1, ok)
			}
			if !ok && (after <= 0 || after > time.Minute) {
				t.Fatalf("retry after %v", after)
			}
		}
		if ok, _ := q.Allow(t.Context(), "nothing fits", 0, time.Minute); ok {
			t.Fatal("a limit of 0 let one through")
		}
	})
}

func TestRedisGoingAwayDoesNotResetTheCount(t *testing.T) {
	p := &place{t: t, logs: &logs{}}
	outside(t, func(t *testing.T, at *place) {
		if at.mini == nil {
			return // a real Redis is not ours to stop
		}
		p.t, p.url = t, at.url
		q := p.open()
		for range 5 {
			q.Allow(t.Context(), "key", 5, time.Minute)
		}
		at.mini.Close()
		if ok, _ := q.Allow(t.Context(), "key", 5, time.Minute); ok {
			t.Fatal("a full bucket was empty again when Redis went away")
		}
	})
}

func TestLocalWindowsEndAndAreBounded(t *testing.T) {
	l := newLocalLimits(100)
	start := time.Unix(1000, 0)
	for i := range 1000 {
		l.count("key "+strconv.Itoa(i), time.Minute, start)
		// One that is used all the time survives the crowd.
		if n, _ := l.count("busy", time.Minute, start); n != int64(i+1) {
			t.Fatalf("count %d after %d events", n, i+1)
		}
	}
	if n := len(l.young) + len(l.old); n > 200 {
		t.Fatalf("%d keys are kept", n)
	}
	if n, left := l.count("busy", time.Minute, start.Add(time.Minute-1)); n != 1001 || left != 1 {
		t.Fatalf("count %d, left %v", n, left)
	}
	if n, left := l.count("busy", time.Minute, start.Add(time.Minute)); n != 1 || left != time.Minute {
		t.Fatalf("a new window starts with %d, %v", n, left)
	}
}
