package domain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"openbot/domain"
)

// Whatever stands around a secret, it does not come through; whatever comes in, JSON
// stays JSON, and what came out comes out again.
func FuzzRedact(f *testing.F) {
	for _, c := range redactions {
		f.Add(c.in, "", true)
		f.Add("", c.in, false)
	}
	for _, seed := range [][2]string{{`{"password":"`, `"}`}, {`["a","`, `"]`}, {"\\\"", "\\"}, {"-----BEGIN PRIVATE KEY-----", "-----END"}, {"password='", "'"}, {"https://a:b@", "@c"},
		{"[redacted]", "[redacted]"}, {"\xff", "\u2028"}, {"{\"a\":\"", "\\ud800\"}"}, {"Authorization: \"", "\nx"}, {"<secret>", "</secret>"}} {
		f.Add(seed[0], seed[1], true)
	}
	key := fake("ghp_", 36)
	f.Fuzz(func(t *testing.T, before, after string, all bool) {
		r := plainly
		if all {
			r = strictly
		}
		for _, text := range []string{before + after, before + " " + key + " " + after, before + key + after} {
			got := r.Text(text)
			if strings.Contains(got, key) {
				t.Fatalf("%q became %q", text, got)
			}
			if again := r.Text(got); again != got {
				t.Fatalf("%q became %q and then %q", text, got, again)
			}
			raw, err := json.Marshal(map[string]any{"a": text, text: 1, "b": []string{text, text}})
			if err != nil {
				t.Fatal(err)
			}
			for _, raw := range [][]byte{raw, []byte(text)} {
				got := r.JSON(raw)
				if !json.Valid(got) {
					t.Fatalf("%s became %s", raw, got)
				}
				if strings.Contains(strings.ReplaceAll(string(got), `\`, ""), key) {
					t.Fatalf("%s became %s", raw, got)
				}
				if again := r.JSON(got); string(again) != string(got) {
					t.Fatalf("%s became %s and then %s", raw, got, again)
				}
			}
		}
	})
}

// What stands under a secret name is gone, however its neighbours look.
func FuzzRedactNames(f *testing.F) {
	f.Add("token", `"hidden"`, `"x":1`)
	f.Add("userPassword", `{"a":["hidden"]}`, `"value":"y"`)
	f.Add("API-KEY", `"hid\u0064en"`, `"name":"cookie","value":[1]`)
	f.Add("x", `"hidden"`, `"name":"secret"`)
	f.Fuzz(func(t *testing.T, name, value, more string) {
		quoted, err := json.Marshal("secret " + name)
		if err != nil || !json.Valid([]byte(value)) {
			return
		}
		if strings.ContainsAny(value, "0123456789") && strings.Trim(value, "0123456789.eE+-") == "" {
			value = `"` + value + `"` // a name that counts shows its number
		}
		raw := []byte(`{` + string(quoted) + `:` + value + `,` + more + `}`)
		if !json.Valid(raw) {
			return
		}
		var was, is map[string]json.RawMessage
		if json.Unmarshal(raw, &was) != nil {
			return
		}
		got := plainly.JSON(raw)
		if err := json.Unmarshal(got, &is); err != nil {
			t.Fatalf("%s became %s", raw, got)
		}
		for held := range was {
			if !strings.HasPrefix(held, "secret ") {
				continue
			}
			switch shown := string(is[domain.NewRedactor(domain.DefaultSettings().Redaction).Text(held)]); shown {
			case "", `"[redacted]"`, "null", "true", "false", `""`:
			default:
				t.Fatalf("%s became %s", raw, got)
			}
		}
	})
}
