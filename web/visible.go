package web

import (
	"fmt"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible escapes a text for a page and makes visible what one cannot see, what
// changes how other characters are laid out, and what only looks like a letter: a
// person decides about the text that is there, not about what it looks like.
func Visible(text string) template.HTML { return visible(text, true) }

// VisibleLine is Visible for what belongs on one line: line breaks and tabs are
// made visible too, so that a name cannot pretend to end.
func VisibleLine(text string) template.HTML { return visible(text, false) }

// maxRun is how many characters of one run that cannot be seen are shown one by one.
const maxRun = 12

func visible(text string, breaks bool) template.HTML {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	likes := lookAlikes(text)
	plain, next, run := 0, 0, 0
	flush := func(to int) { template.HTMLEscape(&b, []byte(text[plain:to])) }
	endRun := func() {
		if run > maxRun {
			fmt.Fprintf(&b, `<b class="odd">and %d more</b>`, run-maxRun)
		}
		run = 0
	}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		like := next < len(likes) && likes[next] == at
		if like {
			next++
		}
		switch {
		case like:
			flush(at)
			endRun()
			fmt.Fprintf(&b, `<b class="like">%s<i>U+%04X</i></b>`, template.HTMLEscapeString(string(r)), r)
		case hidden(r, breaks):
			flush(at)
			if run++; run <= maxRun {
				fmt.Fprintf(&b, `<b class="odd">U+%04X</b>`, r)
			}
		default:
			if run > 0 {
				endRun()
			}
			at += size
			continue
		}
		at += size
		plain = at
	}
	flush(len(text))
	endRun()
	return template.HTML(b.String()) //nolint:gosec // every part was escaped above
}

// blank lists letters and marks that show nothing.
var blank = []rune{0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}

func hidden(r rune, breaks bool) bool {
	switch {
	case r == '\n' || r == '\t':
		return !breaks
	case r >= ' ' && r < 0x7F:
		return false
	case r == unicode.ReplacementChar: // also a byte that is no character
		return true
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Variation_Selector):
		return true
	}
	for _, b := range blank {
		if r == b {
			return true
		}
	}
	return false
}

// plainTitle is a text for the title of a window, which knows no markup.
func plainTitle(text string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r, false) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Oddities says what is odd about a text that is shown as it is, to be edited, or not whole;
// nil for nothing.
func Oddities(text string) []string {
	unseen, rightToLeft := 0, false
	for _, r := range text {
		if hidden(r, true) {
			unseen++
		}
		rightToLeft = rightToLeft || unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko)
	}
	var out []string
	if unseen > 0 {
		out = append(out, Plural(unseen, "character")+" that cannot be seen")
	}
	if n := len(lookAlikes(text)); n > 0 {
		out = append(out, Plural(n, "letter")+" that looks like another")
	}
	if rightToLeft {
		out = append(out, "text that runs from right to left")
	}
	return out
}
