package domain_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"openbot/domain"
)

// piece is a piece of work with what a naive oracle knows of it: it counts the time
// moment by moment, while nothing of the work or above it is paused.
type piece struct {
	work       domain.Delegation
	above      int // index, or -1
	used       time.Duration
	inWindow   time.Duration
	steps      int64
	cost       int64
	everPaused bool
}

// clocks is a forest of work that begins, pauses, goes on and ends at random.
type clocks struct {
	t       *rapid.T
	now     time.Time
	pieces  []*piece
	reached map[string]int
}

// path gives the work and all above it, nearest first.
func (c *clocks) path(i int) []domain.Delegation {
	var path []domain.Delegation
	for ; i >= 0; i = c.pieces[i].above {
		path = append(path, c.pieces[i].work)
	}
	return path
}

// stands says whether the clock of a piece stands now: an open pause of it or above.
func (c *clocks) stands(i int) bool {
	for ; i >= 0; i = c.pieces[i].above {
		if p := c.pieces[i].work; p.Pause != nil && p.Open() {
			return true
		}
	}
	return false
}

func (c *clocks) forward(by time.Duration) {
	for i, p := range c.pieces {
		if p.work.StartedAt != nil && p.work.Open() && !c.stands(i) {
			p.used += by
			p.inWindow += by
		}
	}
	c.now = c.now.Add(by)
}

func (c *clocks) decide(i int, what string, ev domain.DelegationEvent) bool {
	before := deepCopy(c.pieces[i].work)
	next, err := domain.DecideDelegation(c.pieces[i].work, ev)
	untouched(c.t, before, c.pieces[i].work)
	if err != nil {
		untouched(c.t, before, next)
		return false
	}
	c.pieces[i].work = next
	c.reached[what]++
	return true
}

func (c *clocks) begin() {
	above := -1
	if n := len(c.pieces); n > 0 {
		above = rapid.IntRange(-1, n-1).Draw(c.t, "above")
	}
	limits := domain.Limits{TimeMs: rapid.Int64Range(1, 200).Draw(c.t, "timeMs"), Steps: rapid.Int64Range(0, 3).Draw(c.t, "steps"), BudgetMicros: rapid.Int64Range(0, 3).Draw(c.t, "budget")}
	c.pieces = append(c.pieces, &piece{above: above, work: domain.Delegation{ID: domain.DelegationID(fmt.Sprintf("dlg_%d", len(c.pieces))),
		Status: domain.DelegationAuthorizing, Limits: limits}})
	i := len(c.pieces) - 1
	if c.stands(i) {
		c.reached["begun below a pause"]++
	}
	c.decide(i, "begun", domain.Begun{At: c.now, Path: c.path(i)})
}

func (c *clocks) act() {
	if len(c.pieces) == 0 || len(c.pieces) < 8 && rapid.IntRange(0, 4).Draw(c.t, "begin") == 0 {
		c.begin()
		return
	}
	i := rapid.IntRange(0, len(c.pieces)-1).Draw(c.t, "piece")
	p := c.pieces[i]
	switch rapid.SampledFrom([]string{"forward", "forward", "forward", "pause", "pause", "go on", "go on", "step", "look", "end"}).Draw(c.t, "what") {
	case "forward":
		c.forward(time.Duration(rapid.Int64Range(0, 60_000).Draw(c.t, "microseconds")) * time.Microsecond)
	case "pause":
		nested := c.stands(i)
		if c.decide(i, "paused", domain.Reached{At: c.now, Limit: domain.LimitTime, Call: "call_1", Path: c.path(i)}) {
			if p.everPaused {
				c.reached["paused again"]++
			}
			if nested {
				c.reached["paused below a pause"]++
			}
			p.everPaused = true
		}
	case "go on":
		paused, held := p.work.Pause != nil, p.above >= 0 && c.stands(p.above)
		if c.decide(i, "went on", domain.Continued{At: c.now, Path: c.path(i)}) {
			p.inWindow, p.steps, p.cost = 0, 0, 0
			if !paused {
				c.reached["went on without a pause"]++
			}
			if held {
				c.reached["went on below a pause"]++
			}
		}
	case "step":
		if c.decide(i, "stepped", domain.Stepped{At: c.now}) {
			p.steps++
			for ; i >= 0; i = c.pieces[i].above {
				c.pieces[i].work.CostNanos += 700
				c.pieces[i].cost += 700
			}
		}
	case "look":
		c.look(i)
	case "end":
		if rapid.IntRange(0, 3).Draw(c.t, "really") == 0 {
			if p.work.Pause != nil {
				c.reached["ended in a pause"]++
			}
			status := domain.DelegationCompleted
			if p.work.Status == domain.DelegationPaused {
				status = domain.DelegationCancelled
			}
			c.decide(i, "ended", domain.Finished{At: c.now, Status: status, Path: c.path(i)})
		}
	}
}

// look is a look at the time limit that came early: it is moved to when the limit is
// reached if nothing pauses, or parked by what does.
func (c *clocks) look(i int) {
	p := c.pieces[i]
	if !c.decide(i, "postponed", domain.Postponed{At: c.now, Path: c.path(i)}) {
		return
	}
	if c.stands(i) {
		if p.work.DueAt != nil || p.work.ParkedBy == "" {
			c.t.Fatalf("a look that a pause holds is due at %v, parked by %q", p.work.DueAt, p.work.ParkedBy)
		}
		c.reached["parked"]++
		return
	}
	left := max(time.Duration(p.work.Limits.TimeMs)*time.Millisecond-p.inWindow, 0)
	if p.work.ParkedBy != "" || p.work.DueAt == nil || !p.work.DueAt.Equal(c.now.Add(left)) {
		c.t.Fatalf("a look is due at %v, want %v", p.work.DueAt, c.now.Add(left))
	}
}

