package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"openbot/domain"
)

// Step is one model step that a worker may take.
type Step struct {
	Request domain.ModelRequest
	// Reply is what the model answered before its work was paused; the model is not asked
	// again. Nil asks it.
	Reply    *domain.ModelReply
	facts    domain.StepFacts
	read     []domain.Input // of the inbox: what the model got to see
	box      *toolbox
	loadedAt time.Time
	brought  domain.Taint // of the Bot as the model got to see it
}

// Turn gives the ID of the step's Turn.
func (s *Step) Turn() domain.TurnID { return s.facts.Turn.ID }

// Chat gives the ID of the step's Chat, for logs.
func (s *Step) Chat() domain.ChatID { return s.facts.Chat.ID }

// freshFor is how long what was loaded before a model call is good enough to
// decide on after it. The versions fence the Chat; this bounds how old settings,
// rights and Grants may be, which the last look before a call goes out sees again.
const freshFor = 250 * time.Millisecond

// PrepareStep loads a Turn for its next model step. It gives nil when the step is
// not wanted any more: the Turn moved on, waits, or ended.
func (e *Engine) PrepareStep(ctx context.Context, id domain.TurnID, version int64) (*Step, error) {
	for range maxGates {
		step, again, err := e.prepareStep(ctx, id, version)
		if err != nil || !again {
			return step, err
		}
	}
	return nil, nil // the sweep comes back
}

