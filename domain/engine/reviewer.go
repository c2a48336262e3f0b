package engine

import (
	"context"
	"time"

	"openbot/domain"
)

// Reading is one Request that a worker may let the automatic reviewer read.
type Reading struct {
	Request domain.ModelRequest
	Limit   time.Duration
	id      domain.RequestID
	chat    domain.ChatID
	until   time.Time
}

// ID and Chat give the IDs of the Request and of its Chat, for logs.
func (r *Reading) ID() domain.RequestID { return r.id }

// Chat gives the ID of the Chat of the Request.
func (r *Reading) Chat() domain.ChatID { return r.chat }

// PrepareReading loads a new Request for the automatic reviewer and notes that it is
// being asked. It gives nil when no verdict is wanted any more; a Request about which it
// was asked often enough, or that it cannot be shown, gets an unclear one.
func (e *Engine) PrepareReading(ctx context.Context, id domain.RequestID) (*Reading, error) {
	var reading *Reading
	err := e.decideVerdict(ctx, id, func(d *draft, r domain.Request) error {
		reading = nil
		if r.VerdictTries > 0 && domain.Before(d.at, *r.VerdictDueAt) {
			return nil // another worker asks
		}
		org, err := e.Store.Organization(ctx, r.Organization)
		if err != nil {
			return err
		}
		read := r.ReviewerCase()
		switch {
		case !org.Settings.Reviewer.Enabled:
			return e.leaveVerdict(ctx, d, r, nil)
		case r.VerdictTries >= domain.MaxReadings:
			return e.leaveVerdict(ctx, d, r, verdict(domain.Unclear("The reviewer gave no answer.")))
		case !read.Fits():
			return e.leaveVerdict(ctx, d, r, verdict(domain.Unclear("The Request cannot be shown to the reviewer as a whole.")))
		}
		until := d.at.Add(e.JudgeLimit + domain.LeaseTime)
		next, _, err := domain.DecideRequest(r, domain.ReviewerAsked{At: d.at, Until: until})
		if err != nil {
			return err
		}
		d.put(&next) // alone: a reading moves nothing in the Chat
		reading = &Reading{Limit: e.JudgeLimit, id: r.ID, chat: r.Chat, until: until, Request: domain.ModelRequest{Model: e.ReviewerModel,
			Purpose: domain.PurposeReviewer, System: domain.ReviewerSystem,
			Messages: []domain.ModelMessage{{Role: domain.RoleUser, Text: domain.TextReviewer(read)}}, Script: domain.Script{Reviewer: &read}}}
		return nil
	})
	return reading, err
}

// CommitReading saves what the reviewer said. A verdict about a Request that was decided
// meanwhile, or that another worker was asked about since, is dropped.
func (e *Engine) CommitReading(ctx context.Context, reading *Reading, v domain.ReviewVerdict) error {
	return e.decideVerdict(ctx, reading.id, func(d *draft, r domain.Request) error {
		if !r.VerdictDueAt.Equal(reading.until) {
			return nil
		}
		return e.leaveVerdict(ctx, d, r, &v)
	})
}

// decideVerdict carries out one decision about a Request that waits for a verdict.
func (e *Engine) decideVerdict(ctx context.Context, id domain.RequestID, plan func(d *draft, r domain.Request) error) error {
	seen, err := e.Store.Request(ctx, id)
	if err != nil || seen.VerdictDueAt == nil {
		return gone(err)
	}
	return e.decide(ctx, string(seen.Chat), func(d *draft) error {
		r, err := e.Store.Request(ctx, id)
		if err != nil || r.Status != domain.RequestPending || r.VerdictDueAt == nil {
			return gone(err)
		}
		return plan(d, r)
	})
}

// leaveVerdict keeps a verdict and tells readers. The Request stays as it is.
func (e *Engine) leaveVerdict(ctx context.Context, d *draft, r domain.Request, v *domain.ReviewVerdict) error {
	next, _, err := domain.DecideRequest(r, domain.VerdictLeft{At: d.at, Verdict: v})
	if err != nil {
		return err
	}
	d.put(&next)
	if v == nil {
		return nil
	}
	chat, err := e.Store.Chat(ctx, r.Chat)
	if err != nil {
		return err
	}
	d.in(&chat)
	d.event(domain.EventRequestVerdict, string(r.ID), map[string]any{"request": r.ID, "turn": r.Turn, "reviewVerdict": v})
	return nil
}

func verdict(v domain.ReviewVerdict) *domain.ReviewVerdict { return &v }
