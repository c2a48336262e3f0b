package engine

import (
	"context"

	"openbot/domain"
)

// NewChat is what a Chat is made from. A nil Bot means the Member's Main Bot.
type NewChat struct {
	Bot   domain.BotID
	Title string
	Mode  string // "" or plan
	Plan  domain.PlanTerms
}

// CreateChat makes a Chat with a Bot that the Member works with.
func (e *Engine) CreateChat(ctx context.Context, p domain.Principal, in NewChat) (domain.Chat, error) {
	var chat domain.Chat
	if err := chatFits(in.Mode, in.Plan); err != nil {
		return chat, err
	}
	err := e.decide(ctx, string(p.Member.ID), func(d *draft) error {
		id := in.Bot
		if id == "" {
			id = p.Member.MainBot
		}
		bot, err := e.visibleBot(ctx, p.Organization, p.Member.ID, id)
		if err != nil {
			return err
		}
		if bot.ArchivedAt != nil {
			return domain.Errorf(domain.CodeConflict, "BotConflict", "The Bot is archived and takes no new Chat.")
		}
		chat = domain.Chat{ID: newID[domain.ChatID](domain.PrefixChat), Organization: p.Organization, Member: p.Member.ID,
			Bot: bot.ID, Kind: domain.ChatPlain, Mode: in.Mode, Plan: in.Plan, Title: in.Title, Status: domain.ChatIdle, CreatedAt: d.at}
		d.in(&chat)
		d.result = chat
		return nil
	})
	return chat, err
}

func chatFits(mode string, plan domain.PlanTerms) error {
	if mode != "" && mode != domain.ModePlan {
		return invalid("mode", "must be plan or empty")
	}
	if faults := plan.Faults(); len(faults) > 0 {
		return invalidFaults(faults)
	}
	return nil
}

// ChatFields is what a person sets of a Chat; nil leaves a field as it is.
type ChatFields struct {
	Title     *string
	Mode      *string
	TimeoutMs *int64
	OnExpire  *string
}

// ChangeChat sets fields of a Chat. New terms count for plans that are handed in from
// now on.
func (e *Engine) ChangeChat(ctx context.Context, p domain.Principal, id domain.ChatID, in ChatFields) (domain.Chat, error) {
	var chat domain.Chat
	err := e.decide(ctx, string(id), func(d *draft) error {
		var err error
		if chat, err = e.Chat(ctx, p, id); err != nil {
			return err
		}
		if chat.Kind == domain.ChatReview {
			return domain.Errorf(domain.CodeConflict, "ChatConflict", "A review Chat cannot be changed.")
		}
		set(&chat.Title, in.Title)
		set(&chat.Mode, in.Mode)
		set(&chat.Plan.TimeoutMs, in.TimeoutMs)
		set(&chat.Plan.OnExpire, in.OnExpire)
		if err := chatFits(chat.Mode, chat.Plan); err != nil {
			return err
		}
		d.in(&chat)
		return nil
	})
	return chat, err
}

// Chat reads a Chat of the caller.
func (e *Engine) Chat(ctx context.Context, p domain.Principal, id domain.ChatID) (domain.Chat, error) {
	chat, err := e.Store.Chat(ctx, id)
	if err != nil {
		return chat, asNotFound(err, "ChatNotFound", "There is no Chat with this ID.")
	}
	if chat.Member != p.Member.ID || chat.DeletedAt != nil {
		return domain.Chat{}, domain.Errorf(domain.CodeNotFound, "ChatNotFound", "There is no Chat with this ID.")
	}
	return chat, nil
}

// Posted is where a message went.
type Posted struct {
	Turn       domain.TurnID
	Chat       domain.ChatID
	Delegation domain.DelegationID
}

// PostMessage gives a person's message to a Chat. An idle Chat starts a Turn with
// it; a Turn under way reads it before its next step.
func (e *Engine) PostMessage(ctx context.Context, p domain.Principal, id domain.ChatID, text string) (Posted, error) {
	var posted Posted
	err := e.decide(ctx, string(id), func(d *draft) error {
		chat, err := e.Chat(ctx, p, id)
		if err != nil {
			return err
		}
		if chat.Kind == domain.ChatReview {
			return domain.Errorf(domain.CodeConflict, "ChatConflict", "A review Chat takes no messages.")
		}
		if chat.Channel != "" {
			return domain.Errorf(domain.CodeConflict, "ChatConflict", "This Chat takes messages through its Channel, each with its author.")
		}
		posted = Posted{Chat: chat.ID}
		authority := []domain.Authority{{Member: p.Member.ID, Token: p.Token.ID}}
		var round *newRound
		if chat.Kind == domain.ChatTask {
			if round, err = e.roundFor(ctx, &chat, text, authority); err != nil {
				return err
			}
			if round != nil {
				authority = round.work.Authority
			}
		}
		d.in(&chat)
		input := domain.Input{ID: newID[domain.InputID](domain.PrefixInput), Kind: domain.ItemMessage, From: string(p.Member.ID),
			Text: safeText(text), Authority: authority}
		if round != nil {
			if err := round.begin(d); err != nil {
				return err
			}
			posted.Delegation = round.work.ID
		}
		if chat.Turn == "" {
			d.startTurn([]domain.Input{input})
		} else {
			d.enqueue(input)
		}
		d.event(domain.EventMessage, string(chat.Turn), map[string]any{"turn": chat.Turn, "from": input.From})
		posted.Turn = chat.Turn
		d.result = posted
		return nil
	})
	return posted, err
}

