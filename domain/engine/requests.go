package engine

import (
	"context"

	"openbot/domain"
)

// Answer is a person's answer to a Request.
type Answer struct {
	Expected int64
	Decision string
	Scope    string // "" means once
	Reason   *string
	Rule     *string
}

// AnswerRequest decides a Request. The answer, its Grant, its Rule and the waiting
// call change in one transaction, and the work goes on at once. The same answer
// again gives the decided Request.
func (e *Engine) AnswerRequest(ctx context.Context, p domain.Principal, id domain.RequestID, in Answer) (domain.Request, error) {
	if in.Scope == "" {
		in.Scope = domain.ScopeOnce
	}
	if in.Scope == "session" {
		in.Scope = domain.ScopeChat
	}
	if in.Reason != nil && len(*in.Reason) > domain.MaxReason {
		return domain.Request{}, invalidf("reason", "must have at most %d bytes", domain.MaxReason)
	}
	if in.Rule != nil && (len(*in.Rule) == 0 || len(*in.Rule) > domain.MaxRuleText) {
		return domain.Request{}, invalidf("rule", "must have 1 to %d bytes", domain.MaxRuleText)
	}
	seen, err := e.Request(ctx, p, id)
	if err != nil {
		return seen, err
	}
	var request domain.Request
	err = e.decide(ctx, string(seen.Chat), func(d *draft) error {
		f, err := e.requestFacts(ctx, seen.Call)
		if err != nil {
			return err
		}
		r, err := e.currentRequest(ctx, &f, id)
		if err != nil {
			return err
		}
		answered := domain.Answered{At: d.at, Expected: in.Expected, Member: p.Member.ID, Decision: in.Decision, Scope: in.Scope,
			Reason: in.Reason, Rule: in.Rule, GrantID: newID[domain.GrantID](domain.PrefixGrant), RuleID: newID[domain.RuleID](domain.PrefixRule),
			Endorsed: grantIDs(len(r.Endorsements)), TagLine: callAttempt(d.at, &f).TagLine}
		next, effects, err := domain.DecideRequest(r, answered)
		if err != nil {
			return err
		}
		request = next
		d.result = next
		if next.Revision == r.Revision {
			return nil // the same answer again
		}
		if next.Status == domain.RequestAllowed && (domain.HeldBy(f.Work).Stopping != "" || r.Unknown != nil && f.Turn.Status.Ended()) {
			return domain.Errorf(domain.CodeConflict, "RequestConflict", "The work was stopped; its calls are not sent any more. Deny it to close the question.")
		}
		if r.Unknown != nil {
			d.guard(f.Work)
		}
		e.keepEffects(d, effects)
		w := e.callWork(ctx, d, &f)
		return w.end(&next)
	})
	return request, err
}

// end writes a decided Request, closes its review and moves the call that waited for
// it.
func (w *callWork) end(r *domain.Request) error {
	w.d.in(&w.f.Chat)
	if r.Review != "" && !w.reviewed {
		if err := w.e.closeReview(w.ctx, w.d, r.Review); err != nil {
			return err
		}
	}
	w.d.request(r)
	w.answer = r.Decision
	if w.f.Call.Request != r.ID || !w.f.Call.Open() {
		return nil
	}
	decided := domain.DecidedBy{Step: domain.StepDecider, Request: r.ID, AtMs: w.d.at.UnixMilli(), By: domain.Actor{Tag: domain.TagPolicy}}
	reason := "the work's token was revoked or its member disabled"
	if r.Decision != nil {
		decided.By, decided.Grant, reason = r.Decision.By, r.Decision.By.Grant, ""
		if r.Decision.Reason != nil {
			reason = *r.Decision.Reason
		}
	} else {
		decided.Step = domain.StepPolicy
	}
	if by := w.strength; by != nil {
		decided.Grant, decided.Rule, decided.RuleVersion, decided.Quote = by.Grant, by.Rule, by.RuleVersion, by.Quote
	}
	result := domain.TextDenied(decided, reason)
	if r.Unknown != nil {
		result = domain.TextUnknown()
	}
	return w.move(domain.CallAnswered{At: w.d.at, Allow: r.Status == domain.RequestAllowed, Decided: decided, Result: result})
}

