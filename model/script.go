package model

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxSleep keeps a script from holding a worker for ever.
const maxSleep = 10 * time.Minute

// plan is what the directives of all inputs ask for, in order.
type plan struct {
	steps    []scriptStep // each has at least one call
	last     scriptStep   // the final answer: no calls
	says     bool
	say      string
	directed bool // there was a directive at all
}

// scriptStep is one model call of a plan.
type scriptStep struct {
	calls   []scriptCall
	sleep   time.Duration
	fails   bool
	failure string
}

type scriptCall struct{ name, arguments string }

// parseScript reads the directives. Any text has a plan: a line that is no whole
// directive is plain text, which changes nothing.
func parseScript(inputs []string) plan {
	var (
		made    plan
		current scriptStep
	)
	// Only calls use a step up, so that /sleep and /fail wait for what follows them,
	// be it in a later input.
	closeStep := func() {
		if len(current.calls) > 0 {
			made.steps = append(made.steps, current)
			current = scriptStep{}
		}
	}
	for _, input := range inputs {
		closeStep()
		for _, line := range lines(input) {
			if rest, ok := directive(line, "/call"); ok && rest != "" {
				name, arguments := word(rest)
				if arguments == "" {
					arguments = "{}"
				}
				current.calls = append(current.calls, scriptCall{name, arguments})
			} else if _, ok := directive(line, "/then"); ok {
				closeStep()
			} else if rest, ok := directive(line, "/say"); ok {
				closeStep()
				made.says, made.say = true, rest
			} else if rest, ok := directive(line, "/fail"); ok {
				closeStep()
				if rest == "" {
					rest = "the script told the playbook to fail"
				}
				current.fails, current.failure = true, rest
			} else if length, ok := sleepLength(line); ok {
				closeStep()
				current.sleep = min(current.sleep+length, maxSleep)
			} else {
				continue
			}
			made.directed = true
		}
	}
	closeStep()
	made.last = current
	return made
}

func sleepLength(line string) (time.Duration, bool) {
	rest, ok := directive(line, "/sleep")
	if !ok {
		return 0, false
	}
	milliseconds, err := strconv.ParseUint(rest, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return maxSleep, true
	case err != nil:
		return 0, false
	}
	return time.Duration(min(milliseconds, uint64(maxSleep/time.Millisecond))) * time.Millisecond, true
}

func lines(text string) []string {
	return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
}

// directive gives what follows a directive's name, without the blanks around it;
// false when the line does not start with that name and a blank.
func directive(line, name string) (string, bool) {
	rest, ok := strings.CutPrefix(line, name)
	if !ok || (rest != "" && !strings.ContainsRune(" \t\r", rune(rest[0]))) {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

// word cuts the first word off a trimmed text.
func word(text string) (first, rest string) {
	at := strings.IndexFunc(text, unicode.IsSpace)
	if at < 0 {
		return text, ""
	}
	return text[:at], strings.TrimSpace(text[at:])
}
