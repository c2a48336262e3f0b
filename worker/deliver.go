package worker

import (
	"context"
	"errors"

	"openbot/domain"
)

// deliver makes one try of a delivery. It goes out between two commits: one that says so
// and one that says what came of it. A worker that dies between them leaves it to the
// sweep, and it goes out again under the same ID. A stop of the worker does not cut a try:
// its own time limit is short.
func (w *Worker) deliver(ctx context.Context, id domain.DeliveryID, version int64) error {
	out, err := w.Engine.TakeDelivery(ctx, id, version)
	if err != nil || out == nil {
		return err
	}
	status, err := w.tell(context.WithoutCancel(ctx), out.Message)
	var failure *domain.AppError
	if err != nil && !errors.As(err, &failure) {
		failure = &domain.AppError{Message: "The receiver could not be reached.", Err: err}
	}
	ok := failure == nil && status/100 == 2
	w.Metrics.hook(out.Event, outcome(ok))
	if !ok {
		w.Logger.Info("a message was not taken", "delivery", id, "event", out.Event, "status", status, "error", err)
	}
	commit, stop := saving(ctx)
	defer stop()
	return w.Engine.SettleDelivery(commit, out, status, failure)
}

// tell hands a message to whoever carries it.
func (w *Worker) tell(ctx context.Context, message domain.HookMessage) (int, error) {
	switch {
	case message.Mail == nil:
		return w.Hooks.Deliver(ctx, message)
	case w.Mailer == nil:
		return 0, &domain.AppError{Message: "The mail was not sent: no mail server is set. Set OPENBOT_SMTP_URL for every worker"}
	}
	return w.Mailer.Send(ctx, *message.Mail)
}
