package queue

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"openbot/domain"
)

func TestRingRunsTheTaskAsItWasRung(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		handler, seen := record()
		p.serve(q, 4, handler)
		for _, u := range urgencies {
			want := domain.Task{Kind: domain.TaskCallSend, Subject: "call-" + string(u), Revision: 7, Urgency: u, Trace: "00-ab-cd-01"}
			start := time.Now()
			q.Ring(t.Context(), want)
			if got := await(t, seen); got != want {
				t.Fatalf("the handler got %+v, want %+v", got, want)
			}
			t.Logf("%s: started after %v", u, time.Since(start))
		}
	})
}

func TestRingOfAnIdleServerIsHeardSoonerThanItsNap(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		handler, seen := record()
		p.serve(q, 4, handler)
		const rounds = 9
		waits := make([]time.Duration, rounds)
		for i := range waits {
			start := time.Now()
			q.Ring(t.Context(), task("turn-"+strconv.Itoa(i)))
			await(t, seen)
			waits[i] = time.Since(start)
		}
		slices.Sort(waits)
		t.Logf("median %v, worst %v", waits[rounds/2], waits[rounds-1])
		if waits[rounds/2] > nap/4 {
			t.Fatalf("the median wait is %v: the bell is not heard", waits[rounds/2])
		}
	})
}

func TestTheSameRingTwiceIsOneRun(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		q.Ring(t.Context(), task("a"), task("a"))
		q.Ring(t.Context(), task("a"))
		q.Ring(t.Context(), task("last"))
		handler, seen := record()
		p.serve(q, 1, handler)
		if got := await(t, seen).Subject; got != "a" {
			t.Fatalf("the first run is of %q", got)
		}
		if got := await(t, seen).Subject; got != "last" {
			t.Fatalf("%q ran again", got)
		}
	})
}

func TestALargeSweepIsRungWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		handler, seen := record()
		p.serve(q, 8, handler)
		const n = 150
		ran := make(map[string]bool)
		// A loaded machine may need more than one sweep; that is what sweeps are for.
		for deadline := time.Now().Add(patience); len(ran) < n && time.Now().Before(deadline); {
			var due []domain.Task
			for i := range n {
				if id := strconv.Itoa(i); !ran[id] {
					due = append(due, task(id))
				}
			}
			q.Ring(t.Context(), due...)
			for idle := false; !idle && len(ran) < n; {
				select {
				case got := <-seen:
					ran[got.Subject] = true
				case <-time.After(time.Second):
					idle = true
				}
			}
		}
		if len(ran) != n {
			t.Fatalf("%d of %d tasks ran", len(ran), n)
		}
	})
}

func TestRingOutlivesItsCaller(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		handler, seen := record()
		p.serve(q, 1, handler)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		q.Ring(gone, task("a"))
		await(t, seen)
	})
}

func TestADelayedTaskIsNeverEarly(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		type start struct {
			subject string
			at      time.Time
		}
		started := make(chan start, 3)
		p.serve(q, 4, func(_ context.Context, got domain.Task) error {
			started <- start{got.Subject, time.Now()}
			return nil
		})
		due := make(map[string]time.Time)
		for _, after := range []time.Duration{20 * time.Millisecond, 400 * time.Millisecond, 1200 * time.Millisecond} {
			timer := task("timer of " + after.String())
			timer.At = time.Now().Add(after)
			due[timer.Subject] = timer.At
			q.Ring(t.Context(), timer)
		}
		for range due {
			got := await(t, started)
			late := got.at.Sub(due[got.subject])
			t.Logf("%s: started %v after its time", got.subject, late)
			if late < 0 || late > 5*time.Second {
				t.Fatalf("%s started %v after its time", got.subject, late)
			}
		}
	})
}

func TestRoundUp(t *testing.T) {
	whole := time.Unix(1000, 0)
	for _, c := range []struct{ at, want time.Time }{
		{whole, whole},
		{whole.Add(1), whole.Add(time.Second)},
		{whole.Add(999 * time.Millisecond), whole.Add(time.Second)},
	} {
		if got := roundUp(c.at); !got.Equal(c.want) {
			t.Errorf("roundUp(%v) = %v, want %v", c.at, got, c.want)
		}
		if got := startOf(domain.Task{Kind: domain.TaskRequestElapse, At: c.at}); !got.Equal(c.want) {
			t.Errorf("an expiry due at %v starts at %v", c.at, got)
		}
		if got := startOf(domain.Task{Kind: domain.TaskWorkElapse, At: c.at}); !got.Equal(whole) {
			t.Errorf("the look at a limit due at %v starts at %v", c.at, got)
		}
	}
}

func TestWhatIsNotATaskIsDropped(t *testing.T) {
	for _, payload := range []string{"", "null", "[]", "{}", `{"k":"turn.step"}`, `{"id":"x"}`, `{"k":1}`} {
		if got, err := decode([]byte(payload), "turns"); err == nil {
			t.Errorf("decode(%q) = %+v", payload, got)
		}
	}
	got, err := decode([]byte(`{"k":"turn.step","id":"x","r":3}`), "nobody's")
	if err != nil || got.Urgency != domain.UrgencyRest {
		t.Errorf("an unknown queue gives %+v, %v", got, err)
	}
}