func (e *Engine) prepareStep(ctx context.Context, id domain.TurnID, version int64) (_ *Step, again bool, _ error) {
	facts, err := e.Store.StepFacts(ctx, id)
	if domain.IsCode(err, domain.CodeNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	now := e.now()
	if facts.Turn.Version != version || !e.stepWanted(&facts) {
		return nil, false, nil
	}
	if early := facts.Turn.NotBefore(); early != nil && domain.Before(now, *early) {
		return nil, false, nil // rung early; the timer or the sweep comes back
	}
	if len(facts.Work) > 0 {
		if wait, again, err := e.gateStep(ctx, &facts); wait || err != nil {
			return nil, again, err
		}
	}
	read := facts.Chat.Reads(facts.Turn, facts.Inbox)
	if facts.Turn.Held != nil {
		read = readInputs(facts.Inbox, facts.Turn.Held.Read)
	}
	if err := e.addRights(ctx, &facts, read); err != nil {
		return nil, false, err
	}
	box := e.toolboxFor(&facts)
	shown := facts
	shown.Inbox = facts.Chat.Reads(facts.Turn, facts.Inbox)
	step := &Step{Request: e.modelRequest(&shown, box), facts: facts, read: read, box: box, loadedAt: now, brought: facts.Bot.Brings()}
	if held := facts.Turn.Held; held != nil {
		step.Reply = &domain.ModelReply{Text: held.Text, Calls: held.Calls}
		step.Request.Model = held.Model
	}
	if facts.Bot.ArchivedAt != nil {
		return nil, false, e.FailStep(ctx, step, &domain.ModelError{Message: "The Bot is archived."})
	}
	return step, false, nil
}

// readInputs gives the input that a reply had read.
func readInputs(inbox []domain.Input, read []domain.InputID) []domain.Input {
	var out []domain.Input
	for _, in := range inbox {
		if slices.Contains(read, in.ID) {
			out = append(out, in)
		}
	}
	return out
}

// addRights adds the rights behind input that this step reads, so that it narrows
// the calls of the same step. Rights that cannot be loaded are an error: leaving
// them out would widen what the Turn may do.
func (e *Engine) addRights(ctx context.Context, f *domain.StepFacts, read []domain.Input) error {
	all := f.Turn.Authority
	for _, in := range read {
		all = domain.AddAuthority(all, in.Authority...)
	}
	for _, a := range all[len(f.Turn.Authority):] {
		r, err := e.rightsOf(ctx, a)
		if err != nil {
			return err
		}
		f.Rights = append(f.Rights, r)
	}
	return nil
}

// rightsOf loads who stands behind an authority.
func (e *Engine) rightsOf(ctx context.Context, a domain.Authority) (r domain.Rights, err error) {
	if r.Token, err = e.Store.Token(ctx, a.Token); err != nil {
		return r, err
	}
	if r.Token.Member != a.Bearer() {
		return r, domain.Errorf(domain.CodeInternal, "AuthorityMissing", "The token behind this work is not its Member's.")
	}
	if a.Member != "" {
		if r.Member, err = e.Store.Member(ctx, a.Member); err != nil {
			return r, err
		}
	}
	if a.Via != "" {
		via, err := e.Store.Member(ctx, a.Via)
		if err != nil {
			return r, err
		}
		r.Via = &via
	}
	return r, nil
}

func (e *Engine) stepWanted(f *domain.StepFacts) bool {
	return f.Turn.StepDue() && f.Chat.Turn == f.Turn.ID && f.Chat.DeletedAt == nil
}

// PushStep says that the model call is still under way. It reports false when the
// step is not wanted any more.
func (e *Engine) PushStep(ctx context.Context, s *Step) (bool, error) {
	if len(s.facts.Work) > 0 {
		path, err := e.Store.Work(ctx, s.facts.Work[0].ID)
		if err != nil {
			return false, err
		}
		if domain.HeldBy(path).Stopping != "" {
			return false, nil // a cancel aborts the model call; a pause keeps its reply
		}
	}
	return e.Store.PushTurn(ctx, s.facts.Turn.ID, s.facts.Turn.Version, e.now().Add(domain.LeaseTime))
}

// stepWork is one decision about a step: what was loaded, and what it changes.
type stepWork struct {
	facts      *domain.StepFacts
	box        *toolbox
	chat       domain.Chat
	turn       domain.Turn
	bot        domain.Bot
	botChanged bool
	step       int
	read       []domain.Input
	program    *domain.Call // the program that makes the calls; nil when the model does
	d          *draft
	work       *domain.Delegation // the row of the Chat's own work in the draft, or nil
	touched    map[domain.DelegationID]bool
	at         time.Time
	reminders  []*domain.Reminder  // that this step sets
	reminded   []domain.ReminderID // that this step cancels
	open       *int                // reminders of the Chat before this step; nil until they are counted
}

func (s *Step) work() *stepWork {
	w := &stepWork{facts: &s.facts, box: s.box, chat: s.facts.Chat, turn: s.facts.Turn, bot: s.facts.Bot,
		step: s.facts.Turn.Steps + 1, read: s.read}
	w.chat.TakeIn(s.brought)
	return w
}

// unread is the input that came after the model had read the inbox. It is complete
// whenever the commit goes through: input moves the version of the Chat.
func (w *stepWork) unread() []domain.Input {
	var unread []domain.Input
	for _, in := range w.facts.Inbox {
		if !slices.ContainsFunc(w.read, func(r domain.Input) bool { return r.ID == in.ID }) {
			unread = append(unread, in)
		}
	}
	return unread
}

// CommitStep saves what a model answered: its text, its calls with the check of
// each, and where the Turn goes from there. A step that is not wanted any more is
// dropped; that it was paid for is noted.
func (e *Engine) CommitStep(ctx context.Context, s *Step, reply domain.ModelReply) error {
	reply.Text = safeText(reply.Text)
	first := e.now().Sub(s.loadedAt) <= freshFor
	return e.decide(ctx, string(s.facts.Chat.ID), func(d *draft) error {
		if !first {
			wanted, err := e.reload(ctx, s)
			if err != nil {
				return err
			}
			if !wanted {
				e.noteLate(d, s, reply.Usage)
				return nil
			}
		}
		first = false
		switch h := domain.HeldBy(s.facts.Work); {
		case h.Stopping != "":
			e.noteLate(d, s, reply.Usage)
			return nil
		case h.Paused != "":
			return e.holdReply(d, s.work(), h.Paused, s.Request.Model, reply)
		}
		return e.planStep(ctx, d, s.work(), s.Request.Model, reply)
	})
}

// reload loads the step's facts again and reports whether the step is still
// wanted. Input that came meanwhile stays in the inbox for the next step: the model
// has not read it.
func (e *Engine) reload(ctx context.Context, s *Step) (bool, error) {
	facts, err := e.Store.StepFacts(ctx, s.facts.Turn.ID)
	if err != nil {
		return false, err
	}
	if facts.Turn.Version != s.facts.Turn.Version || !e.stepWanted(&facts) {
		return false, nil
	}
	for _, in := range s.read {
		if !slices.ContainsFunc(facts.Inbox, func(i domain.Input) bool { return i.ID == in.ID }) {
			return false, nil // taken meanwhile: the Turn was read before that
		}
	}
	if err := e.addRights(ctx, &facts, s.read); err != nil {
		return false, err
	}
	s.facts = facts
	s.box = e.toolboxFor(&s.facts)
	s.loadedAt = e.now()
	return true, nil
}

func (e *Engine) planStep(ctx context.Context, d *draft, w *stepWork, model string, reply domain.ModelReply) error {
	d.in(&w.chat)
	w.d = d
	w.takeInbox(d)
	w.at = d.at
	before := w.turn.Status
	cost := e.cost(w.facts.Organization.Settings, model, reply.Usage)
	d.guard(w.facts.Work)
	if w.turn.Held == nil { // else it is counted and paid for
		d.commit.Usage = append(d.commit.Usage, e.stepUsage(d.at, w.facts, model, reply.Usage, 1))
		if err := w.countStep(d, cost); err != nil {
			return err
		}
	}
	if reply.Text != "" || len(reply.Calls) == 0 {
		d.item(domain.Item{Turn: w.turn.ID, Step: w.step, Kind: domain.ItemAnswer, From: string(w.bot.ID), Text: reply.Text})
	}
	if len(reply.Calls) == 0 {
		unread := w.unread()
		next, err := domain.DecideTurn(w.turn, domain.StepWithText{At: d.at, Text: reply.Text, MoreInput: len(w.chat.Reads(w.turn, unread)) > 0, Usage: reply.Usage, Cost: cost})
		if err != nil {
			return err
		}
		d.turn(before, &next)
		w.sayOutside(d, reply.Text)
		d.startNext(unread) // of other authors in a Channel
		if err := d.endWork(next, w.facts.Work, w.work, w.facts.OpenWork, len(w.unread())); err != nil {
			return err
		}
		return e.reviewOver(ctx, d, &w.chat)
	}
	if w.chat.Kind == domain.ChatReview && w.step > e.ReviewSteps {
		return e.planFailure(ctx, d, w, reply.Usage, cost, fmt.Sprintf("The review took %d steps without a decision.", e.ReviewSteps))
	}
	if len(reply.Calls) > domain.MaxStepCalls {
		return e.planFailure(ctx, d, w, reply.Usage, cost, fmt.Sprintf("The model asked for %d calls in one step; at most %d are taken.", len(reply.Calls), domain.MaxStepCalls))
	}
	calls := make([]*domain.Call, len(reply.Calls))
	requests := make([]*domain.Request, 0, len(reply.Calls))
	runnable, settled := 0, 0
	for i, asked := range reply.Calls {
		call, request, err := e.planCall(ctx, d, w, i, asked)
		if err != nil {
			return err
		}
		calls[i] = call
		if request != nil {
			requests = append(requests, request)
		}
		if !call.Open() {
			settled++
		} else if call.Runnable() {
			runnable++
		}
	}
	next, err := domain.DecideTurn(w.turn, domain.StepWithCalls{At: d.at, Calls: len(calls), Runnable: runnable, Settled: settled, Usage: reply.Usage, Cost: cost})
	if err != nil {
		return err
	}
	if next.Status == domain.TurnFailed {
		return e.planFailure(ctx, d, w, reply.Usage, cost, next.Error)
	}
	for _, c := range calls {
		d.item(domain.Item{Turn: w.turn.ID, Step: w.step, Kind: domain.ItemToolCall, From: string(w.bot.ID), Text: c.Name, Call: c.ID})
	}
	for _, c := range calls {
		d.call(c)
	}
	for _, r := range requests {
		d.request(r)
	}
	if w.botChanged {
		w.bot.UpdatedAt = d.at
		d.put(&w.bot)
	}
	w.keepReminders(d)
	d.turn(before, &next)
	return nil
}

// takeInbox moves the input that the model has read into the history.
func (w *stepWork) takeInbox(d *draft) {
	for _, in := range w.read {
		d.commit.Taken = append(d.commit.Taken, in.ID)
		d.take(w.turn.ID, in)
		w.turn.Authority = domain.AddAuthority(w.turn.Authority, in.Authority...)
	}
}

// cost prices a model call in nano-USD: the organization's price first, then the
// shipped table; a model without a price costs 0.
func (e *Engine) cost(s domain.Settings, model string, usage domain.ModelUsage) int64 {
	price, ok := s.Price(model)
	if !ok {
		if price, ok = e.Models.Price(model); !ok {
			return 0
		}
	}
	return price.CostNanos(usage)
}

// FailStep saves that a model call gave no reply: it is tried again later, or the
// Turn fails with the reason. A step that is not wanted any more is dropped.
func (e *Engine) FailStep(ctx context.Context, s *Step, failure *domain.ModelError) error {
	return e.decide(ctx, string(s.facts.Chat.ID), func(d *draft) error {
		if wanted, err := e.reload(ctx, s); err != nil || !wanted {
			return err
		}
		w := s.work()
		before := w.turn.Status
		switch h := domain.HeldBy(s.facts.Work); {
		case h.Stopping != "":
			return nil
		case h.Paused != "":
			parked, err := domain.DecideTurn(w.turn, domain.Parked{At: d.at, By: h.Paused})
			if err != nil {
				return err
			}
			d.guard(s.facts.Work)
			d.in(&w.chat)
			d.turn(before, &parked)
			return nil
		}
		next, err := domain.DecideTurn(w.turn, domain.ModelFailed{At: d.at, Temporary: failure.Temporary, Message: safeText(failure.Message)})
		if err != nil {
			return err
		}
		d.in(&w.chat)
		if next.Status.Ended() {
			w.takeInbox(d)
		}
		d.turn(before, &next)
		if next.Status.Ended() {
			d.startNext(w.unread())
			if err := d.endWork(next, w.facts.Work, nil, w.facts.OpenWork, 0); err != nil {
				return err
			}
			d.guard(w.facts.Work)
			return e.reviewOver(ctx, d, &w.chat)
		}
		return nil
	})
}

// planFailure ends a Turn whose step cannot be taken. The model call is paid for
// all the same.
func (e *Engine) planFailure(ctx context.Context, d *draft, w *stepWork, usage domain.ModelUsage, cost int64, why string) error {
	before := w.turn.Status
	next, err := domain.DecideTurn(w.turn, domain.ModelFailed{At: d.at, Message: why, Usage: usage, Cost: cost})
	if err != nil {
		return err
	}
	d.turn(before, &next)
	d.startNext(w.unread())
	if err := d.endWork(next, w.facts.Work, w.work, w.facts.OpenWork, 0); err != nil {
		return err
	}
	return e.reviewOver(ctx, d, &w.chat)
}
