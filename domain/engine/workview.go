package engine

import (
	"context"

	"openbot/domain"
)

const noWork = "There is no work with this ID in your Chats."

// Delegation reads a piece of work of the caller.
func (e *Engine) Delegation(ctx context.Context, p domain.Principal, id domain.DelegationID) (domain.DelegationView, error) {
	g, err := e.Store.Delegation(ctx, id)
	return e.workView(ctx, p, g, err, "DelegationNotFound", noWork)
}

// Execution reads the run record of a piece of work of the caller.
func (e *Engine) Execution(ctx context.Context, p domain.Principal, id domain.ExecutionID) (domain.DelegationView, error) {
	g, err := e.Store.DelegationOf(ctx, id)
	return e.workView(ctx, p, g, err, "ExecutionNotFound", "There is no execution with this ID in your Chats.")
}

func (e *Engine) workView(ctx context.Context, p domain.Principal, g domain.Delegation, err error, tag, message string) (domain.DelegationView, error) {
	if err == nil && (g.Organization != p.Organization || g.Member != p.Member.ID) {
		err = domain.Errorf(domain.CodeNotFound, tag, "%s", message)
	}
	if err != nil {
		return domain.DelegationView{}, asNotFound(err, tag, message)
	}
	views, err := e.Store.WorkViews(ctx, []domain.Delegation{g})
	if err != nil {
		return domain.DelegationView{}, err
	}
	return views[0], nil
}

// Delegations lists the work that a Chat of the caller gave away, newest first.
func (e *Engine) Delegations(ctx context.Context, p domain.Principal, chat domain.ChatID, page domain.Page) ([]domain.DelegationView, error) {
	if _, err := e.Chat(ctx, p, chat); err != nil {
		return nil, err
	}
	list, err := e.Store.Delegations(ctx, chat, page)
	if err != nil {
		return nil, err
	}
	views, err := e.Store.WorkViews(ctx, list)
	return views, err
}

// CancelReceipt says that a cancel was accepted.
type CancelReceipt struct {
	Execution  domain.ExecutionID
	CommandKey string
	AtMs       int64
}

// CancelDelegation stops a piece of work with all work below it. It takes effect at once;
// the work ends when its calls in flight and its work below are released.
func (e *Engine) CancelDelegation(ctx context.Context, p domain.Principal, id domain.DelegationID, commandKey string) (CancelReceipt, error) {
	seen, err := e.Delegation(ctx, p, id)
	if err != nil {
		return CancelReceipt{}, err
	}
	var receipt CancelReceipt
	err = e.decide(ctx, string(seen.Delegation.Chat), func(d *draft) error {
		g, err := e.Store.Delegation(ctx, id)
		if err != nil {
			return asNotFound(err, "DelegationNotFound", noWork)
		}
		if !g.Open() {
			return domain.Errorf(domain.CodeConflict, "DelegationConflict", "The work is %s already.", g.Status)
		}
		receipt = CancelReceipt{Execution: g.Execution, CommandKey: commandKey, AtMs: d.at.UnixMilli()}
		d.result = receipt
		if g.Stopping() {
			return nil
		}
		next, err := domain.DecideDelegation(g, domain.WorkStopping{At: d.at, Why: "A person stopped it.", Notice: domain.NoticeInput})
		if err != nil {
			return err
		}
		chat, err := e.Store.Chat(ctx, g.Chat)
		if err != nil {
			return err
		}
		d.in(&chat)
		d.work(&next, nil)
		return nil
	})
	return receipt, err
}

// ObserveExecution gives the events of one round of work after a sequence, first the
// saved ones, then those that come, until the round's last, until ctx ends or send fails.
func (e *Engine) ObserveExecution(ctx context.Context, p domain.Principal, id domain.ExecutionID, after int64, send func([]domain.Event) error, quiet func() error) error {
	v, err := e.Execution(ctx, p, id)
	if err != nil {
		return err
	}
	g := v.Delegation
	chat, err := e.Store.Chat(ctx, g.Chat)
	if err != nil {
		return err
	}
	newest := chat.LastEvent
	if g.LastEvent > 0 {
		newest = g.LastEvent
	}
	if after > newest && after > g.FirstEvent {
		return invalidf("afterSequence", "is in the future: the newest event is %d", newest)
	}
	after = max(after, g.FirstEvent)
	last := g.LastEvent
	ctx, over := context.WithCancel(ctx)
	defer over()
	read := func(ctx context.Context, after int64) ([]domain.Event, error) {
		if last > 0 && after >= last {
			over()
			return nil, nil
		}
		events, err := e.Store.ChatEvents(ctx, g.Chat, after, observeBatch)
		if err != nil {
			return nil, err
		}
		if last == 0 && len(events) > 0 {
			// Read after the events: an end that is among them is seen.
			now, err := e.Store.Delegation(ctx, g.ID)
			if err != nil {
				return nil, err
			}
			last = now.LastEvent
		}
		for i, ev := range events {
			if last > 0 && ev.Sequence >= last {
				over() // what is given now is still sent
				return events[:i+1], nil
			}
		}
		return events, nil
	}
	sendTo := func(events []domain.Event) error {
		if err := once(send)(events); err != nil {
			return err
		}
		if last > 0 && events[len(events)-1].Sequence >= last {
			over()
		}
		return nil
	}
	return e.observe(ctx, domain.ChatStream(g.Chat), after, read, func(ev domain.Event) int64 { return ev.Sequence }, sendTo, quiet)
}

// ShownChats gives Chats as they are shown: the Chat of paused work is paused, whatever
// its Turn does.
func (e *Engine) ShownChats(ctx context.Context, chats ...domain.Chat) ([]domain.Chat, error) {
	paused, err := e.paused(ctx, chats)
	for i := range chats {
		if paused[chats[i].Delegation()] {
			chats[i].Status = domain.ChatPaused
		}
	}
	return chats, err
}

// paused says which of the task Chats' work is paused, itself or by work above it.
func (e *Engine) paused(ctx context.Context, chats []domain.Chat) (map[domain.DelegationID]bool, error) {
	var ids []domain.DelegationID
	for _, c := range chats {
		if c.Delegation() != "" {
			ids = append(ids, c.Delegation())
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	paths, err := e.Store.Works(ctx, ids)
	paused := make(map[domain.DelegationID]bool, len(ids))
	for i, path := range paths {
		paused[ids[i]] = len(path) > 0 && path[0].Open() && domain.HeldBy(path).Paused != ""
	}
	return paused, err
}

// showPaused shows a Turn under way of paused work as waiting.
func (e *Engine) showPaused(ctx context.Context, chat domain.Chat, views []TurnView) error {
	paused, err := e.paused(ctx, []domain.Chat{chat})
	for i := range views {
		if t := &views[i].Turn; paused[chat.Delegation()] && !t.Status.Ended() {
			t.Status = domain.TurnWaiting
		}
	}
	return err
}
