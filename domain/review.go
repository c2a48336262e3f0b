package domain

import (
	"slices"
	"time"
)

// Reviewing is a review Chat that was opened for the Bot that must decide. Until is
// when its time is up.
type Reviewing struct {
	At    time.Time
	Chat  ChatID
	Until time.Time
}

// Passed is a review that gave no decision, or a Bot that can give none: the next
// decider is asked.
type Passed struct {
	At   time.Time
	Bot  BotID // whose turn it was
	Next Actor
}

// Reviewed is what a Bot decided in its review Chat. Holds is what the check of the
// same capability, asked for that Bot itself, came to now.
type Reviewed struct {
	At       time.Time
	Chat     ChatID // the review Chat
	Bot      BotID
	Decision string
	Scope    string
	Reason   *string
	Rule     *string
	Holds    Verdict
	Next     Actor  // who decides when the Bot only endorses
	From     ChatID // the Chat from which the Bot gave the work that asks, or ""
	GrantID  GrantID
	RuleID   RuleID
	Endorsed []GrantID
}

// NextDecider gives who decides after the Bot that decides now: the next Bot up the
// chain that is not archived, and the person above all of them. A Bot that is not in
// the chain leads to the person.
func (r Request) NextDecider(archived func(BotID) bool) Actor {
	at := slices.Index(r.Chain, r.Approver.Bot)
	for i := at - 1; i >= 0; i-- {
		if bot := r.Chain[i]; bot != r.Bot && !archived(bot) {
			return ByBot(bot)
		}
	}
	return Person(r.Member)
}

func (r Request) reviewing(ev Reviewing) (Request, error) {
	if r.Approver.Tag != TagBot || r.Review != "" || ev.Chat == "" {
		return r, requestConflict("This Request waits for no review.")
	}
	if !Before(ev.At, r.ExpiresAt) {
		return r, requestConflict("The time of this Request is up.")
	}
	r.Review, r.ReviewDueAt, r.UpdatedAt = ev.Chat, ptr(ev.Until), ev.At
	return r, nil
}

func (r Request) passed(ev Passed) (Request, error) {
	if r.Approver != ByBot(ev.Bot) {
		return r, requestConflict("Another decider must answer this Request.")
	}
	return r.up(ev.At, ev.Next)
}

// up hands the Request to another decider, which must stand further up.
func (r Request) up(at time.Time, next Actor) (Request, error) {
	switch next.Tag {
	case TagPerson:
		if next.User != r.Member {
			return r, requestConflict("This person does not stand above the Bot.")
		}
		r.ReviewDueAt = nil
		r.EscalateAt = r.escalatesAfter(at)
	case TagBot:
		now, then := slices.Index(r.Chain, r.Approver.Bot), slices.Index(r.Chain, next.Bot)
		if then < 0 || then >= now || next.Bot == r.Bot {
			return r, requestConflict("This Bot does not stand above the one that was asked.")
		}
		r.ReviewDueAt = ptr(at.Add(RunnableGrace))
	default:
		return r, requestConflict("Nobody was named to decide next.")
	}
	r.Approver, r.Review, r.UpdatedAt = next, "", at
	r.Revision++
	return r, nil
}

// reviewed takes a Bot's decision: its deny is final, its allow is final when it may
// do the same itself, and any other allow is an endorsement that goes up.
func (r Request) reviewed(ev Reviewed) (Request, []Effect, error) {
	if err := r.mayReview(ev); err != nil {
		return r, nil, err
	}
	d := Decision{Decision: ev.Decision, Scope: ev.Scope, Reason: ev.Reason, Rule: ev.Rule, By: ByBot(ev.Bot), AtMs: ev.At.UnixMilli()}
	k := kept{grant: ev.GrantID, rule: ev.RuleID, endorsed: ev.Endorsed, keeper: ev.Bot}
	switch {
	case ev.Decision == DecisionDeny:
		return r.closed(ev.At, d), r.kept(ev.At, d, k), nil
	case ev.Holds.Outcome == OutcomeAllow && !r.caution().human():
		d.Scope = narrower(d.Scope, ev.Holds.Decided.widest())
		k.parent = ev.Holds.Decided.Grant
		return r.closed(ev.At, d), r.kept(ev.At, d, k), nil
	}
	next, err := r.up(ev.At, ev.Next)
	if err != nil {
		return r, nil, err
	}
	e := Endorsement{Bot: ev.Bot, Scope: ev.Scope, AtMs: ev.At.UnixMilli(), Chat: ev.From}
	if ev.Reason != nil {
		e.Reason = *ev.Reason
	}
	next.Endorsements = append(slices.Clone(r.Endorsements), e)
	return next, nil, nil
}

func (r Request) mayReview(ev Reviewed) error {
	if r.Approver != ByBot(ev.Bot) || ev.Bot == "" || ev.Bot == r.Bot {
		return requestConflict("Another decider must answer this Request.")
	}
	if ev.Chat == "" || ev.Chat != r.Review {
		return requestConflict("This review is over.")
	}
	if !Before(ev.At, r.ExpiresAt) {
		return requestConflict("The time of this Request is up.")
	}
	if r.Unknown != nil {
		return requestConflict("Only the person says what becomes of a call whose outcome is not known.")
	}
	if ev.Decision != DecisionAllow && ev.Decision != DecisionDeny {
		return invalid("decision", "must be allow or deny")
	}
	if !slices.Contains([]string{ScopeOnce, ScopeChat, ScopeLifetime}, ev.Scope) {
		return invalid("scope", "must be once, chat or lifetime")
	}
	return nil
}

// widest is the widest scope that a Bot may give on this evidence. A Rule was read
// about one attempt and stands behind no other; a Chat Grant lets no more than its
// Chat.
func (d DecidedBy) widest() string {
	switch d.Step {
	case StepExemption:
		return ScopeLifetime
	case StepGrant:
		if d.Scope == ScopeLifetime {
			return ScopeLifetime
		}
		return ScopeChat
	}
	return ScopeOnce
}
