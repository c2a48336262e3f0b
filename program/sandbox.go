package program

import (
	_ "embed" // for the prelude
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/quickjs"
)

//go:embed prelude.js
var prelude string

// offset is how many lines stand before the first line of a program where it is
// compiled. The prelude is shorter, so a line number tells the two apart.
var offset = strings.Count(prelude, "\n") + 1

// drain is how many jobs one call of ExecutePendingJobs runs at most.
const drain = 1 << 20

// sandbox is one VM with one program in it. It is not safe for concurrent use.
type sandbox struct {
	vm       *quickjs.VM
	host     quickjs.Value // the function that the prelude returns
	request  request
	deadline time.Time
	lines    []string
	replay   replay
	output   output
	end      *Outcome // set once, when the program came to an end
	waited   bool     // whether it ended well; it may still have open calls
	result   json.RawMessage
}

func newSandbox(r request, deadline time.Time) (*sandbox, error) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, err
	}
	s := &sandbox{vm: vm, request: r, deadline: deadline, lines: strings.Split(r.Source.Text, "\n"),
		replay: replay{earlier: r.Earlier, limits: r.Limits}, output: output{limit: r.Limits.Output}}
	vm.SetMemoryLimit(uintptr(r.Limits.Memory))
	vm.SetCanBlock(false)
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, vm.Close())
	}
	return s, nil
}

func (s *sandbox) close() {
	s.host.Free()
	_ = s.vm.Close() // the process ends next
}

// prepare evaluates the prelude and hands it what it needs. The host functions are
// global only until then.
func (s *sandbox) prepare() error {
	hosts := map[string]quickjs.HostFunc{"ask": s.ask, "print": s.print, "finish": s.finish, "fail": s.fail}
	for _, name := range []string{"ask", "print", "finish", "fail"} {
		if err := s.vm.RegisterHostFunc(name, hosts[name]); err != nil {
			return err
		}
	}
	seed := s.request.Source.Seed
	var err error
	s.host, err = s.vm.EvalValue(fmt.Sprintf("%s(ask, print, finish, fail, %d, %d, %d)",
		strings.TrimSuffix(strings.TrimSpace(prelude), ";"), int32(uint32(seed)), int32(uint32(seed>>32)), s.request.Source.StartedAtMs), quickjs.EvalGlobal)
	if err != nil {
		return err
	}
	_, err = s.vm.Eval("delete globalThis.ask; delete globalThis.print; delete globalThis.finish; delete globalThis.fail", quickjs.EvalGlobal)
	return err
}

// run starts the program and gives it one answer after the other, each only when it
// has nothing left to do. So what it does depends on the answers and their order
// alone, and never on how many of them were there at the start.
func (s *sandbox) run() Outcome {
	s.start()
	for s.end == nil {
		index, ok := s.replay.next(s.request.Answers)
		if !ok {
			break
		}
		s.settle(index)
	}
	if s.end == nil {
		s.end = s.rest()
	}
	s.end.Output, s.end.Cut = s.output.String(), s.output.cut
	return *s.end
}

// start compiles the program and runs it until it has nothing left to do.
func (s *sandbox) start() {
	if !s.arm() {
		return
	}
	body, err := s.vm.EvalValue(`"use strict"; (async () => {`+strings.Repeat("\n", offset)+s.request.Source.Text+"\n})", quickjs.EvalGlobal)
	if err != nil {
		s.broke(err)
		return
	}
	defer body.Free()
	s.enter("run", body)
}

// settle gives the program the answer to one of its calls.
func (s *sandbox) settle(index int) {
	answer := *s.request.Answers[index]
	if len(answer.Text) > s.request.Limits.Value {
		answer = Answer{Text: fmt.Sprintf("The result is longer than %s, which is more than a program can take. Ask for less.", size(s.request.Limits.Value))}
	}
	s.enter("settle", index, answer.OK, answer.Text)
}

// enter calls the prelude's function and runs what follows from it.
func (s *sandbox) enter(command string, args ...any) {
	if !s.arm() {
		return
	}
	if _, err := s.host.Call(quickjs.UndefinedValue, append([]any{command}, args...)...); err != nil {
		s.broke(err)
	}
	for s.end == nil && s.arm() {
		n, err := s.vm.ExecutePendingJobs()
		if err != nil && n < drain {
			s.broke(err)
		}
		if n < drain {
			break
		}
	}
	if s.end == nil {
		s.arm()
	}
}

// arm gives the next entry into the VM the time that is left. It reports false, and
// ends the run, when there is none.
func (s *sandbox) arm() bool {
	left := time.Until(s.deadline)
	if left <= 0 {
		s.timedOut()
		return false
	}
	return s.vm.SetEvalTimeout(left) == nil
}

// broke ends the run for an error that came out of the VM itself.
func (s *sandbox) broke(err error) {
	if s.end != nil {
		return
	}
	var js *quickjs.Error
	switch {
	case !time.Now().Before(s.deadline):
		s.timedOut()
	case errors.As(err, &js) && js.LineNumber > 0:
		line, column := s.own(js.LineNumber, js.ColumnNumber)
		s.stop(StatusFailed, fmt.Sprintf("The program does not compile: %s (line %d, column %d).", js.Message, line, column))
	case errors.As(err, &js):
		s.failed(js.Error(), js.Stack)
	default:
		s.stop(StatusFailed, "The program failed: "+err.Error())
	}
}

func (s *sandbox) timedOut() {
	s.stop(StatusTimedOut, fmt.Sprintf("The program was stopped: it had not ended after %v. Do less in one program, and check its loops.", s.request.Limits.Time))
}

// stop ends the run. The first reason counts.
func (s *sandbox) stop(status Status, message string) {
	if s.end != nil {
		return
	}
	s.end = &Outcome{Status: status, Message: message, Trace: s.request.Earlier}
	s.vm.Interrupt()
}

// rest is the outcome of a program that has nothing left to do and no answer to get.
func (s *sandbox) rest() *Outcome {
	if words := s.replay.missing(); words != "" {
		return &Outcome{Status: StatusDiverged, Message: words, Trace: s.request.Earlier}
	}
	trace := s.replay.trace()
	switch {
	case len(trace.Given) < len(trace.Calls):
		return &Outcome{Status: StatusWaiting, Trace: trace}
	case s.waited:
		return &Outcome{Status: StatusFinished, Result: s.result, Trace: trace}
	default:
		return &Outcome{Status: StatusFailed, Trace: trace,
			Message: "The program failed: it awaits something that can never come, since all its calls are answered."}
	}
}
