package domain_test

import (
	"reflect"
	"testing"
	"time"

	"openbot/domain"
)

// noon is the time at which cases begin.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// deepCopy gives a copy that shares no memory with v, to see whether a pure
// function touched its input.
func deepCopy[T any](v T) T { return copyValue(reflect.ValueOf(v)).Interface().(T) }

var timeType = reflect.TypeFor[time.Time]()

func copyValue(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(copyValue(v.Elem()))
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(copyValue(v.Index(i)))
		}
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		if v.Type() == timeType {
			return out
		}
		for i := range v.NumField() {
			out.Field(i).Set(copyValue(v.Field(i)))
		}
		return out
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		out.Set(copyValue(v.Elem()))
		return out
	default:
		return v
	}
}

// untouched fails when a pure function changed what it was given.
func untouched(t interface {
	Helper()
	Fatalf(string, ...any)
}, before, after any) {
	t.Helper()
	if !reflect.DeepEqual(before, after) {
		t.Fatalf("the input was changed:\nbefore %+v\nafter  %+v", before, after)
	}
}

func wantCode(t *testing.T, err error, code domain.Code) {
	t.Helper()
	if domain.CodeOf(err) != code {
		t.Fatalf("the error is %q (%v), want code %q", domain.CodeOf(err), err, code)
	}
}

// manyChecks is from where on a property surely reaches all that it is steered to;
// make test runs with more, and a quick run asserts only what holds in each check.
const manyChecks = 1000

// reachedAll fails for what no check of a property reached.
func reachedAll(t *testing.T, reached map[string]int, checks int, whats ...string) {
	t.Helper()
	if checks < manyChecks {
		return
	}
	for _, what := range whats {
		if reached[what] == 0 {
			t.Errorf("no check reached: %s", what)
		}
	}
}
