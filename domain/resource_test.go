package domain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"openbot/domain"
)

func resource(template, arguments string) string {
	s := domain.DefaultSettings()
	s.ResourceTemplates = []domain.ResourceTemplate{{Tool: "con_7/send_*", Template: template}, {Tool: "*", Template: "never"}}
	return s.Resource("con_7/send_email", json.RawMessage(arguments))
}

func TestResourceOfACall(t *testing.T) {
	long := strings.Repeat("x", 600)
	for _, c := range []struct{ name, template, arguments, want string }{
		{"a text", "mail:{to}", `{"to":"ops@example.test","subject":"x"}`, "mail:ops@example.test"},
		{"a fixed text", "calendar", `{}`, "calendar"},
		{"two arguments", "repo:{owner}/{name}", `{"owner":"ann","name":"site"}`, "repo:ann/site"},
		{"the same argument twice", "{a}-{a}", `{"a":1}`, "1-1"},
		{"a number to the digit", "invoice:{n}", `{"n":1.50}`, "invoice:1.50"},
		{"a large number", "invoice:{n}", `{"n":12345678901234567890}`, "invoice:12345678901234567890"},
		{"a boolean", "all:{all}", `{"all":true}`, "all:true"},
		{"a list", "mail:{to}", `{"to":["a@x.test","b@x.test"]}`, "mail:a@x.test,b@x.test"},
		{"a comma is no list", "mail:{to}", `{"to":"a@x.test,b@x.test"}`, "mail:a@x.test%2Cb@x.test"},
		{"other letters", "mail:{to}", `{"to":"größe@例.test"}`, "mail:größe@例.test"},
		{"a path", "file:{path}", `{"path":"/tmp/a b"}`, "file:/tmp/a%20b"},
		{"what stands between two arguments", "repo:{owner}/{name}", `{"owner":"a/b","name":"c"}`, "repo:a%2Fb/c"},
		{"a percent sign", "x:{a}", `{"a":"%2C"}`, "x:%252C"},
		{"a new line", "mail:{to}", `{"to":"ops@example.test\nBcc: all"}`, "mail:ops@example.test%0ABcc:%20all"},
		{"a character that cannot be seen", "mail:{to}", `{"to":"ops@example.test\u200b"}`, "mail:ops@example.test%E2%80%8B"},
		{"a letter that shows nothing", "mail:{to}", `{"to":"ops\u3164"}`, "mail:ops%E3%85%A4"},
		{"a change of direction", "mail:{to}", `{"to":"\u202Etest"}`, "mail:%E2%80%AEtest"},
		{"a NUL", "mail:{to}", `{"to":"a\u0000"}`, "mail:a%00"},
		{"absent", "mail:{to}", `{"subject":"x"}`, ""},
		{"absent beside one that is there", "repo:{owner}/{name}", `{"owner":"ann"}`, ""},
		{"null", "mail:{to}", `{"to":null}`, ""},
		{"empty", "mail:{to}", `{"to":""}`, ""},
		{"an object", "mail:{to}", `{"to":{"a":1}}`, ""},
		{"an empty list", "mail:{to}", `{"to":[]}`, ""},
		{"a list of lists", "mail:{to}", `{"to":[["a"]]}`, ""},
		{"a list with a hole", "mail:{to}", `{"to":["a",null]}`, ""},
		{"a long list", "mail:{to}", `{"to":[` + strings.Repeat(`"a",`, 20) + `"a"]}`, ""},
		{"too long", "mail:{to}", `{"to":"` + long + `"}`, ""},
		{"a huge argument", "mail:{to}", `{"to":"` + strings.Repeat("x", 1<<20) + `"}`, ""},
		{"no object", "mail:{to}", `[1]`, ""},
		{"nothing", "mail:{to}", ``, ""},
		{"a template that does not fit", "mail:{to", `{"to":"x"}`, ""},
	} {
		if got := resource(c.template, c.arguments); got != c.want {
			t.Errorf("%s: %s of %.80s is %q, want %q", c.name, c.template, c.arguments, got, c.want)
		}
	}
	if got := domain.DefaultSettings().Resource("con_7/send_email", json.RawMessage(`{"to":"x"}`)); got != "" {
		t.Errorf("without a template the resource is %q", got)
	}
}

func TestTemplatesThatDoNotFit(t *testing.T) {
	for _, template := range []string{"", "mail:{to", "mail:to}", "{}", "mail:{}", "{a}{b}", "mail:{{to}}", "mail:{a b}", "mail:\n{to}", "mail:\u200b{to}",
		strings.Repeat("x", 501), "mail:{to}}"} {
		s := domain.DefaultSettings()
		s.ResourceTemplates = []domain.ResourceTemplate{{Tool: "con_7/*", Template: template}}
		if faults := s.Faults(); len(faults) != 1 || faults[0].Path != "resourceTemplates[0].template" {
			t.Errorf("%q: the faults are %v", template, faults)
		}
	}
	s := domain.DefaultSettings()
	s.ResourceTemplates = []domain.ResourceTemplate{{Tool: "con_7/send_email", Template: "mail:{to}"}, {Tool: "*", Template: "all of it"}, {Tool: "con_7/x", Template: "{owner}/{name}"}}
	if faults := s.Faults(); faults != nil {
		t.Errorf("%v", faults)
	}
}

// Whatever a model writes, the resource can be seen, is short, and is the same for the
// same arguments alone.
func TestAResourceTellsCallsApart(t *testing.T) {
	value := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a", "a/b", "/", "b", "%2F", "a%2Fb", ",", "a,b", " ", "\x00", "\u202e", "\u200b"}))
	shown := 0
	rapid.Check(t, func(t *rapid.T) {
		write := func(owner, name string) string {
			raw, err := json.Marshal(map[string]string{"owner": owner, "name": name})
			if err != nil {
				t.Fatal(err)
			}
			return resource("repo:{owner}/{name}", string(raw))
		}
		a, b, c, d := value.Draw(t, "a"), value.Draw(t, "b"), value.Draw(t, "c"), value.Draw(t, "d")
		one, other := write(a, b), write(c, d)
		if len(one) > 500 || strings.ContainsFunc(one, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar }) {
			t.Fatalf("the resource is %q", one)
		}
		if one != "" && one == other && (a != c || b != d) {
			t.Fatalf("%q/%q and %q/%q are both %q", a, b, c, d, one)
		}
		if one != "" {
			shown++
		}
	})
	if shown == 0 {
		t.Error("no resource was shown")
	}
}
