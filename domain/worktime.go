package domain

import "time"

// clockOf reads the running clock of a piece of work, the first of its path, in
// microseconds.
func clockOf(path []Delegation, at time.Time) int64 {
	if len(path) == 0 {
		return at.UnixMicro()
	}
	above := clockAbove(path, at)
	own := path[0]
	clock := above - own.Clock.Paused
	if own.Pause != nil {
		clock -= above - own.Pause.Clock
	}
	return clock
}

// clockAbove reads the clock that the first of a path runs by: that of the work above
// it, or the time of day.
func clockAbove(path []Delegation, at time.Time) int64 {
	clock := at.UnixMicro()
	for i := len(path) - 1; i > 0; i-- {
		p := path[i]
		if p.Pause != nil {
			clock = p.Pause.Clock - p.Clock.Paused
		} else {
			clock -= p.Clock.Paused
		}
	}
	return clock
}

// UsedTime is how long the first of a path has run since its start: without its own
// pauses and those of the work above it.
func UsedTime(path []Delegation, at time.Time) time.Duration {
	if len(path) == 0 || path[0].StartedAt == nil {
		return 0
	}
	g := path[0]
	clock := g.Clock.End
	if g.Open() {
		clock = clockOf(path, at)
	}
	return time.Duration(max(clock-g.Clock.Start, 0)) * time.Microsecond
}

// Held says what keeps a piece of work, the first of its path, from going on.
type Held struct {
	Stopping DelegationID // it, or work above it, was stopped
	Paused   DelegationID // it, or the nearest work above it, is paused
}

// Free reports whether nothing holds it.
func (h Held) Free() bool { return h == Held{} }

// HeldBy looks up the path. Work above that has ended holds nothing.
func HeldBy(path []Delegation) Held {
	var h Held
	for _, g := range path {
		if g.Stopping() && h.Stopping == "" {
			h.Stopping = g.ID
		}
		if g.Pause != nil && g.Open() && h.Paused == "" {
			h.Paused = g.ID
		}
	}
	return h
}

// RoundAbove is the work that a new round, started by a person in the task Chat of ended
// work, stands below. Path is that of the ended work. What has ended or was stopped does
// not hold the new round; open work above that is paused does.
func RoundAbove(path []Delegation) DelegationID {
	for i := 1; i < len(path); i++ {
		if path[i].Open() && HeldBy(path[i:]).Stopping == "" {
			return path[i].ID
		}
	}
	return ""
}

// LimitReached says which piece of a path has no model step left, and by which limit:
// the steps of the first, and the budget of each. The topmost is named, since its pause
// holds all below it. Path is the work itself and all work above it.
func LimitReached(path []Delegation) (id DelegationID, limit string) {
	for i := len(path) - 1; i >= 0; i-- {
		if g := path[i]; g.Open() && g.Pause == nil && g.overBudget() {
			return g.ID, LimitBudget
		}
	}
	if len(path) > 0 && path[0].overSteps() {
		return path[0].ID, LimitSteps
	}
	return "", ""
}

func (g Delegation) overSteps() bool {
	return g.Limits.Steps > 0 && g.Steps-g.Clock.WindowSteps >= g.Limits.Steps
}

func (g Delegation) overBudget() bool {
	return g.Limits.BudgetMicros > 0 && g.CostNanos-g.Clock.WindowCost >= times(g.Limits.BudgetMicros, 1000)
}

// TimeLeft is how long the first of a path may run on by its time limit, when nothing
// pauses it.
func TimeLeft(path []Delegation, at time.Time) time.Duration {
	if len(path) == 0 {
		return 0
	}
	return path[0].deadline(clockOf(path, at), at).Sub(at)
}

// AtLimit reports whether the first of a path is at this limit now.
func AtLimit(path []Delegation, limit string, at time.Time) bool {
	if len(path) == 0 || path[0].StartedAt == nil {
		return false
	}
	switch limit {
	case LimitTime:
		return TimeLeft(path, at) <= 0
	case LimitSteps:
		return path[0].overSteps()
	case LimitBudget:
		return path[0].overBudget()
	}
	return false
}

// Faults lists what does not fit, or nil.
func (l Limits) Faults(path string) []Fault {
	var faults []Fault
	if l.TimeMs < MinWorkTimeMs || l.TimeMs > MaxWorkTimeMs {
		faults = append(faults, Fault{Path: path + ".timeMs", Message: "must be from 1000 (1 s) to 2592000000 (30 days)"})
	}
	if l.Steps < 0 || l.Steps > MaxWorkSteps {
		faults = append(faults, Fault{Path: path + ".steps", Message: "must be from 1 to 1000000000"})
	}
	if l.BudgetMicros < 0 || l.BudgetMicros > MaxWorkBudget {
		faults = append(faults, Fault{Path: path + ".budgetMicros", Message: "must be from 1 to 1000000000000000 micro-USD"})
	}
	return faults
}
