package engine

import (
	"context"
	"encoding/json"
	"time"

	"openbot/domain"
)

// Deciding is a Bot's decision that a worker may carry to its Request. When Judge is
// set, the judge must read the Rules first: they may be what lets the Bot decide.
type Deciding struct {
	Judge   *domain.ModelRequest
	Limit   time.Duration
	Rules   []domain.Rule
	call    domain.CallID
	version int64
}

// decision is the arguments of openbot_decide.
type decision struct {
	Decision string
	Scope    string
	Reason   *string
	Rule     *string
}

func readDecision(arguments json.RawMessage) (decision, error) {
	in := decision{}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return in, err
	}
	switch in.Scope {
	case "":
		in.Scope = domain.ScopeOnce
	case "session":
		in.Scope = domain.ScopeChat
	}
	return in, nil
}

// deciding prepares a decision of a review Chat.
func (e *Engine) deciding(ctx context.Context, d *draft, f *domain.CallFacts) (*Deciding, error) {
	out := &Deciding{Limit: e.JudgeLimit, call: f.Call.ID, version: f.Call.Version}
	in, err := readDecision(f.Call.Arguments)
	if err != nil || in.Decision != domain.DecisionAllow {
		return out, nil
	}
	r, err := e.Store.Request(ctx, f.Chat.Request)
	if err != nil || r.Status != domain.RequestPending {
		return out, gone(err)
	}
	asker, err := e.Store.CallFacts(ctx, r.Call)
	if err != nil {
		return nil, err
	}
	a, err := e.deciderAttempt(ctx, d.at, &asker, r, f.Turn.Bot)
	if err != nil {
		return nil, err
	}
	if domain.Check(a).Outcome != domain.OutcomeJudge {
		return out, nil
	}
	if judge := judgeCase(a, asker.Call.Tool, asker.Call.Arguments, asker.Call.Reason); judge.Fits() {
		request := e.judgeRequest(f.Organization.Settings, judge)
		out.Judge, out.Rules = &request, judge.Rules
	}
	return out, nil
}

// deciderAttempt asks whether a Bot may do itself what another asks for. A Chat Grant
// of its own counts only from the Chat that gave the work; without one none does. The
// taint is that of the Chat that asks.
func (e *Engine) deciderAttempt(ctx context.Context, at time.Time, asker *domain.CallFacts, r domain.Request, bot domain.BotID) (domain.Attempt, error) {
	a := callAttempt(at, asker).Asked()
	a.Bot, a.Chat, a.Planning = bot, "", false
	var err error
	if a.Grants, err = e.Store.GrantsOf(ctx, bot, r.Member, r.Capability); err != nil {
		return a, err
	}
	if a.Rules, err = e.Store.RulesFor(ctx, r.Organization, bot, r.Member); err != nil {
		return a, err
	}
	if from := gaveFrom(asker, bot); from != "" {
		a.Chat = from
	}
	switch r.Capability.Action {
	case domain.ActionPlansRun, domain.ActionBotsPromote, domain.ActionDelegationsContinue:
		if a.Chat != "" {
			a.Exempt = "work that it gave"
		}
		asking, err := e.Store.Bot(ctx, r.Bot)
		if err != nil {
			return a, err
		}
		if asking.Owner == bot {
			a.Exempt = "work of a Bot that it owns"
		}
	}
	return a, nil
}

// gaveFrom is the Chat from which a Bot gave the work that asks, or "".
func gaveFrom(asker *domain.CallFacts, bot domain.BotID) domain.ChatID {
	if len(asker.Work) == 0 || asker.Work[0].Giver != bot {
		return ""
	}
	return asker.Work[0].Parent.Chat
}

// CarryDecision carries a Bot's decision to the Request that it reviews. judged is
// what the judge read, or nil when it was not asked. It takes effect once; a decision
// about a Request that moved on is not taken.
func (e *Engine) CarryDecision(ctx context.Context, in *Deciding, judged *domain.RulesVerdict) error {
	seen, err := e.Store.CallFacts(ctx, in.call)
	if err != nil {
		return gone(err)
	}
	lane := string(seen.Chat.ID)
	if r, err := e.Store.Request(ctx, seen.Chat.Request); err == nil {
		lane = string(r.Chat)
	}
	return e.decide(ctx, lane, func(d *draft) error {
		f, err := e.Store.CallFacts(ctx, in.call)
		if err != nil {
			return gone(err)
		}
		if judged != nil && in.Judge != nil {
			e.noteJudge(d, &f, in.Judge.Model, judged.Usage)
		}
		if f.Call.Status != domain.CallAllowed || f.Call.Version != in.version {
			return nil
		}
		w := e.callWork(ctx, d, &f)
		if f.Turn.Status.Ended() || f.Chat.DeletedAt != nil {
			return w.move(domain.CallStopped{At: d.at, Result: domain.TextCancelled()})
		}
		if refusal := lastLook(d.at, &f); refusal != nil {
			return w.move(refusal)
		}
		return e.planDecision(ctx, d, w, judged)
	})
}

