package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"openbot/domain"
)

// How old the last look at an App may be before a call goes out.
const (
	lookAge       = time.Minute
	lookAgeWaited = 10 * time.Second // for a call that waited for a decision
)

// Sending is one call that its worker has taken: sending is committed, and the
// worker may send it once before the lease is up.
type Sending struct {
	Call       domain.Call
	Lease      string
	At         time.Time // when it was decided that the call goes out
	Until      time.Time // the worker's own end, before that of the lease
	Connection *domain.Connection
	HostTool   *domain.HostTool
	// Onward is set by a worker that takes the Turn's next step itself when the outcome of
	// this call makes it due. Then nobody is rung for it, and Step names it.
	Onward bool
	Step   *domain.Task
	// known is what stood when the call was taken. It serves the first try to save the
	// answer: whatever moves in the Chat moves its version, which fences it.
	known *domain.CallFacts
}

// Taking is what a worker got when it asked for a call.
type Taking struct {
	Sending *Sending           // the call is the worker's
	Look    *domain.Connection // the App must be looked at first; then ask again
	Decide  *Deciding          // a Bot's decision; carry it with CarryDecision
}

// TakeCall looks at an allowed call once more and commits that it is going out.
// It gives neither when the call is not wanted any more, or was refused at this
// last look. looked says that the caller has just looked at the App.
func (e *Engine) TakeCall(ctx context.Context, id domain.CallID, version int64, looked bool) (Taking, error) {
	var taking Taking
	var taken *callWork
	err := e.decideCall(ctx, id, func(d *draft, f *domain.CallFacts) error {
		taking, taken = Taking{}, nil
		if f.Call.Status != domain.CallAllowed || f.Call.Version != version || f.Call.Kind == domain.CallProgram {
			return nil
		}
		w := e.callWork(ctx, d, f)
		if w.stopped() {
			return w.move(domain.CallStopped{At: d.at, Result: domain.TextStopped(f.Call)})
		}
		if held, err := w.heldUp(); held || err != nil {
			return err
		}
		if f.Call.Kind == domain.CallDecide {
			var err error
			taking.Decide, err = e.deciding(ctx, d, f)
			return err
		}
		if !looked && lookDue(f, d.at) {
			taking.Look = f.Connection
			return nil
		}
		f.Call.Repeatable = repeatable(f.Organization.Settings, f.Call, f.HostTool)
		if refusal := lastLook(d.at, f); refusal != nil {
			return w.move(refusal)
		}
		if f.Call.ForWork() {
			return w.carryWork()
		}
		d.guard(f.Work)
		if f.Call.Kind == domain.CallOwn {
			return w.carryOwn()
		}
		lease := uuid.NewString()
		if err := w.move(domain.Taken{At: d.at, Lease: lease}); err != nil {
			return err
		}
		taken = w
		taking.Sending = &Sending{Call: w.call, Lease: lease, At: d.at, Until: d.at.Add(domain.LeaseTime - domain.LeaseMargin),
			Connection: f.Connection, HostTool: f.HostTool}
		return nil
	})
	if err != nil {
		return Taking{}, err
	}
	if taken != nil {
		taking.Sending.known = taken.committed()
	}
	return taking, nil
}

// lookDue reports whether the App must be looked at before this call.
func lookDue(f *domain.CallFacts, at time.Time) bool {
	c := f.Connection
	if c == nil || c.DeletedAt != nil {
		return false
	}
	age := lookAge
	if f.Call.Waited {
		age = lookAgeWaited
	}
	return c.LookedAt == nil || !domain.Before(at, c.LookedAt.Add(age))
}

// lastLook checks the binding, policy, deny Grants, and that what allowed the call
// still stands. It gives nil when the call may go out, and else what becomes of it: it is
// refused, or the check is made anew because only a decider can allow it now.
func lastLook(at time.Time, f *domain.CallFacts) domain.CallEvent {
	c := f.Call
	a := callAttempt(at, f)
	changed := a.Visible && (c.Connection != "" && f.Connection.Revision != c.Revision ||
		c.Kind == domain.CallHost && f.HostTool.Revision != c.Revision)
	if d := c.Decided; d != nil && d.By.Tag == domain.TagBot {
		f.Strength.Chat = gaveFrom(f, d.By.Bot)
	}
	verdict := domain.Recheck(a, c.Decided, f.Strength)
	switch {
	case verdict.Outcome == domain.OutcomeAsk && !changed:
		return domain.Doubted{At: at, Evidence: verdict.Evidence}
	case verdict.Outcome == domain.OutcomeAllow && !changed:
		return nil
	case verdict.Outcome == domain.OutcomeAllow || verdict.Outcome == domain.OutcomeAsk:
		return domain.Refused{At: at, Result: domain.TextRevisionChanged()}
	}
	decided := verdict.Decided
	return domain.Refused{At: at, Denied: true, Decided: &decided, Evidence: verdict.Evidence, Result: domain.TextDenied(decided, verdict.Reason)}
}

// callAttempt is what a saved call tries, as things stand now. Rules and deciders are
// left out: see judgedAttempt.
func callAttempt(at time.Time, f *domain.CallFacts) domain.Attempt {
	c := f.Call
	a := domain.Attempt{At: at, Bot: f.Turn.Bot, Member: c.Member, Chat: c.Chat, Capability: c.Capability, Rights: f.Rights,
		Planning: f.Chat.Mode == domain.ModePlan, Revision: c.Revision, Grants: f.Grants,
		Exempt:  exemption(f.Organization.Settings, c, f.HostTool),
		Caution: caution(f.Organization.Settings, c, f.Connection, f.HostTool, f.Chat.Taint)}
	if c.Kind == domain.CallContinue {
		a.Limit = c.Tool
	}
	switch {
	case c.Connection != "":
		a.Visible = f.Connection != nil && f.Connection.VisibleTo(c.Member)
	case c.Kind == domain.CallHost:
		a.Visible = f.HostTool != nil && f.HostTool.DeletedAt == nil
	case c.OwnWork():
		a.Visible = true
	}
	return a
}

// CallWanted looks once more at a call that is about to go out a while after its sending
// was committed, because its App had to be connected to first. It gives precondition when
// the work was stopped or paused meanwhile or the lease is another's, and unavailable when
// that cannot be found out.
func (e *Engine) CallWanted(ctx context.Context, s *Sending) error {
	f, err := e.Store.CallFacts(ctx, s.Call.ID)
	if err != nil {
		return err
	}
	w := callWork{f: &f}
	if f.Call.Status != domain.CallSending || f.Call.Lease != s.Lease || w.stopped() || !domain.HeldBy(f.Work).Free() {
		return domain.Errorf(domain.CodePrecondition, "CallHeldBack", "The work was stopped or paused before the call went out.")
	}
	return nil
}

// HoldBackCall takes back a call that CallWanted held back: surely nothing of it went out.
// That of stopped work ends; that of paused work goes out when the work goes on.
func (e *Engine) HoldBackCall(ctx context.Context, s *Sending) error {
	return e.moveCall(ctx, s, nil, func(d *draft, f *domain.CallFacts) domain.CallEvent {
		w, h := callWork{f: f}, domain.HeldBy(f.Work)
		if w.stopped() || h.Stopping != "" {
			return domain.Returned{At: d.at, Lease: s.Lease, Failed: true, Result: domain.TextAppFailed("the work was stopped before the call went out. It was not executed.")}
		}
		d.guard(f.Work)
		return domain.HeldBack{At: d.at, Lease: s.Lease, By: h.Paused}
	})
}

// RenewCall says that the call is still out. It gives the worker's new end, and
// false when the lease is another's or the work was stopped.
func (e *Engine) RenewCall(ctx context.Context, s *Sending) (time.Time, bool, error) {
	at := e.now()
	ok, err := e.Store.RenewLease(ctx, s.Call.ID, s.Lease, at.Add(domain.LeaseTime))
	return at.Add(domain.LeaseTime - domain.LeaseMargin), ok, err
}

