package repositorytest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// fill sets every exported field below v, however deep, to a value that is not zero
// and that no other field of the same fill has, so that a forgotten or mixed-up
// column shows. It fails on a kind of field that it does not know.
func fill(v any, seed int) {
	n := seed * 10_000
	fillValue(reflect.ValueOf(v).Elem(), &n, 0)
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
)

func fillValue(v reflect.Value, n *int, depth int) {
	*n++
	switch v.Type() {
	case timeType:
		v.Set(reflect.ValueOf(start.Add(time.Duration(*n) * time.Microsecond)))
		return
	case rawType:
		text := fmt.Sprintf(`{"n":%d,"text":"<é&\u0000>"}`, *n)
		if depth == 1 {
			// Of a column of its own the exact bytes come back, spaces and all.
			text = fmt.Sprintf("{ \"n\" :%d,\n\t\"text\":\"<é&\\u0000>\", \"n\":1.0 }", *n)
		}
		v.SetBytes([]byte(text))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillValue(v.Field(i), n, depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), n, depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillValue(v.Index(i), n, depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillValue(key, n, depth+1)
		fillValue(value, n, depth+1)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d <&'\"é\n", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(uint64(*n%255) + 1)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.25)
	default:
		panic("fill does not know " + v.Type().String())
	}
}
