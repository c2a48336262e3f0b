package engine

import (
	"context"
	"encoding/json"

	"openbot/domain"
)

// maxGates is how often a step that is about to be taken may find a limit and go on.
const maxGates = 20

// gateStep says whether the next step of a Turn may be taken now. A Turn of paused work
// is parked; one of stopped work is stopped by whoever closes that work. again asks for
// a new look: a limit was reached, and the work goes on or pauses.
func (e *Engine) gateStep(ctx context.Context, f *domain.StepFacts) (wait, again bool, err error) {
	h := domain.HeldBy(f.Work)
	switch {
	case h.Stopping != "":
		return true, false, nil
	case h.Paused != "":
		return true, false, e.parkTurn(ctx, f.Chat.ID, f.Turn.ID, f.Turn.Version)
	case f.Turn.Held != nil || len(f.Work) == 0:
		return false, false, nil // a reply that was held is paid for
	}
	if id, limit := domain.LimitReached(f.Work); id != "" {
		return true, true, e.reachLimit(ctx, id, limit)
	}
	return false, false, nil
}

// parkTurn takes a Turn of paused work out of everybody's sight until the work goes on.
func (e *Engine) parkTurn(ctx context.Context, chat domain.ChatID, turn domain.TurnID, version int64) error {
	return e.decide(ctx, string(chat), func(d *draft) error {
		f, err := e.Store.StepFacts(ctx, turn)
		if err != nil || f.Turn.Version != version || !e.stepWanted(&f) {
			return gone(err)
		}
		by := domain.HeldBy(f.Work).Paused
		if by == "" {
			return nil
		}
		before := f.Turn.Status
		next, err := domain.DecideTurn(f.Turn, domain.Parked{At: d.at, By: by})
		if err != nil {
			return err
		}
		d.guard(f.Work)
		d.in(&f.Chat)
		d.turn(before, &next)
		return nil
	})
}

// holdReply keeps what a model answered while its work was paused.
func (e *Engine) holdReply(d *draft, w *stepWork, by domain.DelegationID, model string, reply domain.ModelReply) error {
	if w.turn.Held != nil {
		before := w.turn.Status
		next, err := domain.DecideTurn(w.turn, domain.Parked{At: d.at, By: by})
		if err != nil {
			return err
		}
		d.guard(w.facts.Work)
		d.in(&w.chat)
		d.turn(before, &next)
		return nil
	}
	held := domain.HeldReply{Model: model, Text: reply.Text, Calls: heldCalls(reply.Calls)}
	for _, in := range w.read {
		held.Read = append(held.Read, in.ID)
	}
	cost := e.cost(w.facts.Organization.Settings, model, reply.Usage)
	d.commit.Usage = append(d.commit.Usage, e.stepUsage(d.at, w.facts, model, reply.Usage, 1))
	before := w.turn.Status
	next, err := domain.DecideTurn(w.turn, domain.ReplyHeld{At: d.at, By: by, Reply: held, Usage: reply.Usage, Cost: cost})
	if err != nil {
		return err
	}
	d.guard(w.facts.Work)
	d.in(&w.chat)
	if err := w.countStep(d, cost); err != nil {
		return err
	}
	d.turn(before, &next)
	return nil
}

// heldCalls makes what a model asked for fit for a row of JSON, whatever it wrote.
func heldCalls(calls []domain.ModelCall) []domain.ModelCall {
	kept := make([]domain.ModelCall, len(calls))
	for i, c := range calls {
		kept[i] = domain.ModelCall{ID: safeText(c.ID), Name: safeText(c.Name), Arguments: c.Arguments}
		if !json.Valid(c.Arguments) {
			kept[i].Arguments = quoted(c.Arguments)
		}
	}
	return kept
}

// countStep counts a model step for the work of the step's Chat and for all work above.
func (w *stepWork) countStep(d *draft, cost int64) error {
	if len(w.facts.Work) == 0 {
		return nil
	}
	before := w.facts.Work[0]
	next, err := domain.DecideDelegation(before, domain.Stepped{At: d.at, Authority: w.turn.Authority})
	if err != nil {
		return err
	}
	w.work = &next
	if next.Status != before.Status {
		d.work(&next, nil)
	} else {
		d.put(&next)
	}
	if cost > 0 {
		spent := domain.WorkCost{Nanos: cost}
		for _, g := range w.facts.Work {
			spent.Path = append(spent.Path, g.ID)
		}
		d.commit.Cost = &spent
	}
	return nil
}

// reachLimit asks whether work at a limit goes on: a Grant may say so at once, else the
// work pauses until its Request is decided.
func (e *Engine) reachLimit(ctx context.Context, id domain.DelegationID, limit string) error {
	g, err := e.Store.Delegation(ctx, id)
	if err != nil {
		return gone(err)
	}
	return e.decide(ctx, string(g.Chat), func(d *draft) error {
		chat, err := e.Store.Chat(ctx, g.Chat)
		if err != nil || chat.LastTurn == "" || chat.DeletedAt != nil {
			return gone(err)
		}
		f, err := e.Store.StepFacts(ctx, chat.LastTurn)
		if err != nil {
			return gone(err)
		}
		if len(f.Work) == 0 || f.Work[0].ID != id || !domain.HeldBy(f.Work).Free() || !domain.AtLimit(f.Work, limit, d.at) || !f.Work[0].Open() {
			return nil
		}
		return e.planLimit(d, &f, limit)
	})
}

