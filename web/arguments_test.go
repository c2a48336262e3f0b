package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func paths(fields []Field) []string {
	var out []string
	for _, f := range fields {
		out = append(out, f.Path+"="+f.Text)
	}
	return out
}

func TestArgumentsAreNamed(t *testing.T) {
	for raw, want := range map[string][]string{
		`{}`:                                     {"={}"},
		`{"to":"a","n":1.50,"b":true}`:           {"to=a", "n=1.50", "b=true"},
		`{"a":{"b":[1,{"c":null}]}}`:             {"a.b[0]=1", "a.b[1].c=null"},
		`{"a":[],"b":{}}`:                        {"a=[]", "b={}"},
		`{"a.b":1,"a":{"b":2}}`:                  {`["a.b"]=1`, "a.b=2"},
		`{"a\u202eb":1}`:                         {`["a\u202eb"]=1`},
		`{"a":1,"a":2}`:                          {"a=1", "a=2"},
		`"text"`:                                 {"=text"},
		`12345678901234567890.000`:               {"=12345678901234567890.000"},
		`{"a":"` + "\\u0007" + `"}`:              {"a=\u0007"},
		`not json`:                               {"=not json"},
		`{"` + strings.Repeat("k", 300) + `":1}`: {`={"` + strings.Repeat("k", 300) + `":1}`},
	} {
		if got := paths(Arguments(json.RawMessage(raw), false)); !slices.Equal(got, want) {
			t.Errorf("%s gives %q, not %q", raw, got, want)
		}
	}
}

func TestDeepAndLongArguments(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 90) + `1` + strings.Repeat(`}`, 90)
	fields := Arguments(json.RawMessage(deep), false)
	if len(fields) != 1 || fields[0].Kind != "JSON" || fields[0].Path != "a.a.a.a.a.a.a.a" || strings.Count(fields[0].Text, "{") != 82 {
		t.Errorf("deep JSON gives %.300v", fields)
	}
	if fields := Arguments(json.RawMessage(strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)), false); len(fields) != 1 || fields[0].Kind != "JSON" {
		t.Errorf("JSON that is too deep to read gives %.300v", fields)
	}
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf(`"k%d":%d`, i, i))
	}
	if fields := Arguments(json.RawMessage("{"+strings.Join(many, ",")+"}"), false); len(fields) != 1 || fields[0].Kind != "JSON" || !fields[0].Fold {
		t.Errorf("many keys give %d fields", len(fields))
	}
	long := strings.Repeat("ü", 300_000) + "\u200bend"
	raw, _ := json.Marshal(map[string]string{"text": long, "to": "ann"})
	fields = Arguments(raw, false)
	text := fields[0]
	if !text.Cut || !text.Fold || text.Size != len(long) || len(text.Text) > inlineBudget || !strings.HasPrefix(long, text.Text) ||
		!slices.Equal(text.Oddities, []string{"1 character that cannot be seen"}) || fields[1].Text != "ann" || fields[1].Cut {
		t.Errorf("a long text: cut %v, folded %v, size %d of %d, %d shown, %q", text.Cut, text.Fold, text.Size, len(long), len(text.Text), text.Oddities)
	}
	if fields := Arguments(raw, true); fields[0].Cut || fields[0].Text != long {
		t.Error("the whole is not whole")
	}
}

// Whatever the arguments: each text in them is in a field, whole or marked as cut.
func TestArgumentsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 1, 6).Draw(t, "texts")
		value := any(texts)
		for range rapid.IntRange(0, 12).Draw(t, "depth") {
			value = map[string]any{rapid.String().Draw(t, "key"): value}
		}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Skip("no JSON")
		}
		var all strings.Builder
		for _, f := range Arguments(raw, true) {
			if f.Cut {
				t.Fatalf("cut: %+v", f)
			}
			all.WriteString(f.Text + "\n")
		}
		for _, text := range texts {
			plain, _ := json.Marshal(text) // deep values stand as the JSON that they are
			var back string
			if json.Unmarshal(plain, &back) != nil {
				continue
			}
			if !strings.Contains(all.String(), back) && !strings.Contains(all.String(), string(plain)) {
				t.Fatalf("%q is not in %q", back, all.String())
			}
		}
	})
}

func TestCompare(t *testing.T) {
	now := Arguments(json.RawMessage(`{"to":"ann","text":"Hello wörld one","new":1}`), false)
	before := Arguments(json.RawMessage(`{"to":"ann","text":"Hello wörld two","old":2}`), false)
	got := map[string]Change{}
	for _, f := range Compare(now, before) {
		got[f.Path] = *f.Change
	}
	want := map[string]Change{"to": {Kind: "same"}, "new": {Kind: "added"}, "old": {Kind: "removed"}}
	if got["to"] != want["to"] || got["new"] != want["new"] || got["old"] != want["old"] || got["text"].Kind != "changed" || got["text"].Before != "Hello wörld " {
		t.Errorf("got %+v", got)
	}
	for _, c := range []struct{ old, now, was, is string }{
		{"The figures of week 47 are", "The figures of week 48 are", "47", "48"},
		{"ann@example.test", "anna@example.test", "ann", "anna"},
		{"wörter", "würter", "wörter", "würter"},
		{"a, b", "a; b", ",", ";"},
		{"same end", "same", " end", ""},
		{strings.Repeat("x", 50) + "1", strings.Repeat("x", 50) + "2", "1", "2"}, // no word that anybody reads
	} {
		if got := between(c.old, c.now); got.Old != c.was || got.New != c.is {
			t.Errorf("%q to %q: %q became %q", c.old, c.now, got.Old, got.New)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if len(a) > contextOf || len(b) > contextOf {
			t.Skip("too long to be shown whole")
		}
		if c := between(a, b); c.Before+c.New+c.After != b || c.Before+c.Old+c.After != a {
			t.Fatalf("%q to %q gives %+v", a, b, c)
		}
	})
}
