package engine

import (
	"context"
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
