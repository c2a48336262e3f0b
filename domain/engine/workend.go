package engine

import (
	"context"
	"slices"
	"time"

	"openbot/domain"
)

// endWork ends the work of the draft's Chat when its Turn has ended and nothing of it is
// open. own is the row of the work in the draft, or nil; open is what was open when it
// was loaded, and what the draft closes is taken off.
func (d *draft) endWork(turn domain.Turn, path []domain.Delegation, own *domain.Delegation, open domain.OpenWork, inbox int) error {
	chat := d.chat
	if chat.Kind != domain.ChatTask || chat.Turn != "" || len(path) == 0 || inbox > 0 || !turn.Status.Ended() {
		return nil
	}
	g := path[0]
	if own != nil {
		g = *own
	}
	if !g.Open() || g.StartedAt == nil || g.Pause != nil || domain.HeldBy(path).Stopping != "" || d.left(open).Any() {
		return nil
	}
	ev := domain.Finished{At: d.at, Path: append([]domain.Delegation{g}, path[1:]...)}
	switch turn.Status {
	case domain.TurnCompleted:
		ev.Status, ev.Result = domain.DelegationCompleted, turn.Answer
	case domain.TurnFailed:
		ev.Status, ev.Result = domain.DelegationFailed, turn.Error
	default:
		ev.Status, ev.Result = domain.DelegationCancelled, domain.TextWorkStopped("")
	}
	next, err := domain.DecideDelegation(g, ev)
	if err != nil {
		return err
	}
	next.Taint = chat.Taint
	if own != nil {
		*own = next
		d.tellWork(own, nil)
		return nil
	}
	d.work(&next, nil)
	return nil
}

// left takes off what the draft closes in its Chat.
func (d *draft) left(open domain.OpenWork) domain.OpenWork {
	for _, row := range d.commit.Rows {
		switch r := row.(type) {
		case *domain.Delegation:
			if r.Parent.Chat == d.chat.ID && !r.Open() && r.NoticeDueAt == nil {
				open.Untold--
			}
		case *domain.Request:
			if r.Chat == d.chat.ID && r.Version > 0 && r.Status != domain.RequestPending {
				open.Requests--
			}
		case *domain.Call:
			if r.Chat == d.chat.ID && r.ForWork() && r.Version > 0 && !r.Open() {
				open.Requests--
			}
			if r.Chat == d.chat.ID && r.Version > 0 && !r.Open() && r.SentAt != nil && r.Status != domain.CallCancelled && r.Status != domain.CallDenied {
				open.Out--
			}
		}
	}
	open.Untold, open.Requests, open.Out = max(open.Untold, 0), max(open.Requests, 0), max(open.Out, 0)
	return open
}

// settleWork ends the work of the draft's Chat when nothing of it is open any more. It
// is called where open work disappears in the draft.
func (e *Engine) settleWork(ctx context.Context, d *draft) error {
	if d.chat.Kind != domain.ChatTask || d.chat.Turn != "" {
		return nil
	}
	f, err := e.Store.WorkFacts(ctx, d.chat.ID)
	if err != nil {
		return err
	}
	turn := f.Turn
	var own *domain.Delegation
	for _, row := range d.commit.Rows {
		if t, ok := row.(*domain.Turn); ok && t.ID == d.chat.LastTurn {
			turn = *t
		}
		if g, ok := row.(*domain.Delegation); ok && len(f.Work) > 0 && g.ID == f.Work[0].ID {
			own = g
		}
	}
	if turn.ID != d.chat.LastTurn {
		return errMoved
	}
	waiting := len(f.Inbox)
	for _, in := range f.Inbox {
		if slices.Contains(d.commit.Taken, in.ID) {
			waiting--
		}
	}
	for _, in := range d.commit.Inputs {
		if in.Chat == d.chat.ID {
			waiting++
		}
	}
	d.guard(f.Work)
	return d.endWork(turn, f.Work, own, f.OpenWork, waiting)
}

// notices is how many ends of work one commit tells a Chat.
const notices = 200

// maxNotice is the longest result that a notice carries, in bytes. The whole result
// stands with the work.
const maxNotice = 100_000

// NotifyWork tells the Chat that gave a piece of work of its end, and of the end of all
// other work that it was not told of yet: many ends at once are one commit.
func (e *Engine) NotifyWork(ctx context.Context, id domain.DelegationID) error {
	g, err := e.Store.Delegation(ctx, id)
	if err != nil || g.NoticeDueAt == nil {
		return gone(err)
	}
	for {
		told := 0
		err := e.decide(ctx, string(g.Parent.Chat), func(d *draft) error {
			told = 0
			chat, err := e.Store.Chat(ctx, g.Parent.Chat)
			if err != nil {
				return err
			}
			ended, err := e.Store.Untold(ctx, chat.ID, notices)
			if err != nil {
				return err
			}
			told = len(ended)
			if told == 0 {
				return nil
			}
			return e.tellChat(ctx, d, &chat, ended)
		})
		if err != nil || told < notices {
			return err
		}
	}
}