// enqueue puts input into the inbox of the draft's Chat.
func (d *draft) enqueue(in domain.Input) {
	d.chat.LastInput++
	in.Chat, in.Sequence, in.CreatedAt = d.chat.ID, d.chat.LastInput, d.at
	d.commit.Inputs = append(d.commit.Inputs, in)
}

// take puts input into the history of the draft's Chat, and its taint with it.
func (d *draft) take(turn domain.TurnID, in domain.Input) {
	d.chat.TakeIn(in.Taint)
	d.item(domain.Item{Turn: turn, Kind: in.Kind, From: in.From, Text: in.Text, Topic: in.Topic})
}

// startTurn begins a Turn of the draft's Chat that takes this input.
func (d *draft) startTurn(inputs []domain.Input) {
	due := d.at.Add(domain.RunnableGrace)
	turn := domain.Turn{ID: newID[domain.TurnID](domain.PrefixTurn), Organization: d.chat.Organization, Chat: d.chat.ID,
		Bot: d.chat.Bot, Member: d.chat.Member, Status: domain.TurnQueued, DueAt: &due, CreatedAt: d.at, UpdatedAt: d.at}
	if d.chat.Channel != "" {
		turn.Member, turn.Author = inputs[0].Authority[0].Member, inputs[0].Author()
	}
	for _, in := range inputs {
		turn.Authority = domain.AddAuthority(turn.Authority, in.Authority...)
		d.take(turn.ID, in)
	}
	d.turn("", &turn)
}

// startNext begins a Turn with what waits in the inbox, when the Turn before has
// just ended.
func (d *draft) startNext(waiting []domain.Input) {
	if d.chat.Turn != "" || len(waiting) == 0 || d.chat.DeletedAt != nil {
		return
	}
	taken, _ := d.chat.ForOneTurn(waiting)
	for _, in := range taken {
		d.commit.Taken = append(d.commit.Taken, in.ID)
	}
	d.startTurn(taken)
}

// Interrupt stops the Turn under way. Its open Requests are cancelled and its
// waiting calls end as cancelled; a call that is out keeps its result. A Chat
// without a Turn stays as it is.
//
// With delegations the work that the Chat gave away is stopped as well, layer by layer.
func (e *Engine) Interrupt(ctx context.Context, p domain.Principal, id domain.ChatID, delegations bool) (domain.Chat, error) {
	var chat domain.Chat
	err := e.decide(ctx, string(id), func(d *draft) error {
		var err error
		if chat, err = e.Chat(ctx, p, id); err != nil {
			return err
		}
		d.result = chat
		if delegations {
			d.commit.StopWork = &domain.StopWork{Chat: chat.ID, Why: "A person stopped it.", Notice: domain.NoticeHistory}
		}
		if chat.Turn == "" {
			if delegations {
				d.in(&chat) // fences work that is being given at the same time
			}
			return nil
		}
		d.in(&chat)
		if err := e.stopTurn(ctx, d, chat.Turn); err != nil {
			return err
		}
		waiting, err := e.Store.Inbox(ctx, chat.ID)
		if err != nil {
			return err
		}
		d.startNext(waiting)
		if err := e.settleWork(ctx, d); err != nil {
			return err
		}
		d.result = chat
		return e.reviewOver(ctx, d, &chat)
	})
	return chat, err
}

// DeleteChat interrupts a Chat and takes it out of sight.
func (e *Engine) DeleteChat(ctx context.Context, p domain.Principal, id domain.ChatID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		chat, err := e.Chat(ctx, p, id)
		if err != nil {
			return err
		}
		d.in(&chat)
		if chat.Turn != "" {
			if err := e.stopTurn(ctx, d, chat.Turn); err != nil {
				return err
			}
			if err := e.reviewOver(ctx, d, &chat); err != nil {
				return err
			}
		}
		if err := e.stopOwnWork(ctx, d, &chat); err != nil {
			return err
		}
		d.commit.StopWork = &domain.StopWork{Chat: chat.ID, Why: "The Chat that gave it was deleted.", Notice: domain.NoticeNone}
		if err := e.archiveHelpers(ctx, d, chat.ID); err != nil {
			return err
		}
		at := d.at
		chat.DeletedAt = &at
		d.commit.CloseChats = append(d.commit.CloseChats, chat.ID)
		return nil
	})
}

