package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// judge asks the judge about one call. Whatever it gives, the check goes on: only a
// quote that stands in a Rule decides.
func (w *Worker) judge(ctx context.Context, id domain.CallID, version int64) error {
	j, err := w.Engine.PrepareJudge(ctx, id, version)
	if err != nil || j == nil {
		return err
	}
	verdict, err := whileWanted(ctx,
		func(ctx context.Context) (bool, error) { return w.Engine.PushJudge(ctx, j) },
		func(ctx context.Context) (domain.RulesVerdict, error) {
			return w.askJudge(ctx, j.Request, j.Rules, j.Limit)
		})
	if errors.Is(err, errNotWanted) {
		return nil
	}
	if err != nil {
		return err
	}
	if verdict.Decision == "" {
		w.Logger.Info("the judge decided nothing", "call", j.Call(), "chat", j.Chat(), "why", verdict.Why)
	}
	commit, stop := saving(ctx)
	defer stop()
	return w.Engine.CommitVerdict(commit, j, verdict)
}

// askJudge lets the judge read within the limit. Its error says that this worker is
// stopping; every failure of the judge is a verdict that decides nothing.
func (w *Worker) askJudge(ctx context.Context, request domain.ModelRequest, rules []domain.Rule, limit time.Duration) (domain.RulesVerdict, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var used domain.ModelUsage
	verdict := domain.AskJudge(request, rules, func(r domain.ModelRequest) (answer, why string) {
		reply, err := w.Models.Call(bounded, r)
		used = used.Plus(reply.Usage)
		switch {
		case err == nil:
			w.Metrics.model("ok")
			return reply.Text, ""
		case bounded.Err() != nil:
			w.Metrics.model("failed")
			return "", "the judge gave no answer in time"
		}
		w.Metrics.model("failed")
		w.Logger.Warn("the judge gave no reply", "error", err)
		return "", "the judge could not be asked"
	})
	verdict.Usage = used
	if ctx.Err() != nil {
		return verdict, domain.Wrap(domain.CodeUnavailable, "Unavailable", "the worker is stopping", ctx.Err())
	}
	return verdict, nil
}

// decide carries a Bot's decision to the Request that it reviews; the Rules that may
// let the Bot decide are read first.
func (w *Worker) decide(ctx context.Context, d *engine.Deciding) error {
	var judged *domain.RulesVerdict
	if d.Judge != nil {
		verdict, err := w.askJudge(ctx, *d.Judge, d.Rules, d.Limit)
		if err != nil {
			return err
		}
		judged = &verdict
	}
	commit, stop := saving(ctx)
	defer stop()
	return w.Engine.CarryDecision(commit, d, judged)
}

// previewsAtOnce is how many Requests of one preview are judged at the same time.
const previewsAtOnce = 4

// preview lets the judge read one Rule about earlier Requests.
func (w *Worker) preview(ctx context.Context, id domain.PreviewID, version int64) error {
	p, err := w.Engine.PreparePreview(ctx, id, version)
	if err != nil || p == nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, engine.PreviewWait)
	defer cancel()
	verdicts := make([]domain.RulesVerdict, len(p.Cases))
	places := make(chan struct{}, previewsAtOnce)
	var all sync.WaitGroup
	for i, c := range p.Cases {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			verdict, err := w.askJudge(within, c.Request, c.Rules, p.Limit)
			if err != nil {
				used := verdict.Usage
				verdict = domain.NoVerdict(c.Rules, "there was no time left to ask the judge")
				verdict.Usage = used
			}
			verdicts[i] = verdict
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return domain.Wrap(domain.CodeUnavailable, "Unavailable", "the worker is stopping", ctx.Err())
	}
	commit, stop := saving(ctx)
	defer stop()
	return w.Engine.CommitPreview(commit, p, verdicts)
}
