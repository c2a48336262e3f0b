package engine

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

func TestArgumentsAreTakenAsTheyAre(t *testing.T) {
	for _, c := range []struct {
		name, in   string
		takeReason bool
		out        string
		reason     string
	}{
		{"nothing", ``, true, `{}`, ""},
		{"white space", " \n\t", true, `{}`, ""},
		{"an empty object", `{}`, true, `{}`, ""},
		{"the reason is taken out", `{"to":"a","openbot_reason":"because","cc":"b"}`, true, `{"to":"a","cc":"b"}`, "because"},
		{"the reason alone", `{"openbot_reason":"because"}`, true, `{}`, "because"},
		{"a reason of the tool's own stays", `{"openbot_reason":7}`, false, `{"openbot_reason":7}`, ""},
		{"a reason further down stays", `{"a":{"openbot_reason":"x"}}`, true, `{"a":{"openbot_reason":"x"}}`, ""},
		{"the order stays", `{"z":1,"a":2,"m":3}`, true, `{"z":1,"a":2,"m":3}`, ""},
		{"large numbers stay to the digit", `{"n":9007199254740993,"m":-123456789012345678901234567890,"f":1.10}`, true,
			`{"n":9007199254740993,"m":-123456789012345678901234567890,"f":1.10}`, ""},
		{"white space goes, text stays", "{ \"a\" : [ 1 , \"b c\" ] }", true, `{"a":[1,"b c"]}`, ""},
		{"names are equal after unescaping", `{"\u0061":1}`, true, `{"a":1}`, ""},
		{"an escaped name of the reason is the reason", `{"openbot\u005freason":"because"}`, true, `{}`, "because"},
		{"the same name on two levels", `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`, true, `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`, ""},
		{"as deep as may be", `{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, true, `{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, reason, err := splitArguments(json.RawMessage(c.in), c.takeReason)
			if err != nil || string(out) != c.out || reason != c.reason {
				t.Errorf("%q gives %q, reason %q, %v", c.in, out, reason, err)
			}
		})
	}
}