func (e *Engine) tellChat(ctx context.Context, d *draft, chat *domain.Chat, ended []domain.Delegation) error {
	late := chat.DeletedAt != nil || chat.ArchivedAt != nil
	if g := chat.Delegation(); g != "" && chat.Turn == "" {
		path, err := e.Store.Work(ctx, g)
		if err != nil {
			return err
		}
		late = late || len(path) == 0 || !path[0].Open() || domain.HeldBy(path).Stopping != ""
	}
	names := map[domain.BotID]string{}
	if err := e.settleAbove(ctx, d, chat, ended); err != nil {
		return err
	}
	d.in(chat)
	var inputs []domain.Input
	for i := range ended {
		g := ended[i]
		g.NoticeDueAt = nil
		d.put(&g)
		if g.Notice == domain.NoticeNone || chat.DeletedAt != nil {
			continue
		}
		if _, known := names[g.Bot]; !known {
			bot, err := e.Store.Bot(ctx, g.Bot)
			if err != nil {
				return err
			}
			names[g.Bot] = bot.Name
		}
		shown := g
		shown.Result = cut(g.Result, maxNotice)
		text := domain.TextWorkEnded(shown, names[g.Bot])
		d.event(domain.EventDelegation, string(g.ID), map[string]any{"delegation": g.ID, "status": g.Status, "executionId": g.Execution, "executionStatus": g.ExecutionStatus(false)})
		if late || g.Notice == domain.NoticeHistory {
			d.take(chat.LastTurn, domain.Input{Kind: domain.ItemNotice, From: domain.FromServer, Text: text, Taint: g.Taint})
			continue
		}
		inputs = append(inputs, domain.Input{ID: newID[domain.InputID](domain.PrefixInput), Kind: domain.ItemNotice, From: domain.FromServer,
			Text: text, Authority: g.Authority, Taint: g.Taint})
	}
	d.deliver(inputs)
	if len(inputs) > 0 {
		d.event(domain.EventNotice, string(chat.Turn), map[string]any{"turn": chat.Turn, "notices": len(inputs)})
		return nil
	}
	if late {
		return nil
	}
	return e.settleWork(ctx, d)
}

// settleAbove looks at work that has lost a round below it which its Chat did not give:
// a person started that further down, below ended work.
func (e *Engine) settleAbove(ctx context.Context, d *draft, chat *domain.Chat, ended []domain.Delegation) error {
	looked := map[domain.DelegationID]bool{"": true, chat.Delegation(): true}
	for _, g := range ended {
		if looked[g.Above] {
			continue
		}
		looked[g.Above] = true
		above, err := e.Store.Delegation(ctx, g.Above)
		if err != nil {
			return err
		}
		if !above.Open() || above.Chat == chat.ID {
			continue
		}
		its, err := e.Store.Chat(ctx, above.Chat)
		if err != nil {
			return err
		}
		if err := d.inside(&its, func() error { return e.settleWork(ctx, d) }); err != nil {
			return err
		}
	}
	return nil
}

// closeAgain is how soon work that could not be ended yet is looked at again.
const closeAgain = 10 * time.Second

// CloseWork stops all work below work that was stopped, from the leaves up, and ends it.
// What has a call out, or an outcome that nobody knows, ends when that is settled.
func (e *Engine) CloseWork(ctx context.Context, id domain.DelegationID) error {
	g, err := e.Store.Delegation(ctx, id)
	if err != nil || g.ClosingDueAt == nil || !g.Stopping() {
		return gone(err)
	}
	for {
		ended := 0
		for after := domain.DelegationID(""); ; {
			ids, err := e.Store.OpenBelow(ctx, id, after, 200)
			if err != nil {
				return err
			}
			for _, below := range ids {
				ok, err := e.releaseWork(ctx, below, g.StopWhy)
				if err != nil {
					return err
				}
				if ok {
					ended++
				}
				after = below
			}
			if len(ids) < 200 {
				break
			}
		}
		if ended == 0 {
			break
		}
	}
	ok, err := e.releaseWork(ctx, id, g.StopWhy)
	if err != nil || ok {
		return err
	}
	return e.decide(ctx, string(g.Chat), func(d *draft) error {
		now, err := e.Store.Delegation(ctx, id)
		if err != nil || !now.Stopping() {
			return gone(err)
		}
		due := d.at.Add(closeAgain)
		now.ClosingDueAt = &due
		d.put(&now)
		return nil
	})
}

