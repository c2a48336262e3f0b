package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxMessage is how much of an error's own words is passed on, in bytes.
const maxMessage = 4 << 10

var errStopped = errors.New("the program was stopped")

// ask is what app.call comes to: the only way out of the sandbox, and it only notes.
func (s *sandbox) ask(args []any) (any, error) {
	texts, err := s.strings(args, 5)
	if err != nil {
		return nil, err
	}
	asked := Asked{Connection: texts[0], Tool: texts[1], Arguments: json.RawMessage(texts[2]), Reason: texts[3]}
	if total := sizeOf(asked); total > s.request.Limits.Value {
		return nil, fmt.Errorf("a call can carry %s at most", size(s.request.Limits.Value))
	}
	if !json.Valid(asked.Arguments) {
		return nil, errors.New("the arguments of a call are nested too deep")
	}
	asked.Position.Line, asked.Position.Column = s.callSite(texts[4])
	if refused := s.replay.take(&asked); refused != nil {
		s.stop(refused.Status, refused.Message)
		return nil, errStopped
	}
	return asked.Position.Index, nil
}

// print is what console.log comes to.
func (s *sandbox) print(args []any) (any, error) {
	texts, err := s.strings(args, 1)
	if err != nil {
		return nil, err
	}
	s.output.line(texts[0])
	return nil, nil
}

// finish is called when the program has returned a value, which is JSON.
func (s *sandbox) finish(args []any) (any, error) {
	texts, err := s.strings(args, 1)
	if err != nil {
		return nil, err
	}
	switch result := json.RawMessage(texts[0]); {
	case len(result) > s.request.Limits.Output:
		s.stop(StatusTooMuchOutput, fmt.Sprintf("The program returned %s; %s is the most. Return only what is needed.",
			size(len(result)), size(s.request.Limits.Output)))
	case !json.Valid(result):
		s.stop(StatusFailed, "The program failed: it returned a value that is nested too deep.")
	default:
		s.waited, s.result = true, result
	}
	return nil, nil
}

// fail is called when the program threw.
func (s *sandbox) fail(args []any) (any, error) {
	texts, err := s.strings(args, 2)
	if err != nil {
		return nil, err
	}
	s.failed(texts[0], texts[1])
	return nil, nil
}

func (s *sandbox) failed(message, stack string) {
	if words := s.replay.missing(); words != "" {
		s.stop(StatusDiverged, words)
		return
	}
	message = shorten(message, maxMessage)
	if message == "InternalError: out of memory" {
		s.stop(StatusOutOfMemory, fmt.Sprintf("The program was stopped: it needed more than %s of memory. Keep less at a time.", size(int(s.request.Limits.Memory))))
		return
	}
	if message == "null" {
		// The engine throws this when it has no memory left for an error.
		message = "it threw null, which also happens when the memory is used up"
	}
	if line, column := s.site(stack); line > 0 {
		message = fmt.Sprintf("%s (line %d, column %d)", message, line, column)
	}
	s.stop(StatusFailed, "The program failed: "+message)
}

// strings checks that the prelude called with the strings that it always does, and
// that the run still goes on.
func (s *sandbox) strings(args []any, n int) ([]string, error) {
	if s.end != nil {
		return nil, errStopped
	}
	texts := make([]string, 0, n)
	for _, arg := range args {
		if text, ok := arg.(string); ok {
			texts = append(texts, text)
		}
	}
	if len(texts) != n {
		return nil, errors.New("the sandbox was called with something else than text")
	}
	return texts, nil
}

// output gathers what console.log writes, up to a limit in bytes.
type output struct {
	text  strings.Builder
	limit int
	cut   bool
}

func (o *output) line(text string) {
	if o.cut {
		return
	}
	kept := shorten(text, o.limit-o.text.Len())
	o.text.WriteString(kept)
	if len(kept) < len(text) || o.text.Len() == o.limit {
		o.cut = true
		return
	}
	o.text.WriteByte('\n')
}

func (o *output) String() string { return o.text.String() }

// shorten cuts a text to at most limit bytes, between characters.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// size shows a number of bytes for people.
func size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
