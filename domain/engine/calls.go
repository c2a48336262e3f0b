package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"openbot/domain"
)

// How old the last look at an App may be before a call goes out.
const (
	lookAge       = time.Minute
	lookAgeWaited = 10 * time.Second // for a call that waited for a decision
)

// Sending is one call that its worker has taken: sending is committed, and the
// worker may send it once before the lease is up.
type Sending struct {
	Call       domain.Call
	Lease      string
	Until      time.Time // the worker's own end, before that of the lease
	Connection *domain.Connection
	HostTool   *domain.HostTool
	// known is what stood when the call was taken. It serves the first try to save the
	// answer: whatever moves in the Chat moves its version, which fences it.
	known *domain.CallFacts
}

// Taking is what a worker got when it asked for a call.
type Taking struct {
	Sending *Sending           // the call is the worker's
	Look    *domain.Connection // the App must be looked at first; then ask again
	Decide  *Deciding          // a Bot's decision; carry it with CarryDecision
}

// TakeCall looks at an allowed call once more and commits that it is going out.
// It gives neither when the call is not wanted any more, or was refused at this
// last look. looked says that the caller has just looked at the App.
func (e *Engine) TakeCall(ctx context.Context, id domain.CallID, version int64, looked bool) (Taking, error) {
	var taking Taking
	var taken *callWork
	err := e.decideCall(ctx, id, func(d *draft, f *domain.CallFacts) error {
		taking, taken = Taking{}, nil
		if f.Call.Status != domain.CallAllowed || f.Call.Version != version || f.Call.Kind == domain.CallProgram {
			return nil
		}
		w := e.callWork(ctx, d, f)
		if w.stopped() {
			return w.move(domain.CallStopped{At: d.at, Result: domain.TextStopped(f.Call)})
		}
		if held, err := w.heldUp(); held || err != nil {
			return err
		}
		if f.Call.Kind == domain.CallDecide {
			var err error
			taking.Decide, err = e.deciding(ctx, d, f)
			return err
		}
		if !looked && lookDue(f, d.at) {
			taking.Look = f.Connection
			return nil
		}
		f.Call.Repeatable = repeatable(f.Organization.Settings, f.Call, f.HostTool)
		if refusal := lastLook(d.at, f); refusal != nil {
			return w.move(refusal)
		}
		if f.Call.ForWork() {
			return w.carryWork()
		}
		d.guard(f.Work)
		if f.Call.Kind == domain.CallOwn {
			return w.carryOwn()
		}
		lease := uuid.NewString()
		if err := w.move(domain.Taken{At: d.at, Lease: lease}); err != nil {
			return err
		}
		taken = w
		taking.Sending = &Sending{Call: w.call, Lease: lease, Until: d.at.Add(domain.LeaseTime - domain.LeaseMargin),
			Connection: f.Connection, HostTool: f.HostTool}
		return nil
	})
	if err != nil {
		return Taking{}, err
	}
	if taken != nil {
		taking.Sending.known = taken.committed()
	}
	return taking, nil
}

// lookDue reports whether the App must be looked at before this call.
func lookDue(f *domain.CallFacts, at time.Time) bool {
	c := f.Connection
	if c == nil || c.DeletedAt != nil {
		return false
	}
	age := lookAge
	if f.Call.Waited {
		age = lookAgeWaited
	}
	return c.LookedAt == nil || !domain.Before(at, c.LookedAt.Add(age))
}

// lastLook checks the binding, policy, deny Grants, and that what allowed the call
// still stands. It gives nil when the call may go out, and else what becomes of it: it is
// refused, or the check is made anew because only a decider can allow it now.
func lastLook(at time.Time, f *domain.CallFacts) domain.CallEvent {
	c := f.Call
	a := callAttempt(at, f)
	changed := a.Visible && (c.Connection != "" && f.Connection.Revision != c.Revision ||
		c.Kind == domain.CallHost && f.HostTool.Revision != c.Revision)
	if d := c.Decided; d != nil && d.By.Tag == domain.TagBot {
		f.Strength.Chat = gaveFrom(f, d.By.Bot)
	}
	verdict := domain.Recheck(a, c.Decided, f.Strength)
	switch {
	case verdict.Outcome == domain.OutcomeAsk && !changed:
		return domain.Doubted{At: at, Evidence: verdict.Evidence}
	case verdict.Outcome == domain.OutcomeAllow && !changed:
		return nil
	case verdict.Outcome == domain.OutcomeAllow || verdict.Outcome == domain.OutcomeAsk:
		return domain.Refused{At: at, Result: domain.TextRevisionChanged()}
	}
	decided := verdict.Decided
	return domain.Refused{At: at, Denied: true, Decided: &decided, Evidence: verdict.Evidence, Result: domain.TextDenied(decided, verdict.Reason)}
}

