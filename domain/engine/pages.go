package engine

import (
	"context"
	"errors"

	"openbot/domain"
)

// What the pages of the inbox read beside what the API gives: the same rows, as far
// as a list shows them.

// RequestHeads lists as Requests does, without what only one Request is shown with.
func (e *Engine) RequestHeads(ctx context.Context, p domain.Principal, filter domain.RequestFilter, page domain.Page) ([]domain.Request, error) {
	return e.Store.RequestHeads(ctx, p.Organization, answeredBy(p, filter), page)
}

// CountRequests counts those that Requests lists, up to atMost.
func (e *Engine) CountRequests(ctx context.Context, p domain.Principal, filter domain.RequestFilter, atMost int) (int, error) {
	return e.Store.CountRequests(ctx, p.Organization, answeredBy(p, filter), atMost)
}

// AllowedLike gives allowed Requests of the same Bot and capability before one that
// the caller may read, newest first, as far as one looks back.
func (e *Engine) AllowedLike(ctx context.Context, p domain.Principal, r domain.Request, limit int) ([]domain.Request, error) {
	if r.Member != p.Member.ID {
		return nil, nil // the work of another Member is not the caller's to read
	}
	return e.Store.AllowedLike(ctx, r, limit)
}

// Names gives the names of Bots and Connections that rows of the caller speak of.
func (e *Engine) Names(ctx context.Context, p domain.Principal, bots []domain.BotID, connections []domain.ConnectionID) (domain.Names, error) {
	return e.Store.Names(ctx, p.Organization, bots, connections)
}

// Position is the newest position that ObserveMember would give: whoever reads lists
// after it and observes from it misses nothing.
func (e *Engine) Position(ctx context.Context, p domain.Principal) (int64, error) {
	return e.Store.LastPosition(ctx, p.Member.ID)
}

// UseOnce reports whether this is the first use of a key of the caller's Member. The
// use is kept for a day.
func (e *Engine) UseOnce(ctx context.Context, p domain.Principal, key string) (bool, error) {
	k := &Keeping{Member: p.Member.ID, Key: key, Fingerprint: "once", Status: 204,
		Render: func(any) ([]byte, error) { return []byte("{}"), nil }}
	err := e.Kept(ctx, k)
	if err == nil {
		err = e.decide(WithKeeping(ctx, k), string(p.Member.ID), func(d *draft) error {
			d.result = key
			return nil
		})
	}
	var kept *KeptError
	if errors.As(err, &kept) {
		return false, nil
	}
	return err == nil, err
}

// Unread gives what came to a Chat of the caller that its Turn has not read yet, in order.
func (e *Engine) Unread(ctx context.Context, p domain.Principal, id domain.ChatID) ([]domain.Input, error) {
	if _, err := e.Chat(ctx, p, id); err != nil {
		return nil, err
	}
	return e.Store.Inbox(ctx, id)
}
