package domain

import "time"

// Call events, as the table names them.
const (
	CallEventChecked  = "Checked"
	CallEventRan      = "Ran"
	CallEventAnswered = "Answered"
	CallEventRefused  = "Refused"
	CallEventTaken    = "Taken"
	CallEventReturned = "Returned"
	CallEventLost     = "Lost"
	CallEventStopped  = "Stopped"
	CallEventJudging  = "Judging"
	CallEventCarried  = "Carried"
	CallEventStarted  = "Started"
	CallEventPaused   = "Paused"
	CallEventWoken    = "Woken"
	CallEventParked   = "Parked"
	CallEventDoubted  = "Doubted"
	CallEventHeldBack = "HeldBack"
)

// CallTransitions is the law of a tool call.
var CallTransitions = []Transition{
	{string(CallPlanned), CallEventChecked, []string{string(CallChecking), string(CallWaiting), string(CallAllowed), string(CallDenied)}},
	{string(CallPlanned), CallEventRan, []string{string(CallSucceeded), string(CallFailed)}},
	{string(CallChecking), CallEventJudging, []string{string(CallChecking)}},
	{string(CallChecking), CallEventChecked, []string{string(CallChecking), string(CallWaiting), string(CallAllowed), string(CallDenied)}},
	{string(CallChecking), CallEventStopped, []string{string(CallCancelled)}},
	{string(CallWaiting), CallEventAnswered, []string{string(CallAllowed), string(CallDenied)}},
	{string(CallWaiting), CallEventWoken, []string{string(CallAllowed)}},
	{string(CallWaiting), CallEventStopped, []string{string(CallCancelled)}},
	{string(CallAllowed), CallEventRefused, []string{string(CallDenied), string(CallFailed)}},
	{string(CallAllowed), CallEventTaken, []string{string(CallSending)}},
	{string(CallAllowed), CallEventCarried, []string{string(CallSucceeded), string(CallFailed)}},
	{string(CallAllowed), CallEventStarted, []string{string(CallAllowed)}},
	{string(CallAllowed), CallEventPaused, []string{string(CallAllowed), string(CallWaiting)}},
	{string(CallAllowed), CallEventParked, []string{string(CallAllowed)}},
	{string(CallAllowed), CallEventDoubted, []string{string(CallChecking)}},
	{string(CallChecking), CallEventParked, []string{string(CallChecking)}},
	{string(CallAllowed), CallEventStopped, []string{string(CallCancelled)}},
	{string(CallSending), CallEventReturned, []string{string(CallSucceeded), string(CallFailed)}},
	{string(CallSending), CallEventLost, []string{string(CallAllowed), string(CallUnknown), string(CallFailed)}},
	{string(CallSending), CallEventHeldBack, []string{string(CallAllowed)}},
	{string(CallUnknown), CallEventAnswered, []string{string(CallAllowed), string(CallUnknown)}},
}

// CallEvent is something that happened to a call.
type CallEvent interface{ callEvent() string }

// Checked is the outcome of the check.
type Checked struct {
	At      time.Time
	Verdict Verdict
	Request RequestID // of the Request made, when the verdict is to ask
	Result  string    // what the model reads, when it is denied
}

// Ran is a built-in tool that did its work in the commit, or arguments that fit
// no tool.
type Ran struct {
	At     time.Time
	Failed bool
	Result string
}

// CallAnswered is the end of the Request that the call waited for.
type CallAnswered struct {
	At      time.Time
	Allow   bool
	Decided DecidedBy
	Result  string // what the model reads, when it is denied
}

// Refused is a last look before sending that found the call no longer allowed
// (Denied), or no longer possible.
type Refused struct {
	At       time.Time
	Denied   bool
	Decided  *DecidedBy
	Evidence []Finding // what the last look found
	Result   string
}

// Taken is a worker that is about to send.
type Taken struct {
	At    time.Time
	Lease string
}

// Returned is the App's answer, or the certainty that nothing went out.
type Returned struct {
	At     time.Time
	Lease  string
	Failed bool
	Result string
}

// Lost is a call that went out and of which nothing came back: its lease ran out
// (Lease is ""), or its worker got no answer (Lease is the worker's own).
type Lost struct {
	At      time.Time
	Lease   string
	Stopped bool      // its work was stopped: it goes out no more by itself
	Request RequestID // of the Request to the person, when one must be made
	Result  string    // what the model reads, when no more tries are left
}

// CallStopped is an interrupt or a cancel of the Turn.
type CallStopped struct {
	At     time.Time
	Result string
}

// Judging is a worker that is about to ask the judge. It is saved before the judge
// is asked, so that one that kills its workers is not asked for ever.
type Judging struct{ At time.Time }

// Carried is a tool of OpenBot that did its work in the same commit, or a decision
// that was taken, after the call had been allowed.
type Carried struct {
	At     time.Time
	Failed bool
	Result string
}

// ProgramStarted is a worker that is about to run a program. It is saved before the
// run, so that one that kills its workers is not run for ever.
type ProgramStarted struct{ At time.Time }

// ProgramPaused is the end of a run of a program that has open calls. With Again one
// of them has ended since the run began, and the program is run again at once.
type ProgramPaused struct {
	At    time.Time
	Trace ProgramTrace
	Again bool
}

// ProgramWoken is the end of a call that a waiting program made.
type ProgramWoken struct{ At time.Time }

// CallParked is a call that may not go out, because its work is paused.
type CallParked struct {
	At time.Time
	By DelegationID
}

// Doubted is a last look before sending that found a call which only a decider can allow
// now: the tag policy changed, or content from outside came into its Chat. The whole
// check is made again.
type Doubted struct {
	At       time.Time
	Evidence []Finding // what the last look found
}

// HeldBack is a call whose worker found, before the first byte went out, that it may not
// go out now. It counts as never sent.
type HeldBack struct {
	At    time.Time
	Lease string
	By    DelegationID // the paused work that holds it, or "" when it may go out by now
}

func (HeldBack) callEvent() string       { return CallEventHeldBack }
func (Doubted) callEvent() string        { return CallEventDoubted }
func (CallParked) callEvent() string     { return CallEventParked }
func (ProgramStarted) callEvent() string { return CallEventStarted }
func (ProgramPaused) callEvent() string  { return CallEventPaused }
func (ProgramWoken) callEvent() string   { return CallEventWoken }
func (Judging) callEvent() string        { return CallEventJudging }
func (Carried) callEvent() string        { return CallEventCarried }
func (Checked) callEvent() string        { return CallEventChecked }
func (Ran) callEvent() string            { return CallEventRan }
func (CallAnswered) callEvent() string   { return CallEventAnswered }
func (Refused) callEvent() string        { return CallEventRefused }
func (Taken) callEvent() string          { return CallEventTaken }
func (Returned) callEvent() string       { return CallEventReturned }
func (Lost) callEvent() string           { return CallEventLost }
func (CallStopped) callEvent() string    { return CallEventStopped }
