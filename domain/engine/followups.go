package engine

import (
	"context"

	"openbot/domain"
)

// FollowUpRequest tells of an open Request again when its time for that has come: the
// person is reminded, and the second Member may answer from now on. A Request that was
// answered, or whose time has not come, stays as it is.
func (e *Engine) FollowUpRequest(ctx context.Context, id domain.RequestID) error {
	seen, err := e.Store.Request(ctx, id)
	if err != nil || len(seen.FollowUps()) == 0 {
		return gone(err)
	}
	return e.decide(ctx, string(seen.Chat), func(d *draft) error {
		r, err := e.Store.Request(ctx, id)
		if err != nil {
			return gone(err)
		}
		before := r
		if next, _, err := domain.DecideRequest(r, domain.RequestReminded{At: d.at}); err == nil {
			r, d.reminded = next, true
		}
		if r.EscalateAt != nil && !domain.Before(d.at, *r.EscalateAt) {
			able, err := e.canStandIn(ctx, r)
			if err != nil {
				return err
			}
			if next, _, err := domain.DecideRequest(r, domain.RequestEscalated{At: d.at, Able: able}); err == nil {
				r = next
			}
		}
		if r.RemindAt == before.RemindAt && r.EscalateAt == before.EscalateAt {
			return nil
		}
		d.was(&before)
		if r.Second == before.Second {
			d.put(&r) // alone: a reminder moves nothing in the Chat
			return nil
		}
		chat, err := e.Store.Chat(ctx, r.Chat)
		if err != nil {
			return err
		}
		d.in(&chat)
		d.request(&r)
		// It is the second Member's inbox that it is new in.
		d.commit.Events[len(d.commit.Events)-1].Member = r.Second
		return nil
	})
}

// canStandIn reports whether the second Member of a Request can answer it: it is there,
// not disabled, and may answer at all.
func (e *Engine) canStandIn(ctx context.Context, r domain.Request) (bool, error) {
	m, err := e.Store.Member(ctx, r.Escalation.Member)
	if err != nil {
		return false, gone(err)
	}
	return m.Organization == r.Organization && m.DisabledAt == nil && m.Permissions.HasRole(domain.RoleWrite), nil
}