// releaseWork stops what a piece of stopped work still does, and ends it when nothing of
// it is out. It reports whether the work has ended.
func (e *Engine) releaseWork(ctx context.Context, id domain.DelegationID, why string) (ended bool, err error) {
	g, err := e.Store.Delegation(ctx, id)
	if err != nil {
		return false, err
	}
	lane := g.Chat
	if g.Status == domain.DelegationAuthorizing {
		lane = g.Parent.Chat
	}
	err = e.decide(ctx, string(lane), func(d *draft) error {
		ended = false
		f, err := e.Store.WorkFacts(ctx, g.Chat)
		if err != nil {
			return err
		}
		path := f.Work
		if len(path) == 0 || path[0].ID != id {
			if path, err = e.Store.Work(ctx, id); err != nil || len(path) == 0 {
				return err
			}
			f.OpenWork, f.Inbox = domain.OpenWork{}, nil
		}
		now := path[0]
		if !now.Open() {
			ended = true
			return nil
		}
		if domain.HeldBy(path).Stopping == "" {
			return nil
		}
		if now.Status == domain.DelegationAuthorizing {
			if err := e.closeWorkCall(ctx, d, now.Call); err != nil {
				return err
			}
		}
		d.in(&f.Chat)
		if f.Chat.Turn != "" {
			if err := e.stopTurn(ctx, d, f.Chat.Turn); err != nil {
				return err
			}
		}
		if err := e.closeWorkCalls(ctx, d, f.Chat.ID); err != nil {
			return err
		}
		d.commit.CloseReminders = append(d.commit.CloseReminders, f.Chat.ID)
		for _, in := range f.Inbox {
			d.commit.Taken = append(d.commit.Taken, in.ID)
			d.take(f.Chat.LastTurn, in)
		}
		open := d.left(f.OpenWork)
		if open.Given > 0 || open.Out > 0 {
			return nil
		}
		ended = true
		if now.StopWhy != "" {
			why = now.StopWhy
		}
		next, err := domain.DecideDelegation(now, domain.Finished{At: d.at, Status: domain.DelegationCancelled, Path: path,
			Result: domain.TextWorkStopped(why)})
		if err != nil {
			return err
		}
		next.Taint = f.Chat.Taint
		if now.StoppingAt == nil {
			next.Notice, next.NoticeDueAt = domain.NoticeNone, nil // its giver was stopped as well
		}
		d.work(&next, nil)
		return nil
	})
	return ended, err
}

// closeWorkCalls closes what a Chat waits for on behalf of work, with the Requests.
func (e *Engine) closeWorkCalls(ctx context.Context, d *draft, chat domain.ChatID) error {
	if d.chat.LastTurn == "" {
		return nil
	}
	f, err := e.Store.TurnFacts(ctx, d.chat.LastTurn)
	if err != nil {
		return gone(err)
	}
	for i := range f.WorkRequests {
		if err := e.cancelRequest(ctx, d, f.WorkRequests[i]); err != nil {
			return err
		}
	}
	for _, c := range f.WorkCalls {
		next, err := domain.DecideCall(c, domain.CallStopped{At: d.at, Result: domain.TextCancelled()})
		if err != nil {
			return err
		}
		d.call(&next)
	}
	return nil
}

// closeWorkCall closes the call that the start of work waits for, with its Request. It
// belongs to the giving Chat.
func (e *Engine) closeWorkCall(ctx context.Context, d *draft, id domain.CallID) error {
	if id == "" {
		return nil
	}
	f, err := e.Store.CallFacts(ctx, id)
	if err != nil || !f.Call.Open() {
		return gone(err)
	}
	return d.inside(&f.Chat, func() error {
		if r := f.Request; r != nil && r.Status == domain.RequestPending {
			if err := e.cancelRequest(ctx, d, *r); err != nil {
				return err
			}
		}
		next, err := domain.DecideCall(f.Call, domain.CallStopped{At: d.at, Result: domain.TextCancelled()})
		if err != nil {
			return err
		}
		d.call(&next)
		return nil
	})
}

// cancelRequest closes a Request of the draft's Chat with its review.
func (e *Engine) cancelRequest(ctx context.Context, d *draft, r domain.Request) error {
	next, _, err := domain.DecideRequest(r, domain.RequestCancelledEvent{At: d.at})
	if err != nil {
		return err
	}
	if next.Review != "" {
		if err := e.closeReview(ctx, d, next.Review); err != nil {
			return err
		}
	}
	d.request(&next)
	return nil
}
