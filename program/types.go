package program

import (
	"encoding/json"
	"time"
)

// Source is a program as it is run each time. Seed and StartedAtMs are kept with it,
// so that Math.random and Date give the same values at each run.
type Source struct {
	Text        string `json:"text"`        // the body of an async function: it may await and return
	Seed        uint64 `json:"seed,string"` // of Math.random; a string in JSON, which holds 53 bits only
	StartedAtMs int64  `json:"startedAtMs"` // what Date.now gives, in milliseconds since the epoch
}

// Position is where a call stands in the program's own text. Line and Column count
// from 1; lines end at \n, columns count Unicode code points. Both are 0 when no code
// of the program made the call itself, as with promise.then(app.call).
//
// It helps a reader to find the call and decides nothing: a program that gives its
// functions names with line breaks can make it point elsewhere.
type Position struct {
	Index  int `json:"index"` // the number of the call, from 0
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Asked is one app.call(connection, tool, args, reason). Calls are numbered in the
// order in which the program makes them.
type Asked struct {
	Position   Position        `json:"position"`
	Connection string          `json:"connection"`
	Tool       string          `json:"tool"`
	Reason     string          `json:"reason"`
	Arguments  json.RawMessage `json:"arguments"` // always an object
}

// Answer is the saved result of one call.
type Answer struct {
	// OK says that the call was done. Else it was denied or failed, and the program
	// sees an Error that it can catch.
	OK bool `json:"ok"`
	// Text is the result, or why there is none. The program gets it as a string, also
	// when it is JSON.
	Text string `json:"text"`
}

// Trace is what a program has done so far. It is saved when a program waits, in the
// commit that saves its new calls, and given back at the next run.
type Trace struct {
	Calls []Asked `json:"calls"` // every call made so far, by number
	// Given are the numbers of the answered calls in the order in which the program
	// was given their answers. The next run repeats this order before it gives new
	// answers, since a program may go on differently in another.
	Given []int `json:"given"`
}

// Status says how a run came out.
type Status string

const (
	// StatusFinished is a program that ended, with all its calls answered.
	StatusFinished Status = "finished"
	// StatusWaiting is a program that has calls without an answer. Run it again when
	// one or more of them are answered, in any order.
	StatusWaiting Status = "waiting"
	// StatusFailed is a program that does not compile, threw, or waits for nothing.
	StatusFailed Status = "failed"
	// StatusDiverged is a program that did not do again what it did before.
	StatusDiverged Status = "diverged"
	// StatusTimedOut is a program that was still running at its deadline.
	StatusTimedOut Status = "timed_out"
	// StatusOutOfMemory is a program that needed more memory than it may have.
	StatusOutOfMemory Status = "out_of_memory"
	// StatusTooManyCalls is a program that made more calls than it may.
	StatusTooManyCalls Status = "too_many_calls"
	// StatusTooMuchOutput is a program whose result is longer than it may be.
	StatusTooMuchOutput Status = "too_much_output"
)

// Statuses lists every Status, for tables that must cover all of them.
func Statuses() []Status {
	return []Status{StatusFinished, StatusWaiting, StatusFailed, StatusDiverged,
		StatusTimedOut, StatusOutOfMemory, StatusTooManyCalls, StatusTooMuchOutput}
}

// Outcome is what one run gave. Only a waiting program hands out new calls: whatever
// else a run ends with, the calls that it made in this run alone were never made.
// A program can end otherwise while calls of earlier runs are still open; nobody
// waits for those any more.
type Outcome struct {
	Status  Status          `json:"status"`
	Result  json.RawMessage `json:"result,omitempty"`  // of a finished program: what it returned; null for nothing
	Message string          `json:"message,omitempty"` // for the model: why the program neither finished nor waits
	Output  string          `json:"output,omitempty"`  // what console.log wrote, from the program's start
	Cut     bool            `json:"cut,omitempty"`     // whether Output was longer
	Trace   Trace           `json:"trace"`
}

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
	orDefault(&l.Text, 256<<10)
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