func (e *Engine) requestFacts(ctx context.Context, call domain.CallID) (domain.CallFacts, error) {
	f, err := e.Store.CallFacts(ctx, call)
	return f, asNotFound(err, "RequestNotFound", "There is no Request with this ID in your work.")
}

// currentRequest gives the Request as it stands with the facts of its call.
func (e *Engine) currentRequest(ctx context.Context, f *domain.CallFacts, id domain.RequestID) (domain.Request, error) {
	if f.Request != nil && f.Request.ID == id {
		return *f.Request, nil
	}
	return e.Store.Request(ctx, id)
}

// Request reads a Request of the caller's work, or one that waits for the caller.
func (e *Engine) Request(ctx context.Context, p domain.Principal, id domain.RequestID) (domain.Request, error) {
	const message = "There is no Request with this ID in your work."
	r, err := e.Store.Request(ctx, id)
	if err != nil {
		return r, asNotFound(err, "RequestNotFound", message)
	}
	if r.Organization != p.Organization || r.Member != p.Member.ID && r.Approver != domain.Person(p.Member.ID) && r.Second != p.Member.ID {
		return domain.Request{}, domain.Errorf(domain.CodeNotFound, "RequestNotFound", message)
	}
	return r, nil
}

// Requests lists those that wait for the caller, or that it answered, newest
// first.
func (e *Engine) Requests(ctx context.Context, p domain.Principal, filter domain.RequestFilter, page domain.Page) ([]domain.Request, error) {
	return e.Store.Requests(ctx, p.Organization, answeredBy(p, filter), page)
}

// answeredBy narrows a filter to what waits for the caller, or what it answered.
func answeredBy(p domain.Principal, filter domain.RequestFilter) domain.RequestFilter {
	filter.Approver = p.Member.ID
	filter.Action = domain.CanonicalAction(filter.Action)
	return filter
}

// moveRequest decides an event of a Request that no person sent, and lets its
// call follow. A Request that is closed by now, or whose time is not up, stays as
// it is.
func (e *Engine) moveRequest(ctx context.Context, id domain.RequestID, event func(d *draft, f *domain.CallFacts, r domain.Request) domain.RequestEvent) error {
	seen, err := e.Store.Request(ctx, id)
	if err != nil {
		return gone(err)
	}
	if seen.Status != domain.RequestPending {
		return nil
	}
	return e.decide(ctx, string(seen.Chat), func(d *draft) error {
		f, err := e.Store.CallFacts(ctx, seen.Call)
		if err != nil {
			return gone(err)
		}
		r, err := e.currentRequest(ctx, &f, id)
		if err != nil || r.Status != domain.RequestPending {
			return gone(err)
		}
		ev := event(d, &f, r)
		if ev == nil {
			return nil
		}
		next, _, err := domain.DecideRequest(r, ev)
		if err != nil {
			if domain.IsCode(err, domain.CodePrecondition) || domain.IsCode(err, domain.CodeConflict) {
				return nil
			}
			return err
		}
		w := e.callWork(ctx, d, &f)
		return w.end(&next)
	})
}

// ElapseRequest ends a Request whose time is up. For a plan that runs when nobody
// answers, time without a server is given back first.
func (e *Engine) ElapseRequest(ctx context.Context, id domain.RequestID) error {
	seen, err := e.Store.Request(ctx, id)
	if err != nil {
		return gone(err)
	}
	if seen.AllowsOnExpiry() {
		if err := e.Beat(ctx); err != nil {
			return err
		}
	}
	return e.moveRequest(ctx, id, func(d *draft, _ *domain.CallFacts, _ domain.Request) domain.RequestEvent {
		return domain.Elapsed{At: d.at}
	})
}