func (e *Engine) planLimit(d *draft, f *domain.StepFacts, limit string) error {
	g := f.Work[0]
	arguments, err := json.Marshal(map[string]any{"delegation": g.ID, "limit": limit, "limits": g.Limits,
		"usage": map[string]int64{"timeMs": domain.UsedTime(f.Work, d.at).Milliseconds(), "steps": g.Steps, "costMicros": domain.MicrosFromNanos(g.CostNanos)}})
	if err != nil {
		return domain.Wrap(domain.CodeInternal, "Internal", "The arguments of a limit could not be written.", err)
	}
	capability := domain.Capability{Action: domain.ActionDelegationsContinue, Target: string(g.ID)}
	call, err := workCall(d, &f.Chat, domain.CallContinue, g.ID, g.Member, capability, arguments)
	if err != nil {
		return err
	}
	call.Tool = limit
	chain := domain.OwnerChain(f.Bot, f.MainBot, f.Owners)
	verdict := domain.Check(domain.Attempt{At: d.at, Bot: f.Bot.ID, Member: g.Member, Chat: f.Chat.ID, Capability: capability, Rights: f.Rights,
		Visible: true, Limit: limit, Caution: caution(f.Organization.Settings, call, nil, nil, f.Chat.Taint), Grants: f.Grants, Rules: f.Rules, Deciders: domain.Deciders(chain)})
	next, request, err := e.checkWork(d, &f.Chat, f.Organization.Settings, f.Bot.ID, chain, call, verdict)
	if err != nil {
		return err
	}
	d.guard(f.Work[1:])
	d.in(&f.Chat)
	switch verdict.Outcome {
	case domain.OutcomeAllow:
		on, err := domain.DecideDelegation(g, domain.Continued{At: d.at, Path: f.Work})
		if err != nil {
			return err
		}
		carried, err := domain.DecideCall(*next, domain.Carried{At: d.at, Result: "The work goes on."})
		if err != nil {
			return err
		}
		d.put(&carried)
		d.work(&on, map[string]any{"continued": limit, "by": verdict.Decided.By})
	case domain.OutcomeDeny:
		off, err := domain.DecideDelegation(g, domain.WorkStopping{At: d.at, Why: domain.TextLimitDenied(limit, verdict.Decided, domain.DecisionDeny, verdict.Reason)})
		if err != nil {
			return err
		}
		d.put(next)
		d.work(&off, nil)
	default:
		paused, err := domain.DecideDelegation(g, domain.Reached{At: d.at, Limit: limit, Call: next.ID, Path: f.Work})
		if err != nil {
			return err
		}
		d.put(next)
		d.work(&paused, nil)
		if request != nil {
			d.request(request)
		}
	}
	return nil
}

// ElapseWork looks at work whose time limit may be reached. A clock that stood meanwhile
// moves the look, and one that stands now parks it.
func (e *Engine) ElapseWork(ctx context.Context, id domain.DelegationID) error {
	g, err := e.Store.Delegation(ctx, id)
	if err != nil || g.DueAt == nil || domain.Before(e.now(), *g.DueAt) {
		return gone(err)
	}
	at := false
	err = e.decide(ctx, string(g.Chat), func(d *draft) error {
		at = false
		path, err := e.Store.Work(ctx, id)
		if err != nil || len(path) == 0 {
			return err
		}
		now := path[0]
		if !now.Open() || now.Stopping() || now.Pause != nil || now.DueAt == nil || domain.Before(d.at, *now.DueAt) {
			return nil
		}
		h := domain.HeldBy(path)
		if h.Free() && domain.AtLimit(path, domain.LimitTime, d.at) {
			at = true
			return nil
		}
		if h.Stopping != "" {
			now.DueAt = nil // whoever closes the work above ends this too
			d.put(&now)
			return nil
		}
		next, err := domain.DecideDelegation(now, domain.Postponed{At: d.at, Path: path})
		if err != nil {
			return err
		}
		d.guard(path[1:])
		d.put(&next)
		return nil
	})
	if err != nil || !at {
		return err
	}
	return e.reachLimit(ctx, id, domain.LimitTime)
}

// unparkBatch is how many rows of a kind are set free at a time.
const unparkBatch = 500

// ResumeWork sets free what a pause parked, once it is over.
func (e *Engine) ResumeWork(ctx context.Context, id domain.DelegationID) error {
	var g domain.Delegation
	for {
		var err error
		if g, err = e.Store.Delegation(ctx, id); err != nil || g.ResumeDueAt == nil {
			return gone(err) // among others: it has paused again meanwhile
		}
		tasks, err := e.Store.Unpark(ctx, id, e.now().Add(domain.RunnableGrace), unparkBatch)
		if err != nil {
			return err
		}
		if len(tasks) == 0 {
			break
		}
		e.Ringer.Ring(ctx, tasks...)
	}
	return e.decide(ctx, string(g.Chat), func(d *draft) error {
		now, err := e.Store.Delegation(ctx, id)
		if err != nil || now.ResumeDueAt == nil || now.Gate != g.Gate {
			return gone(err)
		}
		now.ResumeDueAt = nil
		d.put(&now)
		return nil
	})
}
