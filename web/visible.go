package web

import (
	"fmt"
	"html/template"
	"strings"
	"unicode"
)

// Visible escapes a text for a page and makes characters that one cannot see, or
// that change how others are laid out, visible as their number: a person decides
// about the text that is there, not about what it looks like.
func Visible(text string) template.HTML {
	var b strings.Builder
	plain := 0
	for at, r := range text {
		if !hidden(r) && (r != unicode.ReplacementChar) {
			continue
		}
		b.WriteString(template.HTMLEscapeString(text[plain:at]))
		fmt.Fprintf(&b, `<span class="hidden-char" title="a character that cannot be seen">U+%04X</span>`, r)
		plain = at + len(string(r))
		if r == unicode.ReplacementChar && !strings.HasPrefix(text[at:], string(r)) {
			plain = at + 1 // one byte that is no character
		}
	}
	b.WriteString(template.HTMLEscapeString(text[plain:]))
	return template.HTML(b.String())
}

// blank lists letters and marks that show nothing.
var blank = []rune{0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}

func hidden(r rune) bool {
	switch {
	case r >= ' ' && r < 0x7F || r == '\n' || r == '\t':
		return false
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