func TestArgumentsThatCouldBeReadInTwoWaysAreRefused(t *testing.T) {
	for name, in := range map[string]string{
		"a repeated name":               `{"to":"a","to":"b"}`,
		"a repeated name further down":  `{"x":[{"y":{"to":1,"to":2}}]}`,
		"a name repeated by escaping":   `{"to":"a","\u0074o":"b"}`,
		"two reasons":                   `{"openbot_reason":"a","openbot_reason":"b"}`,
		"something after the value":     `{"a":1}{"b":2}`,
		"a letter after the value":      `{"a":1}x`,
		"a comma at the end":            `{"a":1,}`,
		"a list":                        `[1]`,
		"a text":                        `"a"`,
		"a number":                      `1`,
		"null":                          `null`,
		"half an object":                `{"a":`,
		"a bare word":                   `{a:1}`,
		"a comment":                     `{"a":1/*x*/}`,
		"a number with a leading zero":  `{"a":01}`,
		"not a number":                  `{"a":NaN}`,
		"broken UTF-8":                  "{\"a\":\"\xff\"}",
		"broken UTF-8 in a name":        "{\"\xc3\x28\":1}",
		"half a surrogate in a name":    `{"\ud800":1}`,
		"half surrogates in two names":  `{"\ud800":1,"\udc00":2}`,
		"half a surrogate in a text":    `{"a":["\udfff"]}`,
		"a raw control character":       "{\"a\":\"\x01\"}",
		"too deep":                      `{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
		"very deep":                     strings.Repeat(`{"a":`, 100_000) + `1` + strings.Repeat(`}`, 100_000),
		"too long":                      `{"a":"` + strings.Repeat("x", maxArguments) + `"}`,
		"a reason that is a number":     `{"openbot_reason":5}`,
		"a reason that is an object":    `{"openbot_reason":{"a":1}}`,
		"a byte order mark":             "\ufeff{}",
		"a number out of every measure": `{"a":1e999999}`,
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := splitArguments(json.RawMessage(in), true)
			if err == nil {
				_, err = digest(out) // what has no canonical form is refused before anything is decided
			}
			if err == nil {
				t.Errorf("%.80q was taken as %.80q", in, out)
			}
		})
	}
}

func TestAMebibyteOfArgumentsIsTaken(t *testing.T) {
	in := `{"a":"` + strings.Repeat("x", maxArguments-8) + `"}`
	out, _, err := splitArguments(json.RawMessage(in), true)
	if err != nil || len(out) != maxArguments {
		t.Errorf("%d bytes: %v", len(out), err)
	}
}

func TestTheDigestIsOfTheCanonicalForm(t *testing.T) {
	a, errA := digest(json.RawMessage(`{"b":1,"a":[1.0,"\u00e9"]}`))
	b, errB := digest(json.RawMessage(`{"a":[1,"é"],"b":1}`))
	if errA != nil || errB != nil || a != b || len(a) != 64 {
		t.Errorf("two ways to write the same have the digests %s and %s", a, b)
	}
	if c, _ := digest(json.RawMessage(`{"a":[1,"e"],"b":1}`)); c == a {
		t.Error("another value has the same digest")
	}
}

func FuzzSplitArguments(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"a":1}`, `{"openbot_reason":"x","a":{"b":[1,2.50,"\u0000"]}}`, `{"a":1,"a":2}`, `{"\ud800":1}`,
		`{"a":"\ud83d\ude00"}`, `{"a":[{"openbot_reason":1}]}`, `{"<&>":"\u2028"}`, `{"a":1}}`, `{"n":123456789012345678901234567890}`} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, in []byte, takeReason bool) {
		before := bytes.Clone(in)
		out, reason, err := splitArguments(in, takeReason)
		if !bytes.Equal(before, in) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			if out != nil || reason != "" {
				t.Fatalf("a refusal gave %q and %q", out, reason)
			}
			return
		}
		if !json.Valid(out) || !utf8.Valid(out) || !utf8.ValidString(reason) {
			t.Fatalf("%q gives %q, which is no JSON", in, out)
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(out, &object); err != nil || object == nil {
			t.Fatalf("%q gives %q, which is no object", in, out)
		}
		if _, left := object[reasonParameter]; left && takeReason {
			t.Fatalf("%q leaves the reason in %q", in, out)
		}
		again, none, err := splitArguments(out, takeReason)
		if err != nil || !bytes.Equal(again, out) || none != "" {
			t.Fatalf("%q is not at rest: %q, %q, %v", out, again, none, err)
		}
		if len(bytes.TrimSpace(in)) == 0 {
			return
		}
		var was map[string]any
		if err := decodeExact(in, &was); err != nil {
			t.Fatalf("%q was taken, but is no object: %v", in, err)
		}
		if takeReason {
			delete(was, reasonParameter)
		}
		var is map[string]any
		if err := decodeExact(out, &is); err != nil {
			t.Fatal(err)
		}
		wasText, _ := json.Marshal(was)
		isText, _ := json.Marshal(is)
		if !bytes.Equal(wasText, isText) {
			t.Fatalf("%q became %q", wasText, isText)
		}
	})
}

func decodeExact(raw []byte, into *map[string]any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// The digest is of what the arguments mean, and of nothing else: another spelling has
// the same one, and the canonical form is at rest.
func FuzzDigest(f *testing.F) {
	for _, seed := range []string{`{}`, `{"b":1,"a":[1.0,"\u00e9"]}`, `{"a":{"z":null,"y":[true,false,"<&>\u2028"]}}`, `{"n":1e21,"m":-0,"k":0.000001}`, `{"\ud83d\ude00":"\/"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, _, err := splitArguments(in, false)
		if err != nil {
			return
		}
		sum, err := digest(out)
		if err != nil {
			return // without a canonical form nothing is decided
		}
		if len(sum) != 64 {
			t.Fatalf("%q has the digest %q", out, sum)
		}
		canonical, err := jcs.Transform(out)
		if err != nil || !json.Valid(canonical) {
			t.Fatalf("%q has the canonical form %q, %v", out, canonical, err)
		}
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, out, " ", "\t"); err != nil {
			t.Fatal(err)
		}
		for _, other := range [][]byte{canonical, spaced.Bytes()} {
			if again, err := digest(other); err != nil || again != sum {
				t.Fatalf("%q has the digest %s, and as %q %s, %v", out, sum, other, again, err)
			}
		}
		var was, is any
		if err := json.Unmarshal(out, &was); err != nil {
			return // a number that no reader can hold
		}
		if err := json.Unmarshal(canonical, &is); err != nil || !reflect.DeepEqual(was, is) {
			t.Fatalf("%q means something else as %q: %v", out, canonical, err)
		}
	})
}
