package program

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// frame is the end of a line of a stack: code that was compiled here always has this
// file name.
var frame = regexp.MustCompile(`(?m)^    at .*?\(?<eval>:(\d+):(\d+)\)?$`)

// site gives the innermost place in the program's own text that a stack names, or
// zeros. Lines of the prelude stand before it.
func (s *sandbox) site(stack string) (line, column int) {
	for _, found := range frame.FindAllStringSubmatch(shorten(stack, maxMessage), -1) {
		line, lineErr := strconv.Atoi(found[1])
		column, columnErr := strconv.Atoi(found[2])
		if lineErr == nil && columnErr == nil && line > offset {
			return s.own(line, column)
		}
	}
	return 0, 0
}

// own turns a place in what was compiled into one in the program's text. The end of
// the wrapper counts as the end of the text.
func (s *sandbox) own(line, column int) (int, int) {
	line -= offset
	switch {
	case line < 1:
		return 1, 1
	case line > len(s.lines):
		last := s.lines[len(s.lines)-1]
		return len(s.lines), len([]rune(last)) + 1
	default:
		return line, max(column, 1)
	}
}

// callSite is site for a call. A stack names the opening bracket; a reader looks for
// the start of what stands before it, such as app.call.
func (s *sandbox) callSite(stack string) (line, column int) {
	line, column = s.site(stack)
	if line == 0 {
		return 0, 0
	}
	runes := []rune(s.lines[line-1])
	at := min(column-1, len(runes))
	for at > 0 && partOfName(runes[at-1]) {
		at--
	}
	return line, at + 1
}

func partOfName(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_$.?", r)
}
