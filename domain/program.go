package domain

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ProgramSource is a program as it is run each time. Seed and StartedAtMs are kept
// with it, so that Math.random and Date give the same values at each run.
type ProgramSource struct {
	Text        string `json:"text"`        // the body of an async function: it may await and return
	Seed        uint64 `json:"seed,string"` // of Math.random; a string in JSON, which holds 53 bits only
	StartedAtMs int64  `json:"startedAtMs"` // what Date.now gives, in milliseconds since the epoch
}

// ProgramPosition is where a call stands in the program's own text. Line and Column
// count from 1; lines end at \n, columns count Unicode code points. Both are 0 when no
// code of the program made the call itself, as with promise.then(app.call).
//
// It helps a reader to find the call and decides nothing: a program that gives its
// functions names with line breaks can make it point elsewhere.
type ProgramPosition struct {
	Index  int `json:"index"` // the number of the call, from 0
	Line   int `json:"line"`
	Column int `json:"column"`
}

// ProgramAsked is one app.call(connection, tool, args, reason). Calls are numbered in
// the order in which the program makes them.
type ProgramAsked struct {
	Position   ProgramPosition `json:"position"`
	Connection string          `json:"connection"`
	Tool       string          `json:"tool"`
	Reason     string          `json:"reason"`
	Arguments  json.RawMessage `json:"arguments"` // always an object
}

// ProgramAnswer is the saved result of one call.
type ProgramAnswer struct {
	// OK says that the call was done. Else it was denied or failed, and the program
	// sees an Error that it can catch.
	OK bool `json:"ok"`
	// Text is the result, or why there is none. The program gets it as a string, also
	// when it is JSON.
	Text string `json:"text"`
}

// ProgramTrace is what a program has done so far. It is saved when a program waits, in
// the commit that saves its new calls, and given back at the next run.
type ProgramTrace struct {
	Calls []ProgramAsked `json:"calls"` // every call made so far, by number
	// Given are the numbers of the answered calls in the order in which the program
	// was given their answers. The next run repeats this order before it gives new
	// answers, since a program may go on differently in another.
	Given []int `json:"given"`
}

// ProgramStatus says how a run came out.
type ProgramStatus string

const (
	// ProgramFinished is a program that ended, with all its calls answered.
	ProgramFinished ProgramStatus = "finished"
	// ProgramWaiting is a program that has calls without an answer. Run it again when
	// one or more of them are answered, in any order.
	ProgramWaiting ProgramStatus = "waiting"
	// ProgramFailed is a program that does not compile, threw, or waits for nothing.
	ProgramFailed ProgramStatus = "failed"
	// ProgramDiverged is a program that did not do again what it did before.
	ProgramDiverged ProgramStatus = "diverged"
	// ProgramTimedOut is a program that was still running at its deadline.
	ProgramTimedOut ProgramStatus = "timed_out"
	// ProgramOutOfMemory is a program that needed more memory than it may have.
	ProgramOutOfMemory ProgramStatus = "out_of_memory"
	// ProgramTooManyCalls is a program that made more calls than it may.
	ProgramTooManyCalls ProgramStatus = "too_many_calls"
	// ProgramTooMuchOutput is a program whose result is longer than it may be.
	ProgramTooMuchOutput ProgramStatus = "too_much_output"
)

// ProgramStatuses lists every status, for tables that must cover all of them.
func ProgramStatuses() []ProgramStatus {
	return []ProgramStatus{ProgramFinished, ProgramWaiting, ProgramFailed, ProgramDiverged,
		ProgramTimedOut, ProgramOutOfMemory, ProgramTooManyCalls, ProgramTooMuchOutput}
}

// ProgramOutcome is what one run gave. Only a waiting program hands out new calls:
// whatever else a run ends with, the calls that it made in this run alone were never
// made. A program can end otherwise while calls of earlier runs are still open; nobody
// waits for those any more.
type ProgramOutcome struct {
	Status  ProgramStatus   `json:"status"`
	Result  json.RawMessage `json:"result,omitempty"`  // of a finished program: what it returned; null for nothing
	Message string          `json:"message,omitempty"` // for the model: why the program neither finished nor waits
	Output  string          `json:"output,omitempty"`  // what console.log wrote, from the program's start
	Cut     bool            `json:"cut,omitempty"`     // whether Output was longer
	Trace   ProgramTrace    `json:"trace"`
}