// SettleGrant answers other pending Requests by a new Grant: each one whose full
// check, made again, is now decided by it.
func (e *Engine) SettleGrant(ctx context.Context, id domain.GrantID) error {
	grant, err := e.Store.Grant(ctx, id)
	if err != nil {
		return gone(err)
	}
	if grant.SettleDueAt == nil {
		return nil
	}
	for after := domain.RequestID(""); ; {
		ids, err := e.Store.PendingLike(ctx, grant, after, 100)
		if err != nil {
			return err
		}
		for _, request := range ids {
			if err := e.settleOne(ctx, request, grant); err != nil {
				return err
			}
			after = request
		}
		if len(ids) < 100 {
			break
		}
	}
	// What is rung before the due time leaves it open, so that the sweep looks once
	// more: a check that was loaded just before the Grant was kept may make its Request
	// just after the first look.
	return e.decide(ctx, string(id), func(d *draft) error {
		grant, err := e.Store.Grant(ctx, id)
		if err != nil || grant.SettleDueAt == nil || domain.Before(d.at, *grant.SettleDueAt) {
			return gone(err)
		}
		grant.SettleDueAt = nil
		d.put(&grant)
		return nil
	})
}

func (e *Engine) settleOne(ctx context.Context, id domain.RequestID, grant domain.Grant) error {
	return e.moveRequest(ctx, id, func(d *draft, f *domain.CallFacts, r domain.Request) domain.RequestEvent {
		if r.Unknown != nil {
			return nil
		}
		// It waits, so that a Grant alone can decide it now.
		verdict := domain.Check(callAttempt(d.at, f).Asked())
		if verdict.Decided.Grant != grant.ID {
			return nil
		}
		return domain.Settled{At: d.at, Grant: grant}
	})
}

// CloseRights closes the pending Requests of a Member's work that stands on a
// revoked token or on the Member itself, now disabled. subject is the ID of either.
func (e *Engine) CloseRights(ctx context.Context, subject string) error {
	member, token := domain.MemberID(subject), domain.TokenID("")
	if domain.ValidID(subject, domain.PrefixToken) {
		t, err := e.Store.Token(ctx, domain.TokenID(subject))
		if err != nil {
			return gone(err)
		}
		member, token = t.Member, t.ID
	}
	for after := domain.RequestID(""); ; {
		ids, err := e.Store.PendingOfMember(ctx, member, after, 100)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := e.closeOne(ctx, id, token); err != nil {
				return err
			}
			after = id
		}
		if len(ids) < 100 {
			break
		}
	}
	if err := e.closeVia(ctx, member, token); err != nil {
		return err
	}
	return e.doneClosing(ctx, subject, token)
}

// closeVia closes Requests of work that came in by a token in the name of others.
func (e *Engine) closeVia(ctx context.Context, member domain.MemberID, token domain.TokenID) error {
	m, err := e.Store.Member(ctx, member)
	if err != nil {
		return gone(err)
	}
	for after := domain.RequestID(""); ; {
		ids, err := e.Store.PendingVia(ctx, m.Organization, member, after, 100)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := e.closeOne(ctx, id, token); err != nil {
				return err
			}
			after = id
		}
		if len(ids) < 100 {
			return nil
		}
	}
}

func (e *Engine) closeOne(ctx context.Context, id domain.RequestID, token domain.TokenID) error {
	return e.moveRequest(ctx, id, func(d *draft, f *domain.CallFacts, r domain.Request) domain.RequestEvent {
		if r.Unknown != nil {
			return nil // the person still has to say what became of it
		}
		for _, right := range f.Rights {
			disabled := right.Member.DisabledAt != nil || right.Via != nil && right.Via.DisabledAt != nil
			if token == "" && disabled || token != "" && right.Token.ID == token {
				return domain.RequestCancelledEvent{At: d.at}
			}
		}
		return nil
	})
}

// doneClosing ends the closing at its due time. What is rung before leaves it open,
// so that the sweep looks once more: a step that had loaded its rights just before
// they went away may make a Request just after the first look.
func (e *Engine) doneClosing(ctx context.Context, subject string, token domain.TokenID) error {
	return e.decide(ctx, subject, func(d *draft) error {
		if token != "" {
			t, err := e.Store.Token(ctx, token)
			if err != nil || t.ClosingDueAt == nil || domain.Before(d.at, *t.ClosingDueAt) {
				return gone(err)
			}
			t.ClosingDueAt = nil
			d.put(&t)
			return nil
		}
		m, err := e.Store.Member(ctx, domain.MemberID(subject))
		if err != nil || m.ClosingDueAt == nil || domain.Before(d.at, *m.ClosingDueAt) {
			return gone(err)
		}
		m.ClosingDueAt = nil
		d.put(&m)
		return nil
	})
}
