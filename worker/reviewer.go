package worker

import (
	"context"

	"openbot/domain"
)

// readRequest lets the automatic reviewer read a new Request. Whatever it says, and when
// it says nothing, the Request waits for its decider as before.
func (w *Worker) readRequest(ctx context.Context, id domain.RequestID) error {
	reading, err := w.Engine.PrepareReading(ctx, id)
	if err != nil || reading == nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, reading.Limit)
	defer cancel()
	reply, err := w.Models.Call(bounded, reading.Request)
	if ctx.Err() != nil {
		return domain.Wrap(domain.CodeUnavailable, "Unavailable", "the worker is stopping", ctx.Err())
	}
	var verdict domain.ReviewVerdict
	switch {
	case err == nil:
		w.Metrics.model("ok")
		verdict = domain.ReadReviewVerdict(reply.Text)
	case bounded.Err() != nil:
		w.Metrics.model("failed")
		verdict = domain.Unclear("The reviewer gave no answer in time.")
	default:
		w.Metrics.model("failed")
		w.Logger.Warn("the reviewer gave no reply", "request", reading.ID(), "chat", reading.Chat(), "error", err)
		verdict = domain.Unclear("The reviewer could not be asked.")
	}
	commit, stop := saving(ctx)
	defer stop()
	return w.Engine.CommitReading(commit, reading, verdict)
}
