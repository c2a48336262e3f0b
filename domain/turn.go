package domain

import (
	"slices"
	"time"
)

// TurnStatus is where a Turn stands.
type TurnStatus string

const (
	// TurnQueued has input and no committed step. A worker takes its first step, rung
	// by the commit that made it and by the sweep at due_at; a process that dies here
	// loses nothing but the ring.
	TurnQueued TurnStatus = "Queued"
	// TurnRunning takes steps, or has calls that can run. With every call of its step
	// settled, a worker takes the next step (ring, sweep at due_at); otherwise its
	// calls move it. A model call that dies with its process is made again, since its
	// step was never committed.
	TurnRunning TurnStatus = "Running"
	// TurnWaiting has at least one call that waits for a Request, and nothing else can
	// run. Its Requests move it: each has a due_at of its own. Or its work is paused: the
	// end of the pause moves it. No process holds it.
	TurnWaiting TurnStatus = "Waiting"
	// TurnCompleted ended with an answer. End state.
	TurnCompleted TurnStatus = "Completed"
	// TurnFailed ended with an error that it shows. End state.
	TurnFailed TurnStatus = "Failed"
	// TurnInterrupted was stopped by a person. End state.
	TurnInterrupted TurnStatus = "Interrupted"
)

// Turn events, as the table names them.
const (
	TurnStepWithCalls = "StepWithCalls"
	TurnStepWithText  = "StepWithText"
	TurnModelFailed   = "ModelFailed"
	TurnCallsMoved    = "CallsMoved"
	TurnStopped       = "Stopped"
	TurnConcluded     = "Concluded"
	TurnParked        = "Parked"
	TurnHeld          = "Held"
)

// TurnTransitions is the law of a Turn.
var TurnTransitions = turnTransitions()

func turnTransitions() []Transition {
	queued, running, waiting := string(TurnQueued), string(TurnRunning), string(TurnWaiting)
	completed, failed, interrupted := string(TurnCompleted), string(TurnFailed), string(TurnInterrupted)
	var table []Transition
	for _, from := range []string{queued, running} {
		table = append(table,
			Transition{from, TurnStepWithCalls, []string{running, waiting, failed}},
			Transition{from, TurnStepWithText, []string{running, completed}},
			Transition{from, TurnModelFailed, []string{running, failed}},
			Transition{from, TurnParked, []string{waiting}},
			Transition{from, TurnHeld, []string{waiting}},
			Transition{from, TurnStopped, []string{interrupted}})
	}
	return append(table,
		Transition{running, TurnConcluded, []string{completed}},
		Transition{running, TurnCallsMoved, []string{running, waiting}},
		Transition{waiting, TurnCallsMoved, []string{running, waiting}},
		Transition{waiting, TurnStopped, []string{interrupted}})
}

// TurnStatuses lists every status, for tests over the table.
func TurnStatuses() []TurnStatus {
	return []TurnStatus{TurnQueued, TurnRunning, TurnWaiting, TurnCompleted, TurnFailed, TurnInterrupted}
}

// Ended reports whether the status is an end state.
func (s TurnStatus) Ended() bool {
	return s == TurnCompleted || s == TurnFailed || s == TurnInterrupted
}

// ResponseStatus is the same state in the words of the responses API.
func (s TurnStatus) ResponseStatus() string {
	switch s {
	case TurnQueued, TurnRunning:
		return "in_progress"
	case TurnWaiting:
		return "incomplete"
	case TurnCompleted:
		return "completed"
	case TurnFailed:
		return "failed"
	case TurnInterrupted:
		return "cancelled"
	}
	return "failed"
}

// ChatStatus is what the Chat of a Turn in this state shows.
func (s TurnStatus) ChatStatus() ChatStatus {
	switch {
	case s.Ended():
		return ChatIdle
	case s == TurnWaiting:
		return ChatWaiting
	default:
		return ChatRunning
	}
}