func (c *clocks) check() {
	for i, p := range c.pieces {
		if got := domain.UsedTime(c.path(i), c.now); got != p.used {
			c.t.Fatalf("%s ran %s by its clock, %s by the count (%+v)", p.work.ID, got, p.used, p.work.Clock)
		}
		if !p.work.Open() {
			continue
		}
		path := c.path(i)
		limit := time.Duration(p.work.Limits.TimeMs) * time.Millisecond
		if got, want := domain.TimeLeft(path, c.now), max(limit-p.inWindow, 0); got != want {
			c.t.Fatalf("%s has %s left by its clock, %s by the count", p.work.ID, got, want)
		}
		over := map[string]bool{domain.LimitTime: p.inWindow >= limit, domain.LimitSteps: p.work.Limits.Steps > 0 && p.steps >= p.work.Limits.Steps, domain.LimitBudget: c.spent(p)}
		for kind, want := range over {
			if got := domain.AtLimit(path, kind, c.now); got != want {
				c.t.Fatalf("%s at its limit of %s: %v, by the count %v", p.work.ID, kind, got, want)
			}
		}
		c.checkLimit(i, over[domain.LimitSteps])
		// What holds it is the nearest pause.
		held := domain.DelegationID("")
		for j := i; j >= 0 && held == ""; j = c.pieces[j].above {
			if w := c.pieces[j].work; w.Pause != nil && w.Open() {
				held = w.ID
			}
		}
		if got := domain.HeldBy(path); got.Paused != held || got.Stopping != "" {
			c.t.Fatalf("%s is held by %+v, want a pause of %q", p.work.ID, got, held)
		}
	}
}

func (c *clocks) spent(p *piece) bool {
	return p.work.Limits.BudgetMicros > 0 && p.cost >= p.work.Limits.BudgetMicros*1000
}

// checkLimit compares which piece has no step left: the topmost whose budget is used up,
// else the work itself by its steps.
func (c *clocks) checkLimit(i int, overSteps bool) {
	id, limit := domain.DelegationID(""), ""
	if overSteps {
		id, limit = c.pieces[i].work.ID, domain.LimitSteps
	}
	for j := i; j >= 0; j = c.pieces[j].above {
		if p := c.pieces[j]; p.work.Open() && p.work.Pause == nil && c.spent(p) {
			id, limit = p.work.ID, domain.LimitBudget
			if j != i {
				c.reached["budget above"]++
			}
		}
	}
	if gotID, got := domain.LimitReached(c.path(i)); gotID != id || got != limit {
		c.t.Fatalf("%s is at the limit %s of %s, want %s of %s", c.pieces[i].work.ID, got, gotID, limit, id)
	}
}

// The clocks of work that stand still by pauses above agree with time that is counted
// moment by moment.
func TestClocksOfWorkAgreeWithACount(t *testing.T) {
	reached := map[string]int{}
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		c := &clocks{t: t, now: noon, reached: reached}
		for range rapid.IntRange(10, 80).Draw(t, "acts") {
			c.act()
			c.check()
		}
	})
	reachedAll(t, reached, checks, "begun", "begun below a pause", "paused", "paused again", "paused below a pause", "went on", "went on without a pause",
		"went on below a pause", "stepped", "postponed", "parked", "ended", "ended in a pause", "budget above")
	t.Logf("reached: %v", reached)
}

// The limits of work begin again from when somebody let it go on, and its use does not.
func TestLimitsBeginAgainAndUseDoesNot(t *testing.T) {
	g := domain.Delegation{ID: "dlg_1", Status: domain.DelegationAuthorizing, Limits: domain.Limits{TimeMs: 1000, Steps: 1}}
	move := func(ev domain.DelegationEvent) {
		t.Helper()
		next, err := domain.DecideDelegation(g, ev)
		if err != nil {
			t.Fatal(err)
		}
		g = next
	}
	path := func() []domain.Delegation { return []domain.Delegation{g} }
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	move(domain.Begun{At: at(0), Path: path()})
	move(domain.Stepped{At: at(1)})
	move(domain.Reached{At: at(1), Limit: domain.LimitSteps, Call: "call_1", Path: path()})
	if !domain.AtLimit(path(), domain.LimitTime, at(50)) || domain.UsedTime(path(), at(50)) != time.Second {
		t.Errorf("in its pause it used %s", domain.UsedTime(path(), at(50)))
	}
	move(domain.Continued{At: at(100), Path: path()})
	if id, _ := domain.LimitReached(path()); id != "" || domain.AtLimit(path(), domain.LimitTime, at(100)) {
		t.Error("it goes on at its limit")
	}
	if g.DueAt == nil || !g.DueAt.Equal(at(101)) || domain.UsedTime(path(), at(101)) != 2*time.Second {
		t.Errorf("the next look is at %v, and it used %s", g.DueAt, domain.UsedTime(path(), at(101)))
	}
}
