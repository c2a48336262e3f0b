package engine

import (
	"context"
	"time"

	"openbot/domain"
)

// Meter is told what was committed, for metrics. It must be quick and is never asked
// anything: no decision depends on it.
type Meter interface {
	// Attempt counts one attempt by the step of the check that ended it and its outcome:
	// allow, deny, or ask for one that waits for a decider.
	Attempt(step domain.Step, outcome string)
	// Decided counts a decided Request by decision and the kind of its decider.
	Decided(decision, by string)
	// Continued notes how long an allowed call took from its answer until a worker had it.
	Continued(after time.Duration)
	// Unknown counts a call that went out and whose outcome nobody knows.
	Unknown()
	// Used adds what a model call used.
	Used(entry domain.UsageEntry)
}

// outcomeAsk is the outcome of an attempt that waits for a decider.
const outcomeAsk = "ask"

// note is one thing that a commit did and that is told once it is durable.
type note func(ctx context.Context)

// notes reads from the rows what the commit will have done. It is asked before the
// commit, since the commit moves the versions that tell a new row from an old one.
func (e *Engine) notes(d *draft) []note {
	var notes []note
	for _, row := range d.commit.Rows {
		switch r := row.(type) {
		case *domain.Call:
			before, _ := d.before[string(r.ID)].(*domain.Call)
			notes = append(notes, e.callNotes(before, r, d.at)...)
		case *domain.Request:
			notes = append(notes, e.requestNotes(r, d.signed[r.ID])...)
		case *domain.Turn:
			if r.Status.Ended() {
				notes = append(notes, e.line("turn ended", "turn", r.ID, "chat", r.Chat, "status", r.Status))
			}
		}
	}
	if e.Meter == nil {
		return notes
	}
	for _, u := range d.commit.Usage {
		notes = append(notes, func(context.Context) { e.Meter.Used(u) })
	}
	return notes
}

func (e *Engine) callNotes(before, c *domain.Call, at time.Time) (notes []note) {
	if e.Meter == nil {
		return nil
	}
	if by := c.Decided; by != nil && (c.Version == 0 || before != nil && before.Decided != by) {
		outcome := domain.DecisionAllow
		if c.Status == domain.CallDenied {
			outcome = domain.DecisionDeny
		}
		notes = append(notes, func(context.Context) { e.Meter.Attempt(by.Step, outcome) })
	}
	if before == nil {
		return notes
	}
	if before.Status != domain.CallUnknown && c.Status == domain.CallUnknown {
		notes = append(notes, func(context.Context) { e.Meter.Unknown() })
	}
	taken := before.Status == domain.CallAllowed && before.Sends == 0 && c.Status != domain.CallAllowed && c.Status != domain.CallCancelled
	if by := before.Decided; taken && by != nil && by.Step == domain.StepDecider && by.AtMs > 0 {
		after := max(0, at.Sub(time.UnixMilli(by.AtMs)))
		notes = append(notes, func(context.Context) { e.Meter.Continued(after) })
	}
	return notes
}

func (e *Engine) requestNotes(r *domain.Request, decided bool) (notes []note) {
	ids := []any{"request", r.ID, "chat", r.Chat, "turn", r.Turn, "call", r.Call, "bot", r.Bot}
	switch {
	case r.Version == 0 && r.Status == domain.RequestPending:
		notes = append(notes, e.line("request waits", ids...))
		if e.Meter != nil && r.Unknown == nil {
			notes = append(notes, func(context.Context) { e.Meter.Attempt(domain.StepDecider, outcomeAsk) })
		}
	case decided && r.Decision != nil:
		decision, by := r.Decision.Decision, string(r.Decision.By.Tag)
		notes = append(notes, e.line("request decided", append(ids, "decision", decision, "by", by)...))
		if e.Meter != nil {
			notes = append(notes, func(context.Context) { e.Meter.Decided(decision, by) })
		}
	}
	return notes
}

// line is a line of the log: IDs and closed words alone, never what somebody wrote. It
// carries the ID of the HTTP request that caused it.
func (e *Engine) line(what string, fields ...any) note {
	return func(ctx context.Context) {
		if id := originFrom(ctx).HTTPRequest; id != "" {
			fields = append(fields, "httpRequest", id)
		}
		e.Logger.InfoContext(ctx, what, fields...)
	}
}