// SettleCall saves what the App answered, or that the call surely did not go out.
// An answer under a lease that is another's by now is dropped: the call was
// already declared unknown.
//
// An answer from outside the organization taints the Chat in the same commit. What was
// loaded when the call was taken tells whom the organization trusts; a source that it
// trusted then is looked up anew.
func (e *Engine) SettleCall(ctx context.Context, s *Sending, failed bool, result string) error {
	known := s.known
	if known != nil && len(answers(known, time.Time{})) == 0 {
		known = nil
	}
	return e.moveCall(ctx, s, known, func(d *draft, f *domain.CallFacts) domain.CallEvent {
		f.Chat.TakeIn(answers(f, d.at))
		return domain.Returned{At: d.at, Lease: s.Lease, Failed: failed, Result: safeText(result)}
	})
}

// LoseCall saves that the call went out and no answer came back. Whether it may go
// out again is a setting, which is read anew.
func (e *Engine) LoseCall(ctx context.Context, s *Sending) error {
	return e.moveCall(ctx, s, nil, func(d *draft, f *domain.CallFacts) domain.CallEvent {
		return lost(d, f, s.Lease)
	})
}

// moveCall decides on what is known at the first try, if anything is, and on what it
// loads after a conflict.
func (e *Engine) moveCall(ctx context.Context, s *Sending, known *domain.CallFacts, event func(*draft, *domain.CallFacts) domain.CallEvent) error {
	return e.decide(ctx, string(s.Call.Chat), func(d *draft) error {
		if s.Onward {
			d.onward = s
		}
		var f domain.CallFacts
		if known != nil {
			f, known = *known, nil
		} else {
			var err error
			if f, err = e.Store.CallFacts(ctx, s.Call.ID); err != nil {
				return gone(err)
			}
		}
		if f.Call.Status != domain.CallSending || f.Call.Lease != s.Lease {
			return nil
		}
		w := e.callWork(ctx, d, &f)
		return w.move(event(d, &f))
	})
}

// LapseCall looks at a call whose lease may have run out: its worker died between
// sending and the answer.
func (e *Engine) LapseCall(ctx context.Context, id domain.CallID) error {
	return e.decideCall(ctx, id, func(d *draft, f *domain.CallFacts) error {
		if f.Call.Status != domain.CallSending || !f.Call.LeaseRanOut(d.at) {
			return nil
		}
		w := e.callWork(ctx, d, f)
		return w.move(lost(d, f, ""))
	})
}

func lost(d *draft, f *domain.CallFacts, lease string) domain.Lost {
	f.Call.Repeatable = repeatable(f.Organization.Settings, f.Call, f.HostTool)
	return domain.Lost{At: d.at, Lease: lease, Stopped: f.Turn.Status.Ended(), Request: newID[domain.RequestID](domain.PrefixRequest),
		Result: domain.TextNoAnswer(f.Call.Sends)}
}

// decideCall carries out one decision about a call. What was loaded to find its
// Chat serves the first try: the versions fence it.
func (e *Engine) decideCall(ctx context.Context, id domain.CallID, plan func(d *draft, f *domain.CallFacts) error) error {
	facts, err := e.Store.CallFacts(ctx, id)
	if err != nil {
		return gone(err)
	}
	loaded := true
	return e.decide(ctx, string(facts.Chat.ID), func(d *draft) error {
		if !loaded {
			if facts, err = e.Store.CallFacts(ctx, id); err != nil {
				return gone(err)
			}
		}
		loaded = false
		f := facts
		return plan(d, &f)
	})
}

// gone drops work on a row that there is not any more.
func gone(err error) error {
	if domain.IsCode(err, domain.CodeNotFound) {
		return nil
	}
	return err
}

// PromptArguments reads the arguments of openbot_get_app_prompt and
// openbot_read_app_resource from a saved call.
func (s *Sending) PromptArguments() (name, uri string, arguments map[string]string) {
	var in struct {
		Name      string
		URI       string
		Arguments map[string]string
	}
	if err := json.Unmarshal(s.Call.Arguments, &in); err != nil {
		return "", "", nil // the schema was checked when the call was saved
	}
	return in.Name, in.URI, in.Arguments
}
