package domain

import (
	"slices"
	"time"
)

// DelegationEvent is something that happened to a piece of work. Path is the work
// itself and all work above it, nearest first, as it stands: its clocks are read there.
type DelegationEvent interface{ delegationEvent() string }

// Begun is a piece of work whose first Turn is queued.
type Begun struct {
	At   time.Time
	Path []Delegation
}

// WorkRefused is a decision that the work may not be given.
type WorkRefused struct {
	At  time.Time
	Why string
}

// Stepped is a model step of the task Chat that was paid for.
type Stepped struct {
	At        time.Time
	Authority []Authority // of the Turn
}

// Reached is a limit that pauses the work until the call is decided.
type Reached struct {
	At    time.Time
	Limit string
	Call  CallID
	Path  []Delegation
}

// Postponed is a look at the time limit that came early: the clock stood meanwhile, or
// stands now because work above is paused.
type Postponed struct {
	At   time.Time
	Path []Delegation
}

// Continued starts the limits again: somebody let the work go on, or a Grant did before
// it paused.
type Continued struct {
	At   time.Time
	Path []Delegation
}

// WorkStopping is a cancel: nothing of the work starts any more.
type WorkStopping struct {
	At     time.Time
	Why    string
	Notice NoticeKind
}

// Finished is the end of the work.
type Finished struct {
	At     time.Time
	Status DelegationStatus
	Result string
	Path   []Delegation
}

func (Begun) delegationEvent() string        { return DelegationEventBegun }
func (WorkRefused) delegationEvent() string  { return DelegationEventRefused }
func (Stepped) delegationEvent() string      { return DelegationEventStepped }
func (Reached) delegationEvent() string      { return DelegationEventReached }
func (Postponed) delegationEvent() string    { return DelegationEventPostponed }
func (Continued) delegationEvent() string    { return DelegationEventContinued }
func (WorkStopping) delegationEvent() string { return DelegationEventStopping }
func (Finished) delegationEvent() string     { return DelegationEventFinished }

// DecideDelegation moves a piece of work. It refuses with conflict what the table does
// not list, a step or a limit of work that was stopped, and a second stop.
func DecideDelegation(g Delegation, ev DelegationEvent) (Delegation, error) {
	if !legal(DelegationTransitions, string(g.Status), ev.delegationEvent()) {
		return g, workConflict("The work is %s; it cannot take this.", g.Status)
	}
	next := g
	next.Authority = slices.Clone(g.Authority)
	switch ev := ev.(type) {
	case Begun:
		if g.StoppingAt != nil {
			return g, workConflict("The work is being stopped.")
		}
		next.Status, next.StartedAt, next.UpdatedAt, next.Call = DelegationQueued, ptr(ev.At), ev.At, ""
		clock := clockOf(ev.Path, ev.At)
		next.Clock.Start, next.Clock.Window = clock, clock
		next.DueAt = ptr(next.deadline(clock, ev.At))
		next.Gate++
	case WorkRefused:
		next.end(DelegationFailed, ev.Why, ev.At)
	case Stepped:
		if g.StoppingAt != nil {
			return g, workConflict("The work is being stopped.")
		}
		next.Steps++
		if g.Status == DelegationQueued {
			next.Status = DelegationRunning
		}
		next.Authority = AddAuthority(g.Authority, ev.Authority...)
		next.UpdatedAt = ev.At
	case Reached:
		if g.StoppingAt != nil {
			return g, workConflict("The work is being stopped.")
		}
		if ev.Call == "" {
			return g, Errorf(CodeInternal, "DelegationConflict", "This is a bug: the work would pause with nothing that decides.")
		}
		next.Status, next.UpdatedAt, next.DueAt, next.ParkedBy, next.Call = DelegationPaused, ev.At, nil, "", ev.Call
		next.ResumeDueAt = nil // what the last pause parked is parked by this one
		next.Pause = &WorkPause{Limit: ev.Limit, Clock: clockAbove(ev.Path, ev.At), AtMs: ev.At.UnixMilli()}
		next.Gate++
	case Postponed:
		if h := HeldBy(ev.Path); h.Paused != "" {
			next.DueAt, next.ParkedBy = nil, h.Paused
			break
		}
		next.DueAt, next.ParkedBy = ptr(next.deadline(clockOf(ev.Path, ev.At), ev.At)), ""
	case Continued:
		if g.StoppingAt != nil {
			return g, workConflict("The work is being stopped.")
		}
		next.goOn(ev.Path, ev.At)
	case WorkStopping:
		if g.StoppingAt != nil {
			return g, workConflict("The work is being stopped already.")
		}
		next.StoppingAt, next.StopWhy, next.Notice, next.UpdatedAt = ptr(ev.At), ev.Why, ev.Notice, ev.At
		next.ClosingDueAt, next.DueAt, next.ParkedBy = ptr(ev.At), nil, ""
		next.Gate++
	case Finished:
		if !ev.Status.Ended() {
			return g, Errorf(CodeInternal, "DelegationConflict", "This is a bug: %s is no end.", ev.Status)
		}
		status := ev.Status
		if g.StoppingAt != nil {
			status = DelegationCancelled
		}
		next.Clock.End = clockOf(ev.Path, ev.At)
		next.unpause(ev.Path, ev.At)
		next.end(status, ev.Result, ev.At)
	default:
		return g, Errorf(CodeInternal, "DelegationConflict", "An event that no work knows.")
	}
	if !legalTo(DelegationTransitions, string(g.Status), ev.delegationEvent(), string(next.Status)) {
		return g, Errorf(CodeInternal, "DelegationConflict", "This is a bug: %s does not lead from %s to %s.", ev.delegationEvent(), g.Status, next.Status)
	}
	return next, nil
}

// goOn ends the pause and starts the limits again from now.
func (g *Delegation) goOn(path []Delegation, at time.Time) {
	g.unpause(path, at)
	if g.Status == DelegationPaused {
		g.Status, g.ResumeDueAt = DelegationRunning, ptr(at)
	}
	clock := clockAbove(path, at) - g.Clock.Paused
	g.Clock.Window, g.Clock.WindowSteps, g.Clock.WindowCost = clock, g.Steps, g.CostNanos
	g.DueAt, g.ParkedBy, g.Call, g.UpdatedAt = ptr(g.deadline(clock, at)), "", "", at
	g.Gate++
}

func (g *Delegation) unpause(path []Delegation, at time.Time) {
	if g.Pause == nil {
		return
	}
	g.Clock.Paused += clockAbove(path, at) - g.Pause.Clock
	g.Pause = nil
}

func (g *Delegation) end(status DelegationStatus, result string, at time.Time) {
	g.Status, g.Result, g.EndedAt, g.UpdatedAt = status, result, ptr(at), at
	g.DueAt, g.ParkedBy, g.Call, g.ResumeDueAt, g.ClosingDueAt = nil, "", "", nil, nil
	g.NoticeDueAt = ptr(at)
	g.Gate++
}

// deadline is when the time limit is reached at the earliest: when nothing pauses it.
func (g Delegation) deadline(clock int64, at time.Time) time.Time {
	left := g.Limits.TimeMs*1000 - (clock - g.Clock.Window)
	return at.Add(time.Duration(max(left, 0)) * time.Microsecond)
}

func workConflict(format string, args ...any) *Error {
	return Errorf(CodeConflict, "DelegationConflict", format, args...)
}
