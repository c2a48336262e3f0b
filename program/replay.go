package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

const divergence = " A program must make the same calls in the same order each time it is run again. Write a new one that goes on from what is done."

// replay compares what a program does with what it did before, and says which answer
// it gets next.
type replay struct {
	earlier Trace
	limits  Limits
	calls   []Asked
	given   []int
	total   int
}

// take notes a call and gives it its number, or says why the program must end.
func (r *replay) take(asked *Asked) *Outcome {
	index := len(r.calls)
	switch {
	case index < len(r.earlier.Calls):
		if words := difference(index, r.earlier.Calls[index], *asked); words != "" {
			return &Outcome{Status: StatusDiverged, Message: words}
		}
	case len(r.earlier.Calls) > 0 && !r.caughtUp():
		return &Outcome{Status: StatusDiverged,
			Message: fmt.Sprintf("The program diverged: it now makes a call %d, %s, where it made none before.", index+1, nameOf(*asked)) + divergence}
	}
	if index >= r.limits.Calls {
		return &Outcome{Status: StatusTooManyCalls,
			Message: fmt.Sprintf("The program was stopped: it made more than %d calls. None of the new ones was made. Do the work in several programs.", r.limits.Calls)}
	}
	if r.total += sizeOf(*asked); r.total > r.limits.asked() {
		return &Outcome{Status: StatusOutOfMemory,
			Message: fmt.Sprintf("The program was stopped: its calls carry more than %s together. Do the work in several programs.", size(r.limits.asked()))}
	}
	asked.Position.Index = index
	r.calls = append(r.calls, *asked)
	return nil
}

// caughtUp reports whether the program got all answers that it got before.
func (r *replay) caughtUp() bool { return len(r.given) > len(r.earlier.Given) }

// next gives the number of the answer that the program gets next: as before while
// there are such, then the new ones by number. It reports false when there is none,
// or when the program is not where it was before.
func (r *replay) next(answers []*Answer) (int, bool) {
	if done := len(r.given); done < len(r.earlier.Given) {
		index := r.earlier.Given[done]
		if index >= len(r.calls) {
			return 0, false
		}
		r.given = append(r.given, index)
		return index, true
	}
	if len(r.calls) < len(r.earlier.Calls) {
		return 0, false
	}
	for index := range r.calls {
		if index < len(answers) && answers[index] != nil && !slices.Contains(r.given, index) {
			r.given = append(r.given, index)
			return index, true
		}
	}
	return 0, false
}

// missing says in words which earlier call the program did not make; nothing when it
// made all.
func (r *replay) missing() string {
	index := len(r.calls)
	if index >= len(r.earlier.Calls) {
		return ""
	}
	return fmt.Sprintf("The program diverged: it did not make call %d, %s, which it made before.", index+1, nameOf(r.earlier.Calls[index])) + divergence
}

func (r *replay) trace() Trace { return Trace{Calls: r.calls, Given: r.given} }

func sizeOf(a Asked) int {
	return len(a.Connection) + len(a.Tool) + len(a.Arguments) + len(a.Reason)
}

func nameOf(a Asked) string {
	return shorten(a.Connection, 100) + "/" + shorten(a.Tool, 100)
}

// difference says how a call differs from what it was; nothing when it does not. The
// position does not count: a newer sandbox may count columns in another way.
func difference(index int, before, now Asked) string {
	what := ""
	switch {
	case before.Connection != now.Connection || before.Tool != now.Tool:
		what = fmt.Sprintf("is now %s and was %s before", nameOf(now), nameOf(before))
	case !sameJSON(before.Arguments, now.Arguments):
		what = fmt.Sprintf("to %s, has other arguments than before", nameOf(now))
	case before.Reason != now.Reason:
		what = fmt.Sprintf("to %s, has another reason than before", nameOf(now))
	default:
		return ""
	}
	return fmt.Sprintf("The program diverged: call %d %s.", index+1, what) + divergence
}

// sameJSON compares values: a database may have kept the text in another form.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	left, leftErr := canonical(a)
	right, rightErr := canonical(b)
	return leftErr == nil && rightErr == nil && bytes.Equal(left, right)
}

func canonical(raw json.RawMessage) ([]byte, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}