// callAttempt is what a saved call tries, as things stand now. Rules and deciders are
// left out: see judgedAttempt.
func callAttempt(at time.Time, f *domain.CallFacts) domain.Attempt {
	c := f.Call
	a := domain.Attempt{At: at, Bot: f.Turn.Bot, Member: c.Member, Chat: c.Chat, Capability: c.Capability, Rights: f.Rights,
		Planning: f.Chat.Mode == domain.ModePlan, Revision: c.Revision, Grants: f.Grants,
		Exempt:  exemption(f.Organization.Settings, c, f.HostTool),
		Caution: caution(f.Organization.Settings, c, f.Connection, f.HostTool, f.Chat.Taint)}
	if c.Kind == domain.CallContinue {
		a.Limit = c.Tool
	}
	switch {
	case c.Connection != "":
		a.Visible = f.Connection != nil && f.Connection.VisibleTo(c.Member)
	case c.Kind == domain.CallHost:
		a.Visible = f.HostTool != nil && f.HostTool.DeletedAt == nil
	case c.OwnWork():
		a.Visible = true
	}
	return a
}

// RenewCall says that the call is still out. It gives the worker's new end, and
// false when the lease is another's or the work was stopped.
func (e *Engine) RenewCall(ctx context.Context, s *Sending) (time.Time, bool, error) {
	at := e.now()
	ok, err := e.Store.RenewLease(ctx, s.Call.ID, s.Lease, at.Add(domain.LeaseTime))
	return at.Add(domain.LeaseTime - domain.LeaseMargin), ok, err
}

// SettleCall saves what the App answered, or that the call surely did not go out.
// An answer under a lease that is another's by now is dropped: the call was
// already declared unknown.
//
// An answer from outside the organization taints the Chat in the same commit. What was
// loaded when the call was taken tells whom the organization trusts; a source that it
// trusted then is looked up anew.
func (e *Engine) SettleCall(ctx context.Context, s *Sending, failed bool, result string) error {
	known := s.known
	if known != nil && len(answers(known, time.Time{})) == 0 {
		known = nil
	}
	return e.moveCall(ctx, s, known, func(d *draft, f *domain.CallFacts) domain.CallEvent {
		f.Chat.TakeIn(answers(f, d.at))
		return domain.Returned{At: d.at, Lease: s.Lease, Failed: failed, Result: safeText(result)}
	})
}

// LoseCall saves that the call went out and no answer came back. Whether it may go
// out again is a setting, which is read anew.
func (e *Engine) LoseCall(ctx context.Context, s *Sending) error {
	return e.moveCall(ctx, s, nil, func(d *draft, f *domain.CallFacts) domain.CallEvent {
		return lost(d, f, s.Lease)
	})
}

// moveCall decides on what is known at the first try, if anything is, and on what it
// loads after a conflict.
func (e *Engine) moveCall(ctx context.Context, s *Sending, known *domain.CallFacts, event func(*draft, *domain.CallFacts) domain.CallEvent) error {
	return e.decide(ctx, string(s.Call.Chat), func(d *draft) error {
		var f domain.CallFacts
		if known != nil {
			f, known = *known, nil
		} else {
			var err error
			if f, err = e.Store.CallFacts(ctx, s.Call.ID); err != nil {
				return gone(err)
			}
		}
		if f.Call.Status != domain.CallSending || f.Call.Lease != s.Lease {
			return nil
		}
		w := e.callWork(ctx, d, &f)
		return w.move(event(d, &f))
	})
}

// LapseCall looks at a call whose lease may have run out: its worker died between
// sending and the answer.
func (e *Engine) LapseCall(ctx context.Context, id domain.CallID) error {
	return e.decideCall(ctx, id, func(d *draft, f *domain.CallFacts) error {
		if f.Call.Status != domain.CallSending || !f.Call.LeaseRanOut(d.at) {
			return nil
		}
		w := e.callWork(ctx, d, f)
		return w.move(lost(d, f, ""))
	})
}

func lost(d *draft, f *domain.CallFacts, lease string) domain.Lost {
	f.Call.Repeatable = repeatable(f.Organization.Settings, f.Call, f.HostTool)
	return domain.Lost{At: d.at, Lease: lease, Stopped: f.Turn.Status.Ended(), Request: newID[domain.RequestID](domain.PrefixRequest),
		Result: domain.TextNoAnswer(f.Call.Sends)}
}

// decideCall carries out one decision about a call. What was loaded to find its
// Chat serves the first try: the versions fence it.
func (e *Engine) decideCall(ctx context.Context, id domain.CallID, plan func(d *draft, f *domain.CallFacts) error) error {
	facts, err := e.Store.CallFacts(ctx, id)
	if err != nil {
		return gone(err)
	}
	loaded := true
	return e.decide(ctx, string(facts.Chat.ID), func(d *draft) error {
		if !loaded {
			if facts, err = e.Store.CallFacts(ctx, id); err != nil {
				return gone(err)
			}
		}
		loaded = false
		f := facts
		return plan(d, &f)
	})
}

// gone drops work on a row that there is not any more.
func gone(err error) error {
	if domain.IsCode(err, domain.CodeNotFound) {
		return nil
	}
	return err
}

// callWork moves one call and lets its Turn follow.
type callWork struct {
	ctx      context.Context
	e        *Engine
	d        *draft
	f        *domain.CallFacts
	call     domain.Call       // after the move
	moved    *domain.Call      // the row of it in the draft
	turned   *domain.Turn      // the row of its Turn in the draft; nil when that stays
	reviewed bool              // the review of its Request is closed in this draft already
	strength *domain.DecidedBy // what let the Bot that allowed it
	answer   *domain.Decision  // of the Request that the call waited for
}

// stopped reports whether nobody wants the call any more.
func (w *callWork) stopped() bool {
	if w.f.Call.ForWork() {
		return w.f.Chat.DeletedAt != nil
	}
	return w.f.Turn.Status.Ended() || w.f.Chat.DeletedAt != nil
}

// heldUp parks a call of paused work, and leaves one of stopped work to whoever closes
// that work. What decides about a pause is not held by it.
func (w *callWork) heldUp() (bool, error) {
	h := domain.HeldBy(w.f.Work)
	switch {
	case w.f.Call.Kind == domain.CallContinue || h.Free():
		return false, nil
	case h.Stopping != "":
		return true, nil
	}
	next, err := domain.DecideCall(w.f.Call, domain.CallParked{At: w.d.at, By: h.Paused})
	if err != nil {
		return true, err
	}
	w.d.guard(w.f.Work)
	w.d.put(&next)
	return true, nil
}

func (e *Engine) callWork(ctx context.Context, d *draft, f *domain.CallFacts) *callWork {
	before := f.Call
	d.was(&before)
	return &callWork{ctx: ctx, e: e, d: d, f: f}
}

// carryOwn does the work of one of OpenBot's own tools, in the commit that ends its
// call, so that it is done once.
func (w *callWork) carryOwn() error {
	t, ok := ownByName()[w.f.Call.Tool]
	if !ok {
		return w.move(domain.Carried{At: w.d.at, Failed: true, Result: domain.TextNoTool(w.f.Call.Tool)})
	}
	text, err := t.carry(w.ctx, w.e, w.d, w.f)
	var failure *domain.Error
	if errors.As(err, &failure) {
		return err
	}
	if err != nil {
		return w.move(domain.Carried{At: w.d.at, Failed: true, Result: domain.TextOwnFailed(err.Error())})
	}
	return w.move(domain.Carried{At: w.d.at, Result: text})
}

// move decides the event, writes the call, makes the Request that an unknown
// outcome needs, and lets the Turn follow.
func (w *callWork) move(ev domain.CallEvent) error {
	next, err := domain.DecideCall(w.f.Call, ev)
	if err != nil {
		return err
	}
	if w.d.chat != &w.f.Chat {
		w.d.in(&w.f.Chat)
	}
	w.call, w.moved = next, &next
	w.d.call(&next)
	if next.Status == domain.CallUnknown && next.Open() {
		w.d.request(w.askUnknown(next))
	}
	if next.ForWork() {
		return w.workMoved(next)
	}
	if err := w.stoppedWork(next); err != nil {
		return err
	}
	moved := []domain.Call{next}
	if woken, err := w.wake(next); err != nil {
		return err
	} else if woken != nil {
		moved = append(moved, *woken)
	}
	return w.follow(moved...)
}

// stoppedWork looks at the work of a Chat in which a call ended that outlived its Turn:
// it may have been the last that kept the work open.
func (w *callWork) stoppedWork(ended domain.Call) error {
	if ended.Open() || len(w.f.Work) == 0 || !w.f.Turn.Status.Ended() {
		return nil
	}
	if by := domain.HeldBy(w.f.Work).Stopping; by != "" {
		w.d.ring = append(w.d.ring, domain.Task{Kind: domain.TaskWorkClose, Subject: string(by), Revision: w.d.at.UnixMilli(), Urgency: domain.UrgencyTurn})
		return nil
	}
	return w.e.settleWork(w.ctx, w.d)
}

// follow lets the Turn go where the calls of its newest step leave it. moved are those
// that this draft moves or adds.
func (w *callWork) follow(moved ...domain.Call) error {
	if w.f.Turn.Status.Ended() || w.f.Call.Step != w.f.Turn.Steps {
		return nil
	}
	standing := make(map[domain.CallID]domain.Call, len(w.f.Siblings)+len(moved))
	for _, s := range w.f.Siblings {
		c := domain.Call{Status: s.Status}
		if s.Ended {
			c.EndedAt = &w.d.at
		}
		standing[s.ID] = c
	}
	for _, c := range moved {
		standing[c.ID] = c
	}
	open, runnable := 0, 0
	for _, c := range standing {
		if c.Open() {
			open++
		}
		if c.Runnable() {
			runnable++
		}
	}
	before := w.f.Turn.Status
	next, err := domain.DecideTurn(w.f.Turn, domain.CallsMoved{At: w.d.at, Open: open, Runnable: runnable})
	if err != nil {
		return err
	}
	if next.Status == before && next.OpenCalls == w.f.Turn.OpenCalls && next.DueAt == nil && w.f.Turn.DueAt == nil {
		return nil
	}
	w.turned = &next
	w.d.turn(before, &next)
	return nil
}

// committed gives the facts as the commit of the move left them: it raised the
// versions of its rows in place.
func (w *callWork) committed() *domain.CallFacts {
	f := *w.f
	f.Call = *w.moved
	if w.turned != nil {
		f.Turn = *w.turned
	}
	f.Siblings = slices.Clone(f.Siblings)
	for i := range f.Siblings {
		if f.Siblings[i].ID == f.Call.ID {
			f.Siblings[i].Status, f.Siblings[i].Ended = f.Call.Status, !f.Call.Open()
		}
	}
	return &f
}

// askUnknown makes the Request to the person about a call that went out and gave
// no sign.
func (w *callWork) askUnknown(c domain.Call) *domain.Request {
	r := &domain.Request{ID: c.Request, Organization: c.Organization, Member: c.Member, Bot: w.f.Turn.Bot,
		Capability: c.Capability, Reason: c.Reason, Approver: domain.Person(c.Member), Chain: []domain.BotID{w.f.Turn.Bot},
		Chat: c.Chat, Turn: c.Turn, Call: c.ID, Code: domain.ShownCode(c, w.f.Parent), Arguments: c.Arguments, Endorsements: []domain.Endorsement{},
		Unknown: &domain.Unknown{SentAtMs: c.SentAt.UnixMilli()}, Status: domain.RequestPending, CreatedAt: w.d.at,
		UpdatedAt: w.d.at, ExpiresAt: w.d.at.Add(w.f.Organization.Settings.RequestTimeout())}
	if before := w.f.Request; before != nil {
		r.Chain = before.Chain
	}
	explain(r, w.f.Organization.Settings, c, callAttempt(w.d.at, w.f).Caution)
	if c.Kind == domain.CallApp {
		r.App = &domain.SavedCall{Connection: c.Connection, Revision: c.Revision, Tool: c.Tool, SHA256: c.Digest}
	}
	return r
}

// PromptArguments reads the arguments of openbot_get_app_prompt and
// openbot_read_app_resource from a saved call.
func (s *Sending) PromptArguments() (name, uri string, arguments map[string]string) {
	var in struct {
		Name      string
		URI       string
		Arguments map[string]string
	}
	if err := json.Unmarshal(s.Call.Arguments, &in); err != nil {
		return "", "", nil // the schema was checked when the call was saved
	}
	return in.Name, in.URI, in.Arguments
}
