package domain

import "time"

// DelegationStatus is where a piece of work stands.
type DelegationStatus string

const (
	// DelegationAuthorizing waits for the answer whether the work may be given. Its work
	// call, with a Request or the judge behind it, moves it. No process holds it.
	DelegationAuthorizing DelegationStatus = "authorizing"
	// DelegationQueued has a Turn in its task Chat that took no step yet. The Turn moves
	// it, and the end of its time at due_at.
	DelegationQueued DelegationStatus = "queued"
	// DelegationRunning is worked on, or waits for work that it gave away, for Requests,
	// reminders or input. Each of those moves it, and the end of its time at due_at.
	DelegationRunning DelegationStatus = "running"
	// DelegationPaused reached a limit. Its work call, with a Request or the judge behind
	// it, moves it; a Request that nobody answers ends it.
	DelegationPaused DelegationStatus = "paused"
	// DelegationCompleted ended with an answer. End state.
	DelegationCompleted DelegationStatus = "completed"
	// DelegationFailed ended with an error, or was not allowed. End state.
	DelegationFailed DelegationStatus = "failed"
	// DelegationCancelled was stopped. End state.
	DelegationCancelled DelegationStatus = "cancelled"
)

// DelegationStatuses lists every status, for tests over the table.
func DelegationStatuses() []DelegationStatus {
	return []DelegationStatus{DelegationAuthorizing, DelegationQueued, DelegationRunning, DelegationPaused,
		DelegationCompleted, DelegationFailed, DelegationCancelled}
}

// Ended reports whether the status is an end state.
func (s DelegationStatus) Ended() bool {
	return s == DelegationCompleted || s == DelegationFailed || s == DelegationCancelled
}

// Delegation events, as the table names them.
const (
	DelegationEventBegun     = "Begun"
	DelegationEventRefused   = "Refused"
	DelegationEventStepped   = "Stepped"
	DelegationEventReached   = "Reached"
	DelegationEventPostponed = "Postponed"
	DelegationEventContinued = "Continued"
	DelegationEventStopping  = "Stopping"
	DelegationEventFinished  = "Finished"
)

// DelegationTransitions is the law of a piece of work.
var DelegationTransitions = delegationTransitions()

func delegationTransitions() []Transition {
	authorizing, queued, running, paused := string(DelegationAuthorizing), string(DelegationQueued), string(DelegationRunning), string(DelegationPaused)
	completed, failed, cancelled := string(DelegationCompleted), string(DelegationFailed), string(DelegationCancelled)
	table := []Transition{
		{authorizing, DelegationEventBegun, []string{queued}},
		{authorizing, DelegationEventRefused, []string{failed}},
		{authorizing, DelegationEventStopping, []string{authorizing}},
		{authorizing, DelegationEventFinished, []string{cancelled}},
		{paused, DelegationEventStepped, []string{paused}},
		{paused, DelegationEventContinued, []string{running}},
		{paused, DelegationEventStopping, []string{paused}},
		{paused, DelegationEventFinished, []string{cancelled}},
	}
	for _, open := range []string{queued, running} {
		table = append(table,
			Transition{open, DelegationEventStepped, []string{running}},
			Transition{open, DelegationEventReached, []string{paused}},
			Transition{open, DelegationEventPostponed, []string{open}},
			Transition{open, DelegationEventContinued, []string{open}},
			Transition{open, DelegationEventStopping, []string{open}},
			Transition{open, DelegationEventFinished, []string{completed, failed, cancelled}})
	}
	return table
}

// Kinds of limits.
const (
	LimitTime   = "time"
	LimitSteps  = "steps"
	LimitBudget = "budget"
)

// Limits bound one piece of work. Steps and BudgetMicros are 0 where there is none.
type Limits struct {
	TimeMs       int64 `json:"timeMs"`
	Steps        int64 `json:"steps,omitempty"`
	BudgetMicros int64 `json:"budgetMicros,omitempty"` // micro-USD
}

// Bounds of limits and of a task.
const (
	MinWorkTimeMs = 1000
	MaxWorkTimeMs = 30 * 24 * 3600 * 1000
	MaxWorkSteps  = 1_000_000_000
	MaxWorkBudget = 1_000_000_000_000_000 // micro-USD
	MaxTask       = 256 * 1024            // bytes
)

