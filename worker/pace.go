package worker

import (
	"context"
	"time"

	"openbot/domain"
)

// pace bounds how many steps are loaded and committed at once: steps that nobody waits
// for, tens of thousands after many Requests expired, must leave the processors and the
// database to what somebody waits for. It does not count the time in which a model
// thinks. nil bounds nothing.
type pace chan struct{}

// paceOf gives the pace of the step that a task asks for.
func (w *Worker) paceOf(t domain.Task) pace {
	if t.Urgency == domain.UrgencyRest {
		return w.calm
	}
	return nil
}

// keep runs some work when its turn has come; unavailable when ctx ends before.
func (p pace) keep(ctx context.Context, work func() error) error {
	if p == nil {
		return work()
	}
	select {
	case p <- struct{}{}:
		defer func() { <-p }()
		return work()
	case <-ctx.Done():
		return domain.Wrap(domain.CodeUnavailable, "Unavailable", "the worker is stopping", ctx.Err())
	}
}

// earliest is how much too early the task of a time limit can come: its time is cut to
// whole seconds, the only ones that the queue knows.
const earliest = time.Second

// awaitDue waits for a time that is about to come, so that a limit takes effect at its time
// and not with the next sweep. It does not wait for one further ahead, nor when ctx ends.
func awaitDue(ctx context.Context, due time.Time) {
	left := time.Until(due)
	if left <= 0 || left > earliest {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