// stopTurn ends a Turn as interrupted, with its waiting calls and their Requests.
// A Request about an unknown outcome stays open: the person still has to say.
func (e *Engine) stopTurn(ctx context.Context, d *draft, id domain.TurnID) error {
	facts, err := e.Store.TurnFacts(ctx, id)
	if err != nil {
		return err
	}
	if facts.Turn.Status.Ended() {
		return errMoved // the Chat was read before its Turn ended
	}
	before := facts.Turn.Status
	next, err := domain.DecideTurn(facts.Turn, domain.Stopped{At: d.at})
	if err != nil {
		return err
	}
	for i := range facts.Requests {
		if facts.Requests[i].Unknown != nil {
			continue
		}
		r, _, err := domain.DecideRequest(facts.Requests[i], domain.RequestCancelledEvent{At: d.at})
		if err != nil {
			return err
		}
		if r.Review != "" {
			if err := e.closeReview(ctx, d, r.Review); err != nil {
				return err
			}
		}
		d.request(&r)
	}
	for _, open := range facts.Open {
		if open.Status == domain.CallSending || open.Status == domain.CallUnknown {
			continue
		}
		c, err := domain.DecideCall(open, domain.CallStopped{At: d.at, Result: domain.TextStopped(open)})
		if err != nil {
			return err
		}
		d.call(&c)
	}
	d.turn(before, &next)
	return nil
}

// Chats lists the caller's Chats.
func (e *Engine) Chats(ctx context.Context, p domain.Principal, page domain.Page) ([]domain.Chat, error) {
	chats, err := e.Store.Chats(ctx, p.Member.ID, page)
	if err != nil {
		return nil, err
	}
	return e.ShownChats(ctx, chats...)
}

// Items gives a Chat's history after a sequence, with the calls that it speaks of.
func (e *Engine) Items(ctx context.Context, p domain.Principal, id domain.ChatID, after int64, limit int) ([]domain.Item, map[domain.CallID]domain.Call, error) {
	if _, err := e.Chat(ctx, p, id); err != nil {
		return nil, nil, err
	}
	items, err := e.Store.Items(ctx, id, after, limit)
	if err != nil {
		return nil, nil, err
	}
	calls, err := e.Store.ItemCalls(ctx, items)
	return items, calls, err
}

// TurnView is a Turn with its calls.
type TurnView struct {
	Turn  domain.Turn
	Calls []domain.Call
}

// Turn reads a Turn of the caller.
func (e *Engine) Turn(ctx context.Context, p domain.Principal, id domain.TurnID) (TurnView, error) {
	turn, err := e.Store.Turn(ctx, id)
	if err != nil {
		return TurnView{}, asNotFound(err, "TurnNotFound", "There is no Turn with this ID.")
	}
	chat, err := e.Chat(ctx, p, turn.Chat)
	// In a Channel a Turn is its author's, and its Chat another's.
	if err != nil && turn.Member != p.Member.ID {
		return TurnView{}, asNotFound(err, "TurnNotFound", "There is no Turn with this ID.")
	}
	views := []TurnView{{Turn: turn}}
	if err := e.showPaused(ctx, chat, views); err != nil {
		return TurnView{}, err
	}
	views[0].Calls, err = e.Store.TurnCalls(ctx, id)
	return views[0], err
}

// Turns lists the Turns of a Chat of the caller, newest first.
func (e *Engine) Turns(ctx context.Context, p domain.Principal, id domain.ChatID, page domain.Page) ([]TurnView, error) {
	chat, err := e.Chat(ctx, p, id)
	if err != nil {
		return nil, err
	}
	turns, err := e.Store.Turns(ctx, id, page)
	if err != nil || len(turns) == 0 {
		return nil, err
	}
	ids := make([]domain.TurnID, len(turns))
	views := make([]TurnView, len(turns))
	index := make(map[domain.TurnID]int, len(turns))
	for i, t := range turns {
		ids[i], views[i].Turn, index[t.ID] = t.ID, t, i
	}
	calls, err := e.Store.TurnCalls(ctx, ids...)
	for _, c := range calls {
		v := &views[index[c.Turn]]
		v.Calls = append(v.Calls, c)
	}
	if err == nil {
		err = e.showPaused(ctx, chat, views)
	}
	return views, err
}

// asNotFound gives an absent row the words of what was asked for.
func asNotFound(err error, tag, message string) error {
	if domain.IsCode(err, domain.CodeNotFound) {
		return domain.Errorf(domain.CodeNotFound, tag, "%s", message)
	}
	return err
}
