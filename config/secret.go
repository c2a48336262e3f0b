package config

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

const masked = "***"

// Secret is a text that must not be seen. Whatever prints it shows "***", or
// nothing when it is empty: every verb of fmt, JSON, YAML, text and slog. Reveal is
// the only way to the text.
type Secret struct {
	// fmt and reflection do not call methods on unexported fields of a struct that
	// holds a Secret; behind a pointer they find an address, not the text.
	text *string
}

// NewSecret wraps a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal gives the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no text.
func (s Secret) IsZero() bool { return s.text == nil }

// Equal compares two secrets in a time that does not depend on where they differ.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// String gives "***", or "" when there is no text.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return masked
}

// Format masks the text for every verb and flag.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// LogValue masks the text for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText masks the text for encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON masks the text for JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalYAML masks the text for YAML.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }
