package engine

import (
	"context"
	"errors"
	"slices"

	"openbot/domain"
)

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
	followed := r.FollowedUp(w.f.Organization.Settings)
	return &followed
}
