package domain

import (
	"encoding/json"
	"slices"
	"time"
)

// CallStatus is where a tool call stands.
type CallStatus string

const (
	// CallPlanned is saved and not checked yet. It never outlives the transaction that
	// saves it: the check of the same transaction moves it on.
	CallPlanned CallStatus = "planned"
	// CallChecking waits for the judge, or for its check to be made anew, rung by its
	// commit and by the sweep at due_at; a judge that dies is asked again, twice at most,
	// and one that does not answer decides nothing.
	CallChecking CallStatus = "checking"
	// CallWaiting waits for a Request, which has a due_at of its own. A program waits for
	// its own calls instead; the end of any of them moves it. Nothing holds it.
	CallWaiting CallStatus = "waiting"
	// CallAllowed may go out. A worker takes it, rung by the commit that allowed it and
	// by the sweep at due_at. A process that dies here has sent nothing. A program is run
	// in this state, and its worker moves due_at on meanwhile; a run that dies with its
	// process is made again, a few times.
	CallAllowed CallStatus = "allowed"
	// CallSending is out, or about to be, under a lease that its worker renews. The
	// sweep looks when the lease runs out. A process that dies here leaves an outcome
	// that nobody knows.
	CallSending CallStatus = "sending"
	// CallSucceeded has the App's answer. End state.
	CallSucceeded CallStatus = "succeeded"
	// CallFailed surely did not run, or the App said that it failed. End state.
	CallFailed CallStatus = "failed"
	// CallDenied did not run. End state.
	CallDenied CallStatus = "denied"
	// CallCancelled did not run, because its Turn was stopped. End state.
	CallCancelled CallStatus = "cancelled"
	// CallUnknown went out, and nobody knows whether it ran. While EndedAt is nil a
	// Request asks the person, and that Request moves it; after that it is an end state.
	CallUnknown CallStatus = "unknown"
)

// CallStatuses lists every status, for tests over the table.
func CallStatuses() []CallStatus {
	return []CallStatus{CallPlanned, CallChecking, CallWaiting, CallAllowed, CallSending,
		CallSucceeded, CallFailed, CallDenied, CallCancelled, CallUnknown}
}

// CallKind says what a call reaches.
type CallKind string

const (
	// CallApp is a tool of an App.
	CallApp CallKind = "app"
	// CallHost is a tool of the host.
	CallHost CallKind = "host"
	// CallResource reads a resource of an App.
	CallResource CallKind = "resource"
	// CallPrompt reads a prompt of an App.
	CallPrompt CallKind = "prompt"
	// CallBuiltin is a tool of OpenBot itself; it runs inside a commit.
	CallBuiltin CallKind = "builtin"
	// CallOwn is a tool of OpenBot itself that needs a decision; once allowed it is
	// carried out in a commit of its own.
	CallOwn CallKind = "own"
	// CallDecide is a Bot's decision in its review Chat.
	CallDecide CallKind = "decide"
	// CallContinue asks whether work at a limit goes on. The server makes it; no model
	// asked for it and no Turn waits for it.
	CallContinue CallKind = "continue"
	// CallGive asks whether work may be given to a Bot. The tool call that wanted it has
	// returned; the work waits for this one.
	CallGive CallKind = "give"
	// CallProgram is a program of the Bot. It is run by a worker, makes calls of its own,
	// and waits for them.
	CallProgram CallKind = "program"
)

// Leases and tries of a call that is out.
const (
	// LeaseTime is how long a call may be out without a sign of its worker.
	LeaseTime = 9 * time.Second
	// LeaseMargin is how much earlier the worker's own context ends, so that a worker
	// that was stopped and wakes late does not send.
	LeaseMargin = 2 * time.Second
	// LeaseRenewal is how often the worker renews.
	LeaseRenewal = 2 * time.Second
	// MaxSends is how often a call that is safe to repeat goes out.
	MaxSends = 5
	// MaxJudgings is how often the judge is asked about one call. After that the check
	// goes on without it.
	MaxJudgings = 2
)

