package engine

import (
	"context"
	"encoding/json"
	"time"

	"openbot/domain"
)

// Limits of a review.
const (
	DefaultReviewLimit = 2 * time.Minute
	DefaultReviewSteps = 5
)

// AdvanceReview opens the review of a Request that waits for a Bot, or sends on one
// whose review gave no decision: its Turn has ended, its time is up, or its Bot is
// archived. A review that is under way stays as it is.
func (e *Engine) AdvanceReview(ctx context.Context, id domain.RequestID) error {
	seen, err := e.Store.Request(ctx, id)
	if err != nil {
		return gone(err)
	}
	return e.decide(ctx, string(seen.Chat), func(d *draft) error {
		f, err := e.Store.CallFacts(ctx, seen.Call)
		if err != nil {
			return gone(err)
		}
		r, err := e.currentRequest(ctx, &f, id)
		if err != nil {
			return gone(err)
		}
		if r.Status != domain.RequestPending || r.Approver.Tag != domain.TagBot || !domain.Before(d.at, r.ExpiresAt) {
			return nil
		}
		archived := e.archived(ctx, &err)
		able := !archived(r.Approver.Bot)
		if err != nil {
			return err
		}
		if r.Review == "" && able {
			return e.openReview(d, &f, r)
		}
		if r.Review != "" {
			chat, err := e.Store.Chat(ctx, r.Review)
			if err != nil {
				return err
			}
			if able && chat.Turn != "" && r.ReviewDueAt != nil && domain.Before(d.at, *r.ReviewDueAt) {
				return nil
			}
			if err := e.closeReview(ctx, d, r.Review); err != nil {
				return err
			}
		}
		next := r.NextDecider(archived)
		if err != nil {
			return err
		}
		passed, _, err := domain.DecideRequest(r, domain.Passed{At: d.at, Bot: r.Approver.Bot, Next: next})
		if err != nil {
			return err
		}
		d.in(&f.Chat)
		d.request(&passed)
		return nil
	})
}

// archived asks whether a Bot is archived, or not there. The first failure to find
// out is kept in err.
func (e *Engine) archived(ctx context.Context, err *error) func(domain.BotID) bool {
	return func(id domain.BotID) bool {
		bot, failure := e.Store.Bot(ctx, id)
		if failure != nil && !domain.IsCode(failure, domain.CodeNotFound) && *err == nil {
			*err = failure
		}
		return failure != nil || bot.ArchivedAt != nil
	}
}

// openReview makes the review Chat with its Turn. It works on the rights of the work
// that asks, so that whoever decides never has more.
func (e *Engine) openReview(d *draft, f *domain.CallFacts, r domain.Request) error {
	chat := domain.Chat{ID: newID[domain.ChatID](domain.PrefixChat), Organization: r.Organization, Member: r.Member, Bot: r.Approver.Bot,
		Kind: domain.ChatReview, Title: "Review of " + r.Capability.Action, Status: domain.ChatIdle, Request: r.ID, CreatedAt: d.at}
	next, _, err := domain.DecideRequest(r, domain.Reviewing{At: d.at, Chat: chat.ID, Until: d.at.Add(e.ReviewLimit)})
	if err != nil {
		return err
	}
	d.in(&chat)
	d.startTurn([]domain.Input{{Kind: domain.ItemNotice, From: domain.FromServer, Text: domain.TextReview(r, briefOf(f, r.Approver.Bot)),
		Authority: f.Turn.Authority, Taint: f.Chat.Taint}})
	d.put(&next)
	return nil
}

// briefOf is the task with which a Bot gave the work that asks, or "".
func briefOf(asker *domain.CallFacts, bot domain.BotID) string {
	if gaveFrom(asker, bot) == "" {
		return ""
	}
	return asker.Work[0].Task
}

// closeReview stops a review Chat and archives it. The draft's Chat stays the one
// that it was.
func (e *Engine) closeReview(ctx context.Context, d *draft, id domain.ChatID) error {
	chat, err := e.Store.Chat(ctx, id)
	if err != nil || chat.ArchivedAt != nil {
		return gone(err)
	}
	was := d.chat
	defer func() { d.chat = was }()
	d.in(&chat)
	if chat.Turn != "" {
		if err := e.stopTurn(ctx, d, chat.Turn); err != nil {
			return err
		}
	}
	at := d.at
	chat.ArchivedAt = &at
	return nil
}

// reviewOver lets somebody look at a Request whose review Chat has just lost its
// Turn. It is called in the commit that ends the Turn.
func (e *Engine) reviewOver(ctx context.Context, d *draft, chat *domain.Chat) error {
	if chat.Kind != domain.ChatReview || chat.Request == "" || chat.Turn != "" {
		return nil
	}
	r, err := e.Store.Request(ctx, chat.Request)
	if err != nil {
		return gone(err)
	}
	if r.Status != domain.RequestPending || r.Review != chat.ID {
		return nil
	}
	at := d.at
	r.ReviewDueAt = &at
	d.put(&r)
	return nil
}

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

// CloseBot stops the Turns of an archived Bot. Reviews among them go on to the next
// decider.
func (e *Engine) CloseBot(ctx context.Context, id domain.BotID) error {
	bot, err := e.Store.Bot(ctx, id)
	if err != nil || bot.ClosingDueAt == nil {
		return gone(err)
	}
	for {
		chats, err := e.Store.OpenTurns(ctx, id, 100)
		if err != nil {
			return err
		}
		for _, chat := range chats {
			if err := e.stopChat(ctx, chat); err != nil {
				return err
			}
		}
		if len(chats) < 100 {
			break
		}
	}
	return e.decide(ctx, string(id), func(d *draft) error {
		bot, err := e.Store.Bot(ctx, id)
		if err != nil || bot.ClosingDueAt == nil {
			return gone(err)
		}
		bot.ClosingDueAt = nil
		d.put(&bot)
		return nil
	})
}

func (e *Engine) stopChat(ctx context.Context, id domain.ChatID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		chat, err := e.Store.Chat(ctx, id)
		if err != nil || chat.Turn == "" {
			return gone(err)
		}
		d.in(&chat)
		if err := e.stopTurn(ctx, d, chat.Turn); err != nil {
			return err
		}
		waiting, err := e.Store.Inbox(ctx, id)
		if err != nil {
			return err
		}
		d.startNext(waiting) // which says that the Bot is archived
		if err := e.settleWork(ctx, d); err != nil {
			return err
		}
		return e.reviewOver(ctx, d, &chat)
	})
}