func (e *Engine) planDecision(ctx context.Context, d *draft, w *callWork, judged *domain.RulesVerdict) error {
	late := func(why string) error {
		return w.move(domain.Carried{At: d.at, Failed: true, Result: domain.TextDecisionLate(why)})
	}
	said, err := readDecision(w.f.Call.Arguments)
	if err != nil {
		return late("its arguments cannot be read.")
	}
	r, err := e.Store.Request(ctx, w.f.Chat.Request)
	if err != nil {
		return err
	}
	asker, err := e.Store.CallFacts(ctx, r.Call)
	if err != nil {
		return err
	}
	archived := e.archived(ctx, &err)
	if archived(w.f.Turn.Bot) && err == nil {
		return late("this Bot is archived.")
	}
	a, failure := e.deciderAttempt(ctx, d.at, &asker, r, w.f.Turn.Bot)
	if failure != nil {
		return failure
	}
	a.Judged = judged
	holds := domain.Check(a)
	if holds.Outcome == domain.OutcomeJudge {
		holds = domain.Ask(a, "the judge gave no answer")
	}
	ev := domain.Reviewed{At: d.at, Chat: w.f.Chat.ID, Bot: w.f.Turn.Bot, Decision: said.Decision, Scope: said.Scope, Reason: said.Reason,
		Rule: said.Rule, Holds: holds, Next: r.NextDecider(archived), GrantID: newID[domain.GrantID](domain.PrefixGrant),
		RuleID: newID[domain.RuleID](domain.PrefixRule), From: gaveFrom(&asker, w.f.Turn.Bot), Endorsed: grantIDs(len(r.Endorsements))}
	if err != nil {
		return err
	}
	next, effects, err := domain.DecideRequest(r, ev)
	if domain.IsCode(err, domain.CodeConflict) || domain.IsCode(err, domain.CodeInvalid) {
		return late(messageOf(err))
	}
	if err != nil {
		return err
	}
	final := next.Status != domain.RequestPending
	if err := w.conclude(domain.TextDecisionTaken(said.Decision, final)); err != nil {
		return err
	}
	e.keepEffects(d, effects)
	d.was(&r)
	if !final {
		d.in(&asker.Chat)
		d.request(&next)
		return nil
	}
	if said.Reason != nil && *said.Reason != "" {
		asker.Chat.TakeIn(w.f.Chat.Taint) // the reason goes there, and may rest on the Bot's memory
	}
	aw := e.callWork(ctx, d, &asker)
	aw.reviewed = true
	if next.Status == domain.RequestAllowed {
		aw.strength = &holds.Decided
		if id := holds.Decided.Grant; id != "" {
			// Written, though unchanged: a revocation at the same time conflicts with it.
			parent, err := e.Store.Grant(ctx, id)
			if err != nil {
				return err
			}
			d.put(&parent)
		}
	}
	return aw.end(&next)
}

// conclude ends the review of the call's Chat with a decision that was taken.
func (w *callWork) conclude(result string) error {
	d := w.d
	next, err := domain.DecideCall(w.f.Call, domain.Carried{At: d.at, Result: result})
	if err != nil {
		return err
	}
	facts, err := w.e.Store.TurnFacts(w.ctx, w.f.Turn.ID)
	if err != nil {
		return err
	}
	d.in(&w.f.Chat)
	d.call(&next)
	for _, open := range facts.Open {
		if open.ID == next.ID {
			continue
		}
		c, err := domain.DecideCall(open, domain.CallStopped{At: d.at, Result: domain.TextCancelled()})
		if err != nil {
			return err
		}
		d.call(&c)
	}
	turn, err := domain.DecideTurn(w.f.Turn, domain.Concluded{At: d.at, Answer: result})
	if err != nil {
		return err
	}
	d.turn(w.f.Turn.Status, &turn)
	at := d.at
	w.f.Chat.ArchivedAt = &at
	return nil
}

func (e *Engine) keepEffects(d *draft, effects []domain.Effect) {
	for _, effect := range effects {
		switch effect := effect.(type) {
		case domain.KeepGrant:
			d.put(&effect.Grant)
		case domain.KeepRule:
			d.put(&effect.Rule)
		}
	}
}

func grantIDs(n int) []domain.GrantID {
	ids := make([]domain.GrantID, n)
	for i := range ids {
		ids[i] = newID[domain.GrantID](domain.PrefixGrant)
	}
	return ids
}
