package api

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// encode writes JSON without a newline and without escaping HTML: nothing here is
// put into a page. The wire forms hold only what marshals.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("a wire form does not marshal: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// ms is a time as it stands on the wire: milliseconds since the epoch.
func ms(t time.Time) int64 { return t.UnixMilli() }

// msOrNull is ms of a time that may be missing.
func msOrNull(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	v := t.UnixMilli()
	return &v
}

// orNull gives null for the empty text.
func orNull[T ~string](v T) *string {
	if v == "" {
		return nil
	}
	text := string(v)
	return &text
}

// nonNil is the list, or an empty one: lists are never null on the wire.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Nullable is an object that may be null.
type Nullable[T any] struct{ Value *T }

// MarshalJSON writes the object or null.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	if n.Value == nil {
		return []byte("null"), nil
	}
	return encode(n.Value), nil
}

// Schema says that both are allowed.
func (Nullable[T]) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{r.Schema(typeOf[T](), true, ""), {Type: "null"}}}
}

// Optional is a setting in a PATCH: left out, null or a value.
type Optional[T any] struct {
	Set   bool
	Value *T
}

// UnmarshalJSON notes that the field was there.
func (o *Optional[T]) UnmarshalJSON(raw []byte) error {
	o.Set = true
	if string(raw) == "null" {
		o.Value = nil
		return nil
	}
	o.Value = new(T)
	return json.Unmarshal(raw, o.Value)
}

// Schema says that both null and a value are allowed.
func (Optional[T]) Schema(r huma.Registry) *huma.Schema {
	s := r.Schema(typeOf[T](), true, "")
	if s.Ref == "" && s.Type != "" {
		s.Nullable = true
		return s
	}
	return &huma.Schema{AnyOf: []*huma.Schema{s, {Type: "null"}}}
}
