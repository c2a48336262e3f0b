package repository

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// document is a column of text that holds a value as JSON. An absent value is the
// empty text, so that no column needs NULL.
type document[T any] struct {
	value T
	text  string // as it was read; "" for one that was made here
}

func documentOf[T any](value T) document[T] { return document[T]{value: value} }

// Value writes the JSON. Characters of HTML stay as they are, so that schemas and
// texts come back as they were given.
func (d document[T]) Value() (driver.Value, error) {
	if d.text != "" {
		return d.text, nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d.value); err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if text == "null" {
		return "", nil
	}
	return clean(text), nil
}

// Scan reads what Value wrote.
func (d *document[T]) Scan(from any) error {
	var text []byte
	switch from := from.(type) {
	case nil:
	case string:
		text = []byte(from)
	case []byte:
		text = from
	default:
		return fmt.Errorf("a JSON column came as %T", from)
	}
	var value T
	if len(text) > 0 {
		if err := json.Unmarshal(text, &value); err != nil {
			return fmt.Errorf("a JSON column cannot be read: %w", err)
		}
	}
	d.value, d.text = value, string(text)
	return nil
}

func micros(t time.Time) int64 { return t.UnixMicro() }

func microsOrNil(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	us := t.UnixMicro()
	return &us
}

func moment(us int64) time.Time { return time.UnixMicro(us).UTC() }

func momentOrNil(us *int64) *time.Time {
	if us == nil {
		return nil
	}
	t := moment(*us)
	return &t
}

// raw gives the exact bytes back; nil for the empty text.
func raw(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// clean replaces what PostgreSQL refuses in a text: NUL bytes and broken UTF-8.
// Both databases keep the same text, so that a move between them changes nothing.
func clean(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return text
}

// cleanRow cleans every text column of a row, so that a new column cannot be
// forgotten.
func cleanRow(row any) {
	v := reflect.ValueOf(row).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String {
			if text := f.String(); text != "" {
				if c := clean(text); c != text {
					f.SetString(c)
				}
			}
		}
	}
}
