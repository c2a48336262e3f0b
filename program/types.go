package program

import (
	"time"

	"openbot/domain"
)

// What goes into a run and comes out of it is kept by the engine, so its types are
// those of the domain.
type (
	// Source is a program as it is run each time.
	Source = domain.ProgramSource
	// Position is where a call stands in the program's own text.
	Position = domain.ProgramPosition
	// Asked is one app.call(connection, tool, args, reason).
	Asked = domain.ProgramAsked
	// Answer is the saved result of one call.
	Answer = domain.ProgramAnswer
	// Trace is what a program has done so far.
	Trace = domain.ProgramTrace
	// Status says how a run came out.
	Status = domain.ProgramStatus
	// Outcome is what one run gave.
	Outcome = domain.ProgramOutcome
)

// How a run can come out.
const (
	StatusFinished      = domain.ProgramFinished
	StatusWaiting       = domain.ProgramWaiting
	StatusFailed        = domain.ProgramFailed
	StatusDiverged      = domain.ProgramDiverged
	StatusTimedOut      = domain.ProgramTimedOut
	StatusOutOfMemory   = domain.ProgramOutOfMemory
	StatusTooManyCalls  = domain.ProgramTooManyCalls
	StatusTooMuchOutput = domain.ProgramTooMuchOutput
)

// Statuses lists every Status, for tables that must cover all of them.
func Statuses() []Status { return domain.ProgramStatuses() }

// maxTime is the longest Limits.Time: a child that nobody ends does so itself after a
// minute.
const maxTime = 50 * time.Second

// Limits bound one run. A zero field means its default.
type Limits struct {
	Time   time.Duration `json:"time"`   // 5 s of wall time, the start of the child included; 50 s at most
	Memory int64         `json:"memory"` // 64 MiB, in bytes, of the program's own values
	Calls  int           `json:"calls"`  // 200, in all runs of a program together
	Output int           `json:"output"` // 64 KiB, in bytes: of console.log, and of the result
	Text   int           `json:"text"`   // 256 KiB, in bytes, of the program itself
	Value  int           `json:"value"`  // 1 MiB, in bytes, of what one call or one answer carries; all calls together 16 times that
}

func (l Limits) withDefaults() Limits {
	orDefault(&l.Time, 5*time.Second)
	l.Time = min(l.Time, maxTime)
	orDefault(&l.Memory, 64<<20)
	orDefault(&l.Calls, 200)
	orDefault(&l.Output, 64<<10)
	orDefault(&l.Text, domain.MaxProgram)
	orDefault(&l.Value, 1<<20)
	return l
}

// asked is how much all calls of a program may carry together, in bytes.
func (l Limits) asked() int { return 16 * l.Value }

// reply is the longest answer of a child, in bytes: all that a program can hand out,
// every character escaped.
func (l Limits) reply() int { return 8*(l.asked()+l.Output) + 1<<20 }

func orDefault[T ~int | ~int64](limit *T, value T) {
	if *limit <= 0 {
		*limit = value
	}
}