// Turn is one run of a Bot's loop in a Chat.
type Turn struct {
	ID           TurnID
	Organization OrganizationID
	Chat         ChatID
	Bot          BotID
	Member       MemberID // "" in a Channel, when the author is no Member
	Author       string   // in a Channel: whose input it takes, see Input.Author
	Authority    []Authority
	Status       TurnStatus
	Steps        int // committed model steps
	OpenCalls    int // calls of the newest step that have no result yet
	Tries        int // failed tries of the model step that comes next
	Answer       string
	Error        string
	InputTokens  int64
	OutputTokens int64
	CostNanos    int64
	Held         *HeldReply   // of a model step that came back while the work was paused
	ParkedBy     DelegationID // the paused work that holds the Turn, or ""
	DueAt        *time.Time   // nil while its calls or Requests move it, or while it is parked, and at its end
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// Limits of a Turn.
const (
	// MaxModelTries is how often a model step is tried when it fails for a while.
	MaxModelTries = 5
	// MaxTurnSteps ends a Turn whose model never stops asking for calls.
	MaxTurnSteps = 1000
	// MaxStepCalls is how many calls one step may ask for.
	MaxStepCalls = 256
	// RunnableGrace is how long a runnable row may lie before the sweep rings for it.
	RunnableGrace = 4 * time.Second
)

// NotBefore gives the time before which the next step must not be tried: after a failed
// try, once its back-off is over; nil when it may be tried at once. The row is due a grace
// later, so that the timer of the try and the sweep do not both pay for a model call.
func (t Turn) NotBefore() *time.Time {
	if t.Tries == 0 || t.DueAt == nil {
		return nil
	}
	return ptr(t.DueAt.Add(-RunnableGrace))
}

// ModelRetryAfter is the back-off before try number tries+1 of a model step.
func ModelRetryAfter(tries int) time.Duration {
	return min(time.Second<<min(max(tries-1, 0), 6), 30*time.Second)
}

// StepWithCalls is a committed step that asked for calls. Runnable counts those
// that can go on without a person, Settled those that have a result already.
type StepWithCalls struct {
	At       time.Time
	Calls    int
	Runnable int
	Settled  int
	Usage    ModelUsage
	Cost     int64
}

// StepWithText is a committed step that asked for no calls. With more input in
// the inbox the Turn goes on; else it ends.
type StepWithText struct {
	At        time.Time
	Text      string
	MoreInput bool
	Usage     ModelUsage
	Cost      int64
}

// ModelFailed is a model step that gave no reply, or one that cannot be taken.
type ModelFailed struct {
	At        time.Time
	Temporary bool
	Message   string
	Usage     ModelUsage // of a reply that cannot be taken
	Cost      int64
}

// CallsMoved says how the calls of the newest step stand now.
type CallsMoved struct {
	At       time.Time
	Open     int // without a result
	Runnable int // of those, the ones that move without a decider
}

// HeldReply is what a model answered while its work was paused. It is paid for, and
// becomes the next step when the work goes on.
type HeldReply struct {
	Model string      `json:"model"`
	Text  string      `json:"text"`
	Calls []ModelCall `json:"calls,omitempty"`
	Read  []InputID   `json:"read,omitempty"` // the input of the inbox that the model had read
}

// Parked is a Turn that may not go on, because its work is paused.
type Parked struct {
	At time.Time
	By DelegationID
}

// ReplyHeld is the reply to a model step that may not be taken yet, because its work was
// paused meanwhile.
type ReplyHeld struct {
	At    time.Time
	By    DelegationID
	Reply HeldReply
	Usage ModelUsage
	Cost  int64
}

// Stopped is an interrupt or a cancel.
type Stopped struct{ At time.Time }

// Concluded is the decision of a review: nothing is left to do in its Turn.
type Concluded struct {
	At     time.Time
	Answer string
}

// TurnEvent is one of the events above.
type TurnEvent interface{ turnEvent() string }

func (StepWithCalls) turnEvent() string { return TurnStepWithCalls }
func (StepWithText) turnEvent() string  { return TurnStepWithText }
func (ModelFailed) turnEvent() string   { return TurnModelFailed }
func (CallsMoved) turnEvent() string    { return TurnCallsMoved }
func (Stopped) turnEvent() string       { return TurnStopped }
func (Concluded) turnEvent() string     { return TurnConcluded }
func (Parked) turnEvent() string        { return TurnParked }
func (ReplyHeld) turnEvent() string     { return TurnHeld }

// DecideTurn moves a Turn. It refuses with precondition what the table does not
// list, and a step while calls of the last one are open.
func DecideTurn(t Turn, ev TurnEvent) (Turn, error) {
	if !legal(TurnTransitions, string(t.Status), ev.turnEvent()) {
		return t, Errorf(CodePrecondition, "TurnConflict", "The Turn is %s; it cannot take this.", t.Status)
	}
	next := t
	next.Authority = slices.Clone(t.Authority)
	switch ev := ev.(type) {
	case StepWithCalls:
		if t.OpenCalls > 0 {
			return t, Errorf(CodePrecondition, "TurnConflict", "Calls of the last step have no result yet.")
		}
		next.countStep(ev.Usage, ev.Cost)
		if next.Steps >= MaxTurnSteps {
			next.end(TurnFailed)
			next.Error = "The Turn took 1000 steps without an end and was stopped."
			break
		}
		next.follow(ev.Calls-ev.Settled, ev.Runnable, ev.At)
	case StepWithText:
		if t.OpenCalls > 0 {
			return t, Errorf(CodePrecondition, "TurnConflict", "Calls of the last step have no result yet.")
		}
		next.countStep(ev.Usage, ev.Cost)
		next.Answer = ev.Text
		if ev.MoreInput {
			next.follow(0, 0, ev.At)
		} else {
			next.end(TurnCompleted)
		}
	case ModelFailed:
		if t.OpenCalls > 0 {
			return t, Errorf(CodePrecondition, "TurnConflict", "Calls of the last step have no result yet.")
		}
		next.Tries++
		next.countUsage(ev.Usage, ev.Cost)
		if ev.Temporary && next.Tries < MaxModelTries {
			next.Status = TurnRunning
			next.DueAt = ptr(ev.At.Add(ModelRetryAfter(next.Tries) + RunnableGrace))
			break
		}
		next.end(TurnFailed)
		next.Error = ev.Message
	case CallsMoved:
		if t.ParkedBy != "" {
			return t, Errorf(CodePrecondition, "TurnConflict", "The Turn is parked and has no open calls.")
		}
		next.follow(ev.Open, ev.Runnable, ev.At)
	case Stopped:
		next.end(TurnInterrupted)
	case Concluded:
		next.Answer = ev.Answer
		next.end(TurnCompleted)
	case Parked:
		if t.OpenCalls > 0 || ev.By == "" {
			return t, Errorf(CodePrecondition, "TurnConflict", "The Turn has nothing to park.")
		}
		next.park(ev.By)
	case ReplyHeld:
		if t.OpenCalls > 0 || t.Held != nil || ev.By == "" {
			return t, Errorf(CodePrecondition, "TurnConflict", "The Turn has no step to hold.")
		}
		next.countUsage(ev.Usage, ev.Cost)
		next.Held = ptr(ev.Reply)
		next.park(ev.By)
	default:
		return t, Errorf(CodeInternal, "TurnConflict", "An event that no Turn knows.")
	}
	next.UpdatedAt = at(ev)
	return next, nil
}

// follow sets the status from how the calls of the newest step stand.
func (t *Turn) follow(open, runnable int, now time.Time) {
	t.OpenCalls = open
	switch {
	case open == 0:
		t.Status = TurnRunning
		t.DueAt = ptr(now.Add(RunnableGrace))
	case runnable > 0:
		t.Status, t.DueAt = TurnRunning, nil
	default:
		t.Status, t.DueAt = TurnWaiting, nil
	}
}

func (t *Turn) park(by DelegationID) {
	t.Status, t.DueAt, t.ParkedBy = TurnWaiting, nil, by
}

func (t *Turn) countStep(usage ModelUsage, cost int64) {
	t.Steps++
	t.Tries, t.Held = 0, nil
	t.countUsage(usage, cost)
}

func (t *Turn) countUsage(usage ModelUsage, cost int64) {
	t.InputTokens = sum(t.InputTokens, usage.InputTokens)
	t.OutputTokens = sum(t.OutputTokens, usage.OutputTokens)
	t.CostNanos = sum(t.CostNanos, cost)
}

func (t *Turn) end(status TurnStatus) {
	t.Status, t.DueAt, t.OpenCalls = status, nil, 0
	t.Held, t.ParkedBy = nil, ""
}

func at(ev TurnEvent) time.Time {
	switch ev := ev.(type) {
	case StepWithCalls:
		return ev.At
	case StepWithText:
		return ev.At
	case ModelFailed:
		return ev.At
	case CallsMoved:
		return ev.At
	case Stopped:
		return ev.At
	case Concluded:
		return ev.At
	case Parked:
		return ev.At
	case ReplyHeld:
		return ev.At
	}
	return time.Time{}
}

// StepDue reports whether the Turn's next move is a model step.
func (t Turn) StepDue() bool {
	return (t.Status == TurnQueued || t.Status == TurnRunning) && t.OpenCalls == 0
}

func ptr[T any](v T) *T { return &v }
