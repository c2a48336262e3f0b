package engine

import (
	"encoding/json"
	"unicode/utf8"
)

// safeText makes a text of a model or App fit for a row.
func safeText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

// quoted gives what a model wrote as JSON whatever it is.
func quoted(raw json.RawMessage) json.RawMessage {
	if json.Valid(raw) && len(raw) <= maxArguments && utf8.Valid(raw) {
		return raw
	}
	text, err := json.Marshal(cut(string(raw), maxArguments/8))
	if err != nil {
		return json.RawMessage(`""`)
	}
	return text
}

// cut shortens a text to at most n bytes on a rune boundary.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
