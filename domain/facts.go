package domain

import (
	"encoding/json"
	"time"
)

// StepFacts is everything that one model step needs, loaded together.
type StepFacts struct {
	Organization Organization
	Chat         Chat
	Turn         Turn
	Bot          Bot
	MainBot      BotID         // of the Member whom the work is for
	Owners       map[BotID]Bot // the Bots above Bot, archived ones included
	Rights       []Rights      // of Turn.Authority, in its order
	Items        []Item        // the whole history, by sequence
	Calls        []AskedCall   // every call that a model asked for, by turn, step and position
	Inbox        []Input       // by sequence
	Connections  []Connection  // that the Member can see, by ID: the older keeps its tools' names
	HostTools    []HostTool    // of the organization
	Grants       []Grant       // of the Bot in work for the Member, not revoked
	Rules        []Rule        // of the Bot in work for the Member and of the organization, in force
	Work         []Delegation  // of a task Chat: its work and all work above it, nearest first
	OpenWork     OpenWork      // of a task Chat
}

// AskedCall is what a model reads of a call that it asked for.
type AskedCall struct {
	ID        CallID
	Turn      TurnID
	Step      int
	Name      string
	Arguments json.RawMessage
	Status    CallStatus
	Result    string
	EndedAt   *time.Time
}

// Open reports whether the call has no result yet.
func (c AskedCall) Open() bool { return c.EndedAt == nil }

// OpenWork counts what keeps the work of a task Chat open, beside its inbox and its
// Turn.
type OpenWork struct {
	Given     int64 // work that it gave away
	Untold    int64 // such work that has ended, of which it was not told yet
	Requests  int64 // that wait for a decision, and work calls that do
	Reminders int64
	Out       int64 // calls without a result
}

// Any reports whether there is some.
func (o OpenWork) Any() bool { return o.Given+o.Untold+o.Requests+o.Reminders+o.Out > 0 }

// CallFacts is everything that a move of one call needs, loaded together.
type CallFacts struct {
	Organization Organization
	Chat         Chat
	Turn         Turn
	Call         Call
	Request      *Request // the Request that the call waits for, or waited for last
	Rights       []Rights
	Grants       []Grant // of the Bot for the call's capability, not revoked
	Connection   *Connection
	HostTool     *HostTool
	Siblings     []CallStanding // every call of the same step, this one included
	// Strength is what an allow rests on: the Grant that let the Bot that gave it, and
	// the Rule that was quoted.
	Strength Strength
	// Parent is the program that made the call, or nil.
	Parent *Call
	// Children are the calls that this program made, by number.
	Children []Call
	// Judging is loaded for a call in checking alone.
	Judging *JudgeFacts
	// Work is that of the Chat: its work and all work above it, nearest first.
	Work []Delegation
}

// JudgeFacts is what the check of a call needs beside CallFacts when it goes on after
// the judge.
type JudgeFacts struct {
	Bot     Bot
	MainBot BotID
	Owners  map[BotID]Bot
	Rules   []Rule // as in StepFacts
}

// CallStanding is how one call stands, without its payload.
type CallStanding struct {
	ID     CallID
	Status CallStatus
	Ended  bool
}

// TurnFacts is everything that stopping a Turn needs, loaded together.
type TurnFacts struct {
	Chat     Chat
	Turn     Turn
	Open     []Call    // calls without a result
	Requests []Request // pending ones of the Turn
	// WorkCalls and WorkRequests belong to work that the Chat gives or does, and survive
	// an interrupt.
	WorkCalls    []Call
	WorkRequests []Request
}

// WorkFacts is everything that a decision about the end of a task Chat's work needs.
type WorkFacts struct {
	Chat     Chat
	Turn     Turn // its newest Turn, or the zero value
	Work     []Delegation
	OpenWork OpenWork
	Inbox    []Input
}

// DelegationView is a piece of work as it is shown.
type DelegationView struct {
	Delegation Delegation
	Above      []Delegation // all work above it, nearest first
	Request    RequestID    // that decides about its pause or start, or ""
	Waits      RequestID    // while it runs: the newest that its Chat waits for, or ""
}

// Page is a slice of a list by key, newest first.
type Page struct {
	Limit  int
	Before string // only rows with an ID below it; "" starts at the newest
}

// RequestFilter narrows a list of Requests. Empty fields do not narrow.
type RequestFilter struct {
	Approver MemberID // those that wait for this Member, or that it answered
	Status   RequestStatus
	Bot      BotID
	Chat     ChatID
	Action   string
	Member   MemberID // of work for this Member, whoever decides it
	Decided  bool     // allowed or denied
	Known    bool     // not about a call whose outcome nobody knows
	// Target and Search narrow to one target, and to Requests whose target holds this
	// text or that one of Bots asked; both look only where another field led them.
	Target string
	Search string
	Bots   []BotID
}

// Names are what people call Bots and Connections.
type Names struct {
	Bots        map[BotID]string
	Connections map[ConnectionID]string
}

// GrantFilter narrows a list of Grants. Empty fields do not narrow.
type GrantFilter struct {
	Member  MemberID
	Bot     BotID
	Revoked bool // revoked ones alone; else those in force
}

// DueRequest is a Request whose time is up, with the call that waits for it.
type DueRequest struct {
	ID   RequestID
	Call CallID
}

// DueRow is an open row whose time has come: somebody must look at it.
type DueRow struct {
	Kind    TaskKind
	ID      string
	Version int64
	DueAt   time.Time
	Urgency Urgency
}

// Standing is how much is open, for metrics.
type Standing struct {
	RequestsPending int64
	OldestPending   time.Duration // age of the oldest pending Request
	TurnsOpen       map[TurnStatus]int64
	CallsUnknown    int64 // open calls whose outcome nobody knows
	Overdue         int64 // open rows whose due_at passed a minute ago
}
