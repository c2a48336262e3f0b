package program

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"time"
)

// ChildArgument is the first argument of a process that is to run Main and nothing
// else. It is no command for people.
const ChildArgument = "program-child"

// Exit codes of a child that ran nothing, or could not say what came of it. They are
// above those of the Go runtime, which a program that breaks the sandbox ends with.
const (
	exitRenounce = 70 + iota
	exitRequest
	exitReply
	exitAlone // nobody ended the child in time
)

// request is what a child reads: everything that one run depends on.
type request struct {
	Source  Source    `json:"source"`
	Answers []*Answer `json:"answers"`
	Earlier Trace     `json:"earlier"`
	Limits  Limits    `json:"limits"`
}

// Main is the whole life of a child: it gives up what it does not need, reads one
// request, runs it, writes one Outcome, and gives the exit code. A process that calls
// it must have done nothing before and do nothing after.
func Main(stdin io.Reader, stdout io.Writer) int {
	started := time.Now()
	if err := renounce(); err != nil {
		return exitRenounce
	}
	var r request
	if err := json.NewDecoder(stdin).Decode(&r); err != nil {
		return exitRequest
	}
	if err := limitProcessor(r.Limits.Time); err != nil {
		return exitRenounce
	}
	// The program's own values are not on Go's heap; copies of them pass through it.
	debug.SetMemoryLimit(4 * r.Limits.Memory)
	// The parent kills at the deadline itself. Ending a little earlier keeps what the
	// program wrote until then.
	outcome := execute(r, started.Add(r.Limits.Time-r.Limits.Time/10))
	encoder := json.NewEncoder(stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(outcome); err != nil {
		return exitReply
	}
	return 0
}

// execute runs a program in this process.
func execute(r request, deadline time.Time) Outcome {
	s, err := newSandbox(r, deadline)
	if err != nil {
		return Outcome{Status: StatusFailed, Message: fmt.Sprintf("The sandbox could not be made: %v.", err)}
	}
	defer s.close()
	return s.run()
}
