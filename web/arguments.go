package web

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Bounds of how arguments are laid out. What does not fit is never left out without a
// word: it is folded, or stands on a page of its own.
const (
	maxFields     = 200     // named one by one
	maxKey        = 200     // bytes of a key that can stand in front of its value
	maxFieldDepth = 8       // deeper values are shown as the JSON that they are
	foldOver      = 1200    // longer values are folded
	foldLines     = 24      // and those of more lines
	inlineBudget  = 24_000  // bytes of values that one page holds of one Request
	firstPart     = 240     // bytes of a folded value that are seen at once
	rawBudget     = 4 << 20 // bytes at most on the page of the whole
)

// Field is one value of the arguments, with the way to it.
type Field struct {
	Path     string // such as to, or attachments[0].name; "" for the whole
	Kind     string // text, number, true/false, null, empty or JSON
	Text     string // the value: text as it is, anything else as JSON
	Size     int    // bytes of Text before it was cut
	Fold     bool   // long: it is shown behind its beginning
	Head     string // the beginning of a folded one
	Cut      bool   // Text is not whole: the rest stands on the page of the whole
	Oddities []string
	Change   *Change // against the call before; nil when there is none
}

// Arguments lays JSON out: every key is named, and every value stands beside the way
// to it, in the order and spelling that will be sent. With whole set nothing is cut.
func Arguments(raw json.RawMessage, whole bool) []Field {
	fields := fieldsOf(raw)
	budget := inlineBudget
	if whole {
		budget = rawBudget
	}
	for i := range fields {
		f := &fields[i]
		f.Size = len(f.Text)
		f.Fold = f.Size > foldOver || strings.Count(f.Text, "\n") > foldLines
		if f.Fold || f.Kind == "JSON" {
			f.Oddities = Oddities(f.Text)
		}
		if f.Fold {
			f.Head = cut(f.Text, firstPart)
		}
		if room := max(budget, firstPart); f.Size > room {
			f.Text, f.Cut = cut(f.Text, room), true
		}
		budget = max(0, budget-f.Size)
	}
	return fields
}

// cut gives the first bytes of a text, never half a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}

func fieldsOf(raw json.RawMessage) []Field {
	w := fieldWalk{decoder: json.NewDecoder(bytes.NewReader(raw)), raw: raw}
	w.decoder.UseNumber()
	if !json.Valid(raw) || !w.value("", 0) || len(w.fields) > maxFields {
		return []Field{{Kind: "JSON", Text: string(raw)}}
	}
	return w.fields
}

// fieldWalk goes through valid JSON and notes each value. It keeps what stands twice,
// and numbers as they are written.
type fieldWalk struct {
	decoder *json.Decoder
	raw     json.RawMessage
	fields  []Field
}

func (w *fieldWalk) add(path, kind, text string) bool {
	w.fields = append(w.fields, Field{Path: path, Kind: kind, Text: text})
	return len(w.fields) <= maxFields
}

// value notes the next value; false when there are too many to name.
func (w *fieldWalk) value(path string, depth int) bool {
	if depth >= maxFieldDepth {
		var deep json.RawMessage
		if w.decoder.Decode(&deep) != nil {
			return false
		}
		return w.deep(path, deep)
	}
	token, err := w.decoder.Token()
	if err != nil {
		return false
	}
	switch token := token.(type) {
	case string:
		return w.add(path, "text", token)
	case json.Number:
		return w.add(path, "number", token.String())
	case bool:
		return w.add(path, "true/false", strconv.FormatBool(token))
	case nil:
		return w.add(path, "null", "null")
	case json.Delim:
		return w.inside(path, depth, token)
	}
	return false
}

func (w *fieldWalk) inside(path string, depth int, open json.Delim) bool {
	n := 0
	for ; w.decoder.More(); n++ {
		to := path + "[" + strconv.Itoa(n) + "]"
		if open == '{' {
			token, err := w.decoder.Token()
			key, ok := token.(string)
			if err != nil || !ok || len(key) > maxKey {
				return false
			}
			to = join(path, key)
		}
		if !w.value(to, depth+1) {
			return false
		}
	}
	if _, err := w.decoder.Token(); err != nil {
		return false
	}
	if n > 0 {
		return true
	}
	text := "{}"
	if open == '[' {
		text = "[]"
	}
	return w.add(path, "empty", text)
}

func (w *fieldWalk) deep(path string, raw json.RawMessage) bool {
	if len(raw) > 0 && raw[0] != '{' && raw[0] != '[' {
		var plain any
		if json.Unmarshal(raw, &plain) == nil {
			if text, ok := plain.(string); ok {
				return w.add(path, "text", text)
			}
		}
	}
	return w.add(path, "JSON", string(raw))
}

// join adds a key to a path. A key that is no plain word is quoted, so that it cannot
// pass for two.
func join(path, key string) string {
	plain := key != "" && !strings.ContainsFunc(key, notPlain) && (key[0] < '0' || key[0] > '9')
	switch {
	case !plain:
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func notPlain(r rune) bool {
	return r != '_' && r != '-' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}
