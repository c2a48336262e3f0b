package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	"openbot/domain"
)

// RunOptions say how a Runner runs programs. A zero field means its default.
type RunOptions struct {
	Executable string // the binary whose child runs Main; default this one
	Children   int    // how many children may run at once; default the number of cores
	Limits     Limits
}

// Runner runs programs in child processes. It is safe for concurrent use.
type Runner struct {
	executable string
	limits     Limits
	free       chan struct{}
}

// NewRunner makes a Runner. It gives an internal error when the binary cannot be
// found.
func NewRunner(options RunOptions) (*Runner, error) {
	r := &Runner{executable: options.Executable, limits: options.Limits.withDefaults()}
	if r.executable == "" {
		var err error
		if r.executable, err = ownExecutable(); err != nil {
			return nil, domain.Wrap(domain.CodeInternal, "ProgramUnavailable", "Programs cannot be run: the server's own binary was not found.", err)
		}
	}
	if options.Children <= 0 {
		options.Children = runtime.GOMAXPROCS(0)
	}
	r.free = make(chan struct{}, options.Children)
	return r, nil
}

// Run runs a program once, from its start. answers are those to its calls, by number;
// nil, or none at the end, where there is no answer yet. earlier is the Trace of the
// last run that waited, and empty at the first.
//
// Whatever the program does is an Outcome. An error says that it was not run to its
// end for another reason: internal when earlier and answers do not fit together,
// unavailable when no child could be started or ctx ended, with the cause wrapped.
// Run waits while too many children run.
func (r *Runner) Run(ctx context.Context, source Source, answers []*Answer, earlier Trace) (Outcome, error) {
	if len(source.Text) > r.limits.Text {
		return Outcome{Status: StatusFailed, Trace: earlier,
			Message: fmt.Sprintf("The program is longer than %s. Write a shorter one.", size(r.limits.Text))}, nil
	}
	if err := fits(answers, earlier); err != nil {
		return Outcome{}, err
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request{Source: source, Answers: answers, Earlier: earlier, Limits: r.limits}); err != nil {
		return Outcome{}, domain.Wrap(domain.CodeInternal, "ProgramUnavailable", "What is saved of the program cannot be read.", err)
	}
	select {
	case r.free <- struct{}{}:
		defer func() { <-r.free }()
	case <-ctx.Done():
		return Outcome{}, unavailable("The program was not run.", ctx.Err())
	}
	return r.child(ctx, body.Bytes(), earlier)
}

// fits checks what the caller has saved: an answer that was given before must still
// be there, and none can be there for a call that was never made.
func fits(answers []*Answer, earlier Trace) error {
	seen := make(map[int]bool, len(earlier.Given))
	for _, index := range earlier.Given {
		if index < 0 || index >= len(earlier.Calls) || index >= len(answers) || answers[index] == nil || seen[index] {
			return domain.Wrap(domain.CodeInternal, "ProgramUnavailable", "What is saved of the program does not fit together.",
				fmt.Errorf("the answer to call %d was given before and is missing or twice there", index))
		}
		seen[index] = true
	}
	for index, answer := range answers {
		if answer != nil && index >= len(earlier.Calls) {
			return domain.Wrap(domain.CodeInternal, "ProgramUnavailable", "What is saved of the program does not fit together.",
				fmt.Errorf("there is an answer to call %d, which was not made", index))
		}
	}
	return nil
}

// outcome turns the end of a child into an Outcome. A child that broke is the
// program's doing: run again it would break again.
func (r *Runner) outcome(ctx, timed context.Context, ended error, reply *bounded, complaint *bounded, earlier Trace) (Outcome, error) {
	var outcome Outcome
	switch {
	case ended == nil && !reply.over && json.Unmarshal(reply.Bytes(), &outcome) == nil && outcome.Status != "":
		return outcome, nil
	case ctx.Err() != nil:
		return Outcome{}, unavailable("The program was stopped before its end.", ctx.Err())
	case timed.Err() != nil:
		return Outcome{Status: StatusTimedOut, Trace: earlier,
			Message: fmt.Sprintf("The program was stopped: it had not ended after %v. Do less in one program, and check its loops.", r.limits.Time)}, nil
	case ended == nil:
		return Outcome{}, unavailable("The program's answer cannot be read.", errors.New("the child is of another version or wrote too much"))
	case killed(ended), bytes.Contains(complaint.Bytes(), []byte("out of memory")), bytes.Contains(complaint.Bytes(), []byte("stack exceeds")):
		return Outcome{Status: StatusOutOfMemory, Trace: earlier,
			Message: "The program was stopped: it needed more memory than there is. Keep less at a time."}, nil
	case neverStarted(ended):
		return Outcome{}, unavailable("The program could not be run.", fmt.Errorf("%w: %s", ended, complaint.Bytes()))
	default:
		return Outcome{Status: StatusFailed, Trace: earlier,
			Message: "The program failed: it broke its sandbox. Write it in another way."}, nil
	}
}

func unavailable(message string, err error) error {
	return domain.Wrap(domain.CodeUnavailable, "ProgramUnavailable", message, err)
}

// bounded keeps what a child writes, up to a limit in bytes.
type bounded struct {
	bytes.Buffer
	limit int
	over  bool
}

// Write refuses what is over the limit, which ends the child.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.limit {
		b.over = true
		return 0, errors.New("too much")
	}
	return b.Buffer.Write(p)
}