// Call is one tool call that a model asked for: the saved call, its decision and
// its result.
type Call struct {
	ID           CallID
	Organization OrganizationID
	Member       MemberID
	Chat         ChatID
	Turn         TurnID
	Step         int              // the model step that asked for it, from 1
	Position     int              // its place in that step, from 0; see ProgramPlace
	Parent       CallID           // the program that made it, or of a CallGive the tool call that wanted it, or ""
	Code         *ProgramPosition // where the program made it
	ModelID      string
	Name         string // the tool's name as the model was shown it
	Kind         CallKind
	Capability   Capability
	Connection   ConnectionID
	Revision     int64  // of the Connection when the call was saved
	Tool         string // the App's or host's own name for it
	Arguments    json.RawMessage
	Digest       string // SHA-256 in hex of the canonical form of Arguments
	Reason       string // the Bot's words
	Repeatable   bool   // marked as a read or as safe to repeat when last checked
	Waited       bool   // a person or Bot was asked about it
	Status       CallStatus
	Decided      *DecidedBy
	Evidence     []Finding     // what each step of its check found, in order
	Judgings     int           // how often the judge was asked about it
	Program      *ProgramState // of a program alone
	Delegation   DelegationID  // of a work call: the work that it decides about
	ParkedBy     DelegationID  // the paused work that holds the call, or ""
	Request      RequestID     // the Request that it waits for, or waited for last
	Result       string        // what the model reads
	Sends        int           // how often it went out
	Lease        string        // of the worker that sends it now
	LeaseUntil   *time.Time
	SentAt       *time.Time
	EndedAt      *time.Time
	DueAt        *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// DecideCall moves a call. It refuses with precondition what the table does not
// list, a lease that is not the call's own, and a lapse that comes early.
func DecideCall(c Call, ev CallEvent) (Call, error) {
	if !legal(CallTransitions, string(c.Status), ev.callEvent()) || c.EndedAt != nil {
		return c, Errorf(CodePrecondition, "CallConflict", "The call is %s; it cannot take this.", c.Status)
	}
	next := c
	switch ev := ev.(type) {
	case Checked:
		next.check(ev)
	case Ran:
		next.close(statusOf(!ev.Failed), ev.Result, ev.At)
	case CallAnswered:
		next.answer(ev)
	case Refused:
		next.Decided = ev.Decided
		next.Evidence = append(slices.Clone(c.Evidence), ev.Evidence...)
		if ev.Decided == nil {
			next.Decided = c.Decided
		}
		status := CallFailed
		if ev.Denied {
			status = CallDenied
		}
		next.close(status, ev.Result, ev.At)
	case Taken:
		if c.OwnWork() {
			return c, Errorf(CodeInternal, "CallConflict", "A call of kind %s never goes out.", c.Kind)
		}
		if ev.Lease == "" {
			return c, Errorf(CodeInternal, "CallConflict", "A call cannot be taken without a lease.")
		}
		next.Status, next.Lease, next.Sends = CallSending, ev.Lease, c.Sends+1
		next.SentAt = ptr(ev.At)
		next.LeaseUntil = ptr(ev.At.Add(LeaseTime))
		next.DueAt = next.LeaseUntil
		next.UpdatedAt = ev.At
	case Returned:
		if ev.Lease != c.Lease {
			return c, Errorf(CodePrecondition, "CallConflict", "The lease of this call is another's.")
		}
		next.close(statusOf(!ev.Failed), ev.Result, ev.At)
	case HeldBack:
		if ev.Lease != c.Lease {
			return c, Errorf(CodePrecondition, "CallConflict", "The lease of this call is another's.")
		}
		next.Status, next.Lease, next.LeaseUntil, next.ParkedBy = CallAllowed, "", nil, ev.By
		next.Sends, next.SentAt, next.UpdatedAt = c.Sends-1, nil, ev.At
		next.DueAt = nil
		if ev.By == "" {
			next.DueAt = ptr(ev.At.Add(RunnableGrace))
		}
	case Lost:
		if ev.Lease == "" && !c.LeaseRanOut(ev.At) || ev.Lease != "" && ev.Lease != c.Lease {
			return c, Errorf(CodePrecondition, "CallConflict", "The call is still out under a lease.")
		}
		next.lose(ev)
	case CallStopped:
		next.close(CallCancelled, ev.Result, ev.At)
	case Judging:
		if c.Judgings >= MaxJudgings {
			return c, Errorf(CodePrecondition, "CallConflict", "The judge was asked often enough.")
		}
		next.Judgings++
		next.DueAt, next.UpdatedAt = ptr(ev.At.Add(LeaseTime)), ev.At
	case ProgramStarted, ProgramPaused, ProgramWoken:
		if c.Kind != CallProgram || c.Program == nil {
			return c, Errorf(CodePrecondition, "CallConflict", "A call of kind %s is no program.", c.Kind)
		}
		if _, start := ev.(ProgramStarted); start && c.Program.Tries >= MaxProgramTries {
			return c, Errorf(CodePrecondition, "CallConflict", "The program was run often enough.")
		}
		next.runProgram(ev)
	case Doubted:
		next.Status, next.DueAt, next.UpdatedAt = CallChecking, ptr(ev.At.Add(RunnableGrace)), ev.At
		next.Decided, next.Evidence = nil, append(slices.Clone(c.Evidence), ev.Evidence...)
	case CallParked:
		if ev.By == "" {
			return c, Errorf(CodeInternal, "CallConflict", "A call cannot be parked by nothing.")
		}
		next.DueAt, next.ParkedBy, next.UpdatedAt = nil, ev.By, ev.At
	case Carried:
		if !c.OwnWork() {
			return c, Errorf(CodeInternal, "CallConflict", "A call of kind %s goes out; it is not carried out here.", c.Kind)
		}
		next.close(statusOf(!ev.Failed), ev.Result, ev.At)
	default:
		return c, Errorf(CodeInternal, "CallConflict", "An event that no call knows.")
	}
	if next.waitsForPerson() && next.Request == "" {
		return c, Errorf(CodeInternal, "CallConflict", "This is a bug: the call would wait for a Request that there is not.")
	}
	if !legalTo(CallTransitions, string(c.Status), ev.callEvent(), string(next.Status)) {
		return c, Errorf(CodeInternal, "CallConflict", "This is a bug: %s does not lead from %s to %s.", ev.callEvent(), c.Status, next.Status)
	}
	return next, nil
}

func (c *Call) check(ev Checked) {
	c.Decided = ptr(ev.Verdict.Decided)
	c.Evidence = append(slices.Clone(c.Evidence), ev.Verdict.Evidence...)
	c.UpdatedAt = ev.At
	switch ev.Verdict.Outcome {
	case OutcomeAllow:
		c.Status, c.DueAt = CallAllowed, ptr(ev.At.Add(RunnableGrace))
	case OutcomeDeny:
		c.close(CallDenied, ev.Result, ev.At)
	case OutcomeJudge:
		// What was found so far is found again when the judge has answered.
		c.Decided, c.Evidence = nil, c.Evidence[:len(c.Evidence)-len(ev.Verdict.Evidence)]
		c.Status, c.DueAt = CallChecking, ptr(ev.At.Add(RunnableGrace))
	default:
		c.Decided = nil
		c.Status, c.DueAt = CallWaiting, nil
		c.Request, c.Waited = ev.Request, true
	}
}

func (c *Call) answer(ev CallAnswered) {
	wasUnknown := c.Status == CallUnknown
	found := "denied by "
	if ev.Allow {
		found = "allowed by "
	}
	c.Evidence = append(slices.Clone(c.Evidence), Finding{Step: ev.Decided.Step, Found: found + ev.Decided.By.ID(), AtMs: ev.At.UnixMilli()})
	if !wasUnknown || ev.Allow {
		c.Decided = ptr(ev.Decided)
	}
	if ev.Allow {
		c.Status, c.DueAt, c.UpdatedAt = CallAllowed, ptr(ev.At.Add(RunnableGrace)), ev.At
		return
	}
	status := CallDenied
	if wasUnknown {
		status = CallUnknown
	}
	c.close(status, ev.Result, ev.At)
}

// lose decides what becomes of a call of which nothing came back: one that is
// safe to repeat goes out again, a few times; any other asks the person.
func (c *Call) lose(ev Lost) {
	c.Lease, c.LeaseUntil, c.UpdatedAt = "", nil, ev.At
	switch {
	case c.Repeatable && !ev.Stopped && c.Sends < MaxSends:
		c.Status, c.DueAt = CallAllowed, ptr(ev.At.Add(RunnableGrace))
	case c.Repeatable:
		c.close(CallFailed, ev.Result, ev.At)
	default:
		c.Status, c.DueAt = CallUnknown, nil
		c.Request, c.Waited = ev.Request, true
	}
}

func (c *Call) close(status CallStatus, result string, now time.Time) {
	c.Status, c.Result, c.DueAt = status, result, nil
	c.Lease, c.LeaseUntil, c.ParkedBy = "", nil, ""
	c.EndedAt, c.UpdatedAt = ptr(now), now
	if c.Program != nil {
		state := *c.Program
		state.Trace, state.Tries = ProgramTrace{}, 0
		c.Program = &state
	}
}

// runProgram notes where a program stands between its runs.
func (c *Call) runProgram(ev CallEvent) {
	state := *c.Program
	switch ev := ev.(type) {
	case ProgramStarted:
		state.Tries++
		c.DueAt, c.UpdatedAt = ptr(ev.At.Add(LeaseTime)), ev.At
	case ProgramPaused:
		state.Tries, state.Trace = 0, ev.Trace
		c.Status, c.DueAt, c.UpdatedAt = CallWaiting, nil, ev.At
		if ev.Again {
			c.Status, c.DueAt = CallAllowed, ptr(ev.At.Add(RunnableGrace))
		}
	case ProgramWoken:
		c.Status, c.DueAt, c.UpdatedAt = CallAllowed, ptr(ev.At.Add(RunnableGrace)), ev.At
	}
	c.Program = &state
}

// waitsForPerson reports whether nothing but the end of a Request moves the call.
func (c Call) waitsForPerson() bool {
	return c.Open() && c.Kind != CallProgram && (c.Status == CallWaiting || c.Status == CallUnknown)
}

// OwnWork reports whether the call is carried out here and never goes out.
func (c Call) OwnWork() bool {
	return c.Kind == CallOwn || c.Kind == CallDecide || c.Kind == CallProgram || c.ForWork()
}

// ForWork reports whether the call belongs to a piece of work rather than to a Turn: it
// survives an interrupt, and no model reads what it gives.
func (c Call) ForWork() bool { return c.Kind == CallContinue || c.Kind == CallGive }

// WorkStep is the step of calls that belong to a piece of work. No Turn has it.
const WorkStep = -1

// Urgency is that of sending the call once it is allowed. What lets a Bot decide may
// have to be read by the judge: a slow judge must hold up nothing else.
func (c Call) Urgency() Urgency {
	if c.Kind == CallDecide {
		return UrgencyJudge
	}
	return UrgencyAnswer
}

// Open reports whether the call has no result yet.
func (c Call) Open() bool { return c.EndedAt == nil }

// Runnable reports whether the call moves without a decider.
func (c Call) Runnable() bool {
	return c.Open() && (c.Status == CallPlanned || c.Status == CallChecking || c.Status == CallAllowed || c.Status == CallSending)
}

// LeaseRanOut reports whether nobody holds the call that is out.
func (c Call) LeaseRanOut(at time.Time) bool {
	return c.LeaseUntil == nil || !Before(at, *c.LeaseUntil)
}

// Before is the one reading of a deadline: it is half-open, alive while at is
// before it.
func Before(at, deadline time.Time) bool { return at.Before(deadline) }

func statusOf(ok bool) CallStatus {
	if ok {
		return CallSucceeded
	}
	return CallFailed
}
