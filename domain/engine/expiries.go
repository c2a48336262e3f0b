package engine

import (
	"context"
	"time"

	"openbot/domain"
)

const (
	// expiryBatch is how many Requests end in one commit.
	expiryBatch = 50
	// expiryTime bounds one task, so that others get their turn; the sweep rings again.
	expiryTime = 5 * time.Second
)

// ElapseRequests ends the Requests of one share whose time is up, many in a commit. It
// stops when none is left, or after some seconds. What one commit cannot take is ended on
// its own: a Request that allows on expiry, has a review or belongs to work, and one that
// somebody else moves at the same time.
func (e *Engine) ElapseRequests(ctx context.Context, share int) error {
	var oldest domain.RequestID
	for start := time.Now(); time.Since(start) < expiryTime; {
		due, err := e.Store.DueRequests(ctx, e.now(), share, expiryBatch)
		if err != nil || len(due) == 0 || due[0].ID == oldest {
			return err // the oldest cannot be ended: the sweep tries again
		}
		oldest = due[0].ID
		ended, err := e.elapseTogether(ctx, due)
		if err != nil && !domain.IsCode(err, domain.CodeConflict) && !domain.IsCode(err, domain.CodeNotFound) {
			return err
		}
		for _, r := range due {
			if ended[r.ID] {
				continue
			}
			if err := e.ElapseRequest(ctx, r.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// elapseTogether ends those of the Requests that one commit can take and says which.
func (e *Engine) elapseTogether(ctx context.Context, due []domain.DueRequest) (map[domain.RequestID]bool, error) {
	calls := make([]domain.CallID, len(due))
	for i, r := range due {
		calls[i] = r.Call
	}
	var ended map[domain.RequestID]bool
	err := e.decide(ctx, string(due[0].ID), func(d *draft) error {
		ended = map[domain.RequestID]bool{}
		facts, err := e.Store.CallsFacts(ctx, calls)
		if err != nil {
			return err
		}
		d.calm = true
		chats := map[domain.ChatID]bool{}
		for i := range facts {
			f := &facts[i]
			if chats[f.Chat.ID] || !elapsesPlainly(f, due[i].ID) {
				continue
			}
			next, _, err := domain.DecideRequest(*f.Request, domain.Elapsed{At: d.at})
			if err != nil {
				continue // its time is not up, or somebody decided it
			}
			chats[f.Chat.ID] = true
			if err := e.callWork(ctx, d, f).end(&next); err != nil {
				return err
			}
			ended[next.ID] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

// elapsesPlainly reports whether the end of a Request moves nothing but its own call, Turn
// and Chat.
func elapsesPlainly(f *domain.CallFacts, id domain.RequestID) bool {
	r := f.Request
	return r != nil && r.ID == id && r.Status == domain.RequestPending && r.Unknown == nil && r.Review == "" && !r.AllowsOnExpiry() &&
		!f.Call.ForWork() && f.Call.Parent == "" && f.Chat.Kind == domain.ChatPlain && len(f.Work) == 0
}