// Limits of programs.
const (
	// MaxProgram is the longest program, in bytes.
	MaxProgram = 256 << 10
	// MaxProgramCalls is how many calls one program may make. The place of a call in its
	// step has room for this many below each program.
	MaxProgramCalls = 1000
	// MaxProgramTries is how often a run may begin without coming to an end: its worker
	// died, or no run was possible. After that the program has failed.
	MaxProgramTries = 5
)

// ProgramState is what is kept of a program between its runs.
type ProgramState struct {
	Seed        uint64       `json:"seed,string"`
	StartedAtMs int64        `json:"startedAt"` // milliseconds since the epoch
	Tries       int          `json:"tries"`     // runs that began since one last came to an end
	Trace       ProgramTrace `json:"trace"`     // of the last run that waited; empty after the end
}

// SavedCode shows where a call of a program comes from: the whole program and the place of
// the call in it.
type SavedCode struct {
	Program string `json:"program"`
	ProgramPosition
}

// ProgramPlace gives the place in its step of a program's call: below the program, and
// apart from every other call.
func ProgramPlace(program, index int) int { return MaxProgramCalls*(program+1) + index }

// ProgramText reads the program from the arguments of openbot_run_code; nothing when
// they hold none.
func ProgramText(arguments json.RawMessage) string {
	var in struct{ Program string }
	if json.Unmarshal(arguments, &in) != nil {
		return ""
	}
	return in.Program
}

// ShownCode shows a call of a program as its decider sees it; nil when no program made it.
func ShownCode(c Call, program *Call) *SavedCode {
	if c.Code == nil || program == nil {
		return nil
	}
	return &SavedCode{Program: ProgramText(program.Arguments), ProgramPosition: *c.Code}
}

// TextProgram is what a model reads about a program that came to an end. calls are
// those that it made.
func TextProgram(o ProgramOutcome, calls []Call) string {
	var text strings.Builder
	if o.Status == ProgramFinished {
		text.WriteString("The program ended")
		if result := string(o.Result); result == "" || result == "null" {
			text.WriteString(" and returned nothing.")
		} else {
			text.WriteString(" and returned: " + result)
		}
	} else {
		text.WriteString(textProgramFailed(o.Message))
		text.WriteString(textProgramCalls(calls))
	}
	if o.Output != "" {
		text.WriteString("\nIt printed:\n" + strings.TrimSuffix(o.Output, "\n"))
		if o.Cut {
			text.WriteString("\n[The rest of what it printed was cut.]")
		}
	}
	return text.String()
}

func textProgramFailed(why string) string {
	if why == "" {
		return "The program failed."
	}
	return why
}

// textProgramCalls says what became of the calls of a program that did not end well:
// writing the program anew would make them again.
func textProgramCalls(calls []Call) string {
	done, open, denied := 0, 0, 0
	for _, c := range calls {
		switch c.Status {
		case CallSucceeded:
			done++
		case CallSending, CallUnknown:
			open++
		default:
			denied++
		}
	}
	if len(calls) == 0 {
		return "\nIt had made no call."
	}
	return fmt.Sprintf("\nOf the calls that it had made, %d ran and their effects stay, %d may have run, and %d failed or did not run.", done, open, denied)
}

// TextProgramStuck is for a program whose runs never came to an end.
func TextProgramStuck(calls []Call) string {
	return fmt.Sprintf("The program was given up: it was run %d times and no run came to an end.", MaxProgramTries) + textProgramCalls(calls)
}

// TextProgramRefused is for a program that lost its rights while it waited. why says
// what its call reads.
func TextProgramRefused(why string, calls []Call) string {
	if len(calls) == 0 {
		return why
	}
	return "The program was stopped: it may not go on." + textProgramCalls(calls)
}