// Delegation is a piece of work given to a Bot. It is written by commits of its task
// Chat, but for what comes from above: a cancel. Its cost is counted up from below
// without a version.
type Delegation struct {
	ID           DelegationID
	Organization OrganizationID
	Member       MemberID
	Execution    ExecutionID
	// Above is the work in whose task Chat it was given; "" for work of a plain Chat.
	Above   DelegationID
	Parent  WorkParent
	Trigger TriggerID // what gave it, or ""
	Giver   BotID     // the Bot that gave it; "" for a trigger
	Bot     BotID
	Chat    ChatID // the task Chat
	Status  DelegationStatus
	Task    string
	Reason  string // the giver's words
	Result  string // the last answer, the error, or why it stopped
	Taint   Taint  // of the task Chat when the work ended: what the result rests on
	Limits  Limits
	// Authority is what stands behind the work: of what gave it, and of all input since.
	Authority []Authority
	Steps     int64 // model steps of its task Chat since the start
	// CostNanos is the cost of its model steps and of all work below it, in nano-USD.
	CostNanos int64
	StartedAt *time.Time
	Clock     WorkClock
	Pause     *WorkPause
	// Call is the open work call that decides about its start or its pause, or "".
	Call CallID
	// Gate moves when the work is paused, goes on, is stopped or ends. A commit below
	// holds the gates that it saw.
	Gate int64
	// StoppingAt is when somebody stopped it; it ends when nothing of it is out any more.
	StoppingAt *time.Time
	StopWhy    string
	Notice     NoticeKind // how the giving Chat hears of its end
	FirstEvent int64      // the sequence before its first event in the task Chat
	LastEvent  int64      // that of its last event; 0 while it is open
	// NoticeDueAt is set until the giving Chat was told of the end.
	NoticeDueAt *time.Time
	// ClosingDueAt is set while it is being stopped with all work below it.
	ClosingDueAt *time.Time
	// ResumeDueAt is set until what was parked by its pause was set free.
	ResumeDueAt *time.Time
	DueAt       *time.Time   // when its time limit must be looked at
	ParkedBy    DelegationID // the paused work above it that holds that look, or ""
	EndedAt     *time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Version     int64
}

// WorkParent is where a piece of work was given.
type WorkParent struct {
	Chat ChatID
	Turn TurnID // "" for a trigger and a person
	Call CallID // "" for a trigger and a person
}

// WorkClock measures running time, in microseconds. A piece's clock stands while it is
// paused and runs by the clock of the work above it otherwise, so that one pause
// stands all clocks below without a write to them.
type WorkClock struct {
	Start       int64 `json:"start"`       // its clock when it began
	Window      int64 `json:"window"`      // its clock when its limits last started
	WindowSteps int64 `json:"windowSteps"` // Steps then
	WindowCost  int64 `json:"windowCost"`  // CostNanos then
	Paused      int64 `json:"paused"`      // how long it was paused, by the clock above it
	End         int64 `json:"end"`         // its clock when it ended
}

// WorkPause is a pause of work at its own limit.
type WorkPause struct {
	Limit string `json:"limit"`
	Clock int64  `json:"clock"` // the clock above it when it paused, microseconds
	AtMs  int64  `json:"at"`    // milliseconds since the epoch
}

// NoticeKind says how a giving Chat hears of the end of work.
type NoticeKind string

const (
	// NoticeInput is a notice in the inbox, which starts a Turn of an idle Chat.
	NoticeInput NoticeKind = ""
	// NoticeHistory only adds to the history: a person stopped the work from that Chat.
	NoticeHistory NoticeKind = "history"
	// NoticeNone says nothing: the Bot of that Chat stopped the work itself, or the work
	// above it was stopped.
	NoticeNone NoticeKind = "none"
)

// Open reports whether the work has not ended.
func (g Delegation) Open() bool { return !g.Status.Ended() }

// Stopping reports whether it was stopped and is not released yet.
func (g Delegation) Stopping() bool { return g.StoppingAt != nil && g.Open() }

// ExecutionStatus is the state of the run: pending, queued, running, cancelling,
// completed, failed or cancelled. stopping says that work above was stopped.
func (g Delegation) ExecutionStatus(stopping bool) string {
	switch {
	case !g.Open():
		return string(g.Status)
	case stopping || g.StoppingAt != nil:
		return "cancelling"
	case g.Status == DelegationAuthorizing:
		return "pending"
	case g.Status == DelegationQueued:
		return "queued"
	}
	return "running"
}
