package web

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
)

// Moment is a time for a person and for a program.
type Moment struct {
	ISO  string
	Text string // exact
	Far  string // how far away, roughly
	Ms   int64  // since the epoch
}

// Bytes gives a size in the units that people read.
func Bytes(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n) + " B"
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1_000_000)
	}
}

// Plural gives a number with its noun, e.g. "1 Request", "2 Requests".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Words escapes a sentence in which names stand between backticks, and sets those as
// code.
func Words(sentence string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(sentence, "`") {
		if i%2 == 1 {
			b.WriteString("<code>" + string(VisibleLine(part)) + "</code>")
		} else {
			b.WriteString(string(VisibleLine(part)))
		}
	}
	return template.HTML(b.String()) //nolint:gosec // every part was escaped above
}
