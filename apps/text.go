package apps

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutText shortens text to at most limit bytes without splitting a rune.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// cleanText makes a text of an App fit to be kept and shown: valid UTF-8, without
// control characters other than line breaks and tabs, and without the marks that
// turn the direction of what is read.
func cleanText(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, text)
}

// cleanLine is cleanText on a single line of at most limit bytes.
func cleanLine(text string, limit int) string {
	return cutText(strings.Join(strings.Fields(cleanText(cutText(text, 4*limit))), " "), limit)
}
