package domain

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Redacted stands in place of everything that is masked.
const Redacted = "[redacted]"

// Bounds of the work that one value can make.
const (
	// maxRedactDepth is how deep a value may nest, texts that hold JSON included. What
	// lies deeper is masked whole.
	maxRedactDepth = 100
	// maxRedactPasses is how often a text is gone through until nothing more is found in
	// it. One that is still not at rest is masked whole.
	maxRedactPasses = 6
)

// Redactor masks what scripts must not see: secrets by the name of what holds them
// and by their shape, and personal data as the organization set it. It is pure, keeps
// nothing of what it reads, and may be used by many at once. The same input always
// gives the same output, and an output put in again comes out unchanged.
type Redactor struct {
	names       secretNames
	mail, phone bool
}

// NewRedactor makes a Redactor for the settings of an organization.
func NewRedactor(r Redaction) *Redactor {
	return &Redactor{names: newSecretNames(r.Keys), mail: r.Mail, phone: r.Phone}
}

// Text masks within a text. A text that is JSON is masked as JSON and stays JSON.
func (r *Redactor) Text(text string) string { return r.text(text, 0) }

// JSON masks within a JSON value; every byte that need not change stays as it is. What
// is no JSON is masked whole.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage(`"` + Redacted + `"`)
	}
	text := string(raw)
	for range maxRedactPasses {
		next := r.document(text, 0)
		if next == text {
			return json.RawMessage(text)
		}
		text = next
	}
	return json.RawMessage(`"` + Redacted + `"`)
}

// text goes through a text until it is at rest: what is masked in one pass can bring
// to light what stands beside it.
func (r *Redactor) text(text string, depth int) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	for range maxRedactPasses {
		next := r.once(text, depth)
		if next == text {
			return text
		}
		text = next
	}
	return Redacted
}

func (r *Redactor) once(text string, depth int) string {
	if holdsJSON(text) {
		return r.document(text, depth)
	}
	return r.prose(text)
}

// holdsJSON reports whether a text is one JSON object, list or text. Numbers and bare
// words are read as prose.
func holdsJSON(text string) bool {
	trimmed := strings.Trim(text, " \t\r\n")
	if len(trimmed) < 2 || !strings.ContainsRune(`{["`, rune(trimmed[0])) {
		return false
	}
	return json.Valid([]byte(trimmed))
}

// splice is a part of a text that gives way to another.
type splice struct {
	from, to int
	with     string
}

// spliced puts splices into a text. They are in order and do not overlap.
func spliced(text string, splices []splice) string {
	if len(splices) == 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, s := range splices {
		b.WriteString(text[at:s.from])
		b.WriteString(s.with)
		at = s.to
	}
	b.WriteString(text[at:])
	return b.String()
}
