package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// send takes an allowed call and sends it. sending is committed before the first
// byte goes out, the outcome after the last.
func (w *Worker) send(ctx context.Context, id domain.CallID, version int64) error {
	taking, err := w.Engine.TakeCall(ctx, id, version, false)
	if err != nil {
		return err
	}
	if taking.Look != nil {
		if err := w.lookAt(ctx, *taking.Look); err != nil {
			return err
		}
		if taking, err = w.Engine.TakeCall(ctx, id, version, true); err != nil {
			return err
		}
	}
	if taking.Decide != nil {
		return w.decide(ctx, taking.Decide)
	}
	if taking.Sending == nil {
		return nil
	}
	taking.Sending.Onward = true
	if err := w.carry(ctx, taking.Sending); err != nil || taking.Sending.Step == nil {
		return err
	}
	return w.goOn(ctx, *taking.Sending.Step)
}

// goOn takes the step that a call of this worker made due. Nobody else was rung for it,
// and a new try of the call's own task would find nothing to do.
func (w *Worker) goOn(ctx context.Context, step domain.Task) error {
	err := w.step(ctx, domain.TurnID(step.Subject), step.Revision, nil)
	if err != nil {
		w.Engine.Ring(ctx, step)
	}
	return err
}

// carry sends a call that is this worker's. A stop of the worker does not cut a
// call that is out: what it did would not be known. The lease bounds it instead.
func (w *Worker) carry(ctx context.Context, s *engine.Sending) error {
	mark(ctx, s.Call.Chat, s.Call.Turn, s.Call.ID)
	held, release := w.hold(context.WithoutCancel(ctx), s)
	defer release() // the lease lasts until the outcome is saved
	result, err := w.reach(held, s, held.alive)

	commit, stop := saving(ctx)
	defer stop()
	var failure *domain.AppError
	switch {
	case err == nil:
		w.Metrics.call(s.Call.Kind, outcome(!result.IsError))
		return w.Engine.SettleCall(commit, s, result.IsError, result.Text)
	case errors.Is(err, errLeaseOver):
		return w.Engine.SettleCall(commit, s, true, domain.TextAppFailed("the worker was held up before the call went out. It was not executed."))
	case errors.Is(err, errHeldBack):
		return w.Engine.HoldBackCall(commit, s)
	case errors.As(err, &failure) && failure.NoAnswer:
		w.Metrics.call(s.Call.Kind, "unknown")
		w.Logger.Warn("a call gave no answer", "call", s.Call.ID, "chat", s.Call.Chat, "turn", s.Call.Turn, "error", failure)
		return w.Engine.LoseCall(commit, s)
	case failure != nil:
		w.Metrics.call(s.Call.Kind, "failed")
		w.Logger.Info("a call failed", "call", s.Call.ID, "chat", s.Call.Chat, "turn", s.Call.Turn, "error", failure)
		return w.Engine.SettleCall(commit, s, true, domain.TextAppFailed(failure.Message))
	default:
		w.Metrics.call(s.Call.Kind, "unknown")
		w.Logger.Error("a call ended in a way that tells nothing", "call", s.Call.ID, "error", err)
		return w.Engine.LoseCall(commit, s)
	}
}

// reach sends the call to what it names.
func (w *Worker) reach(ctx context.Context, s *engine.Sending, ready func() error) (domain.AppResult, error) {
	switch s.Call.Kind {
	case domain.CallApp:
		return w.Apps.Call(ctx, engine.Endpoint(*s.Connection), domain.AppCall{Tool: s.Call.Tool, Arguments: s.Call.Arguments}, ready)
	case domain.CallHost:
		return w.Hosts.CallHost(ctx, *s.HostTool, s.Call, ready)
	case domain.CallResource:
		_, uri, _ := s.PromptArguments()
		return w.Apps.ReadResource(ctx, engine.Endpoint(*s.Connection), uri, ready)
	case domain.CallPrompt:
		name, _, arguments := s.PromptArguments()
		return w.Apps.GetPrompt(ctx, engine.Endpoint(*s.Connection), name, arguments, ready)
	default:
		return domain.AppResult{}, &domain.AppError{Message: "calls of this kind are not sent. It was not executed."}
	}
}

// errLeaseOver says that the lease ended before the first byte went out.
var errLeaseOver = errors.New("the lease of the call is over")

// errHeldBack says that the work was stopped or paused before the first byte went out.
var errHeldBack = errors.New("the call was held back")

const (
	// lookAgainAfter is how old the decision that a call goes out may be without another
	// look: reaching an App that is slow, or was restarted, takes seconds.
	lookAgainAfter = 500 * time.Millisecond
	// lookWithin bounds that look, for a database that does not answer.
	lookWithin = 2 * time.Second
)

// lease is a context that ends with the lease of a call, renewed every few
// seconds while the call is out.
type lease struct {
	context.Context
	taken  time.Time
	wanted func(context.Context) error
	mu     sync.Mutex
	until  time.Time
}

// alive is asked right before the first byte goes out. One window remains: a
// process that is stopped between this look and the write, for longer than the
// margin of the lease, sends late.
func (l *lease) alive() error {
	if time.Since(l.taken) > lookAgainAfter {
		ctx, cancel := context.WithTimeout(l, lookWithin)
		defer cancel()
		switch err := l.wanted(ctx); {
		case domain.IsCode(err, domain.CodePrecondition):
			return errHeldBack
		case err != nil:
			return errLeaseOver // nothing goes out of which nobody knows whether it is wanted
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Err() != nil || !domain.Before(time.Now(), l.until) {
		return errLeaseOver
	}
	return nil
}

// hold renews the lease of a call until release is called.
func (w *Worker) hold(ctx context.Context, s *engine.Sending) (held *lease, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	held = &lease{Context: ctx, taken: s.At, until: s.Until, wanted: func(ctx context.Context) error { return w.Engine.CallWanted(ctx, s) }}
	over := time.AfterFunc(time.Until(s.Until), func() { cancel(errLeaseOver) })
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(domain.LeaseRenewal)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				until, ours, err := w.Engine.RenewCall(ctx, s)
				if err == nil && !ours {
					cancel(errLeaseOver)
					return
				}
				if err != nil {
					continue // the lease ends by itself when the database stays away
				}
				held.mu.Lock()
				if over.Stop() {
					held.until = until
					over.Reset(time.Until(until))
				}
				held.mu.Unlock()
			}
		}
	}()
	return held, func() {
		close(done)
		<-stopped
		over.Stop()
		cancel(nil)
	}
}

func outcome(ok bool) string {
	if ok {
		return "ok"
	}
	return "failed"
}
