package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"openbot/domain"
)

// fitsSchema prepares a schema as that of an App and checks arguments against it.
func fitsSchema(t *testing.T, schema, arguments string) error {
	t.Helper()
	p := prepare(json.RawMessage(schema))
	if p.err != nil {
		return p.err
	}
	return tool{schema: p.schema, bound: p.bound}.fits(json.RawMessage(arguments))
}

func TestTheReasonIsAddedToAnySchemaOfAnObject(t *testing.T) {
	for schema, added := range map[string]bool{
		`{"type":"object"}`:                   true,
		`{"type":"object","properties":{}}`:   true,
		`{"type":"object","properties":null}`: true,
		`{"type":"object","properties":{"to":{"type":"string"}},"required":["to"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{"openbot_reason":{"type":"number"}}}`:                                    false,
		`null`: false,
		`true`: false,
	} {
		p := prepare(json.RawMessage(schema))
		if p.err != nil {
			continue
		}
		if p.hasReason != added {
			t.Errorf("%s: the reason was added: %v", schema, p.hasReason)
		}
		var shown struct{ Properties map[string]json.RawMessage }
		if err := json.Unmarshal(p.shown, &shown); added && (err != nil || shown.Properties[reasonParameter] == nil) {
			t.Errorf("%s is shown as %s", schema, p.shown)
		}
	}
}

// The schema comes from an App that nobody trusts: it may end neither the process
// nor the patience of those who wait.
func TestASchemaThatNeverEndsIsRefused(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","$ref":"#"}`,
		`{"type":"object","allOf":[{"$ref":"#"}]}`,
		`{"type":"object","not":{"not":{"$ref":"#"}}}`,
		`{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`,
		`{"type":"object","properties":{"x":{"$ref":"#/properties/x"}}}`,
		`{"type":"object","dependentSchemas":{"x":{"$ref":"#"}}}`,
		`{"type":"object","if":{"$ref":"#"}}`,
		`{"type":"object","$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]}`,
		`{"type":"object","$anchor":"a","allOf":[{"$ref":"#a"}]}`,
		`{"type":"object","$id":"https://x.example/s","allOf":[{"$ref":"https://x.example/s"}]}`,
		`{"type":"object","$defs":{"a%b":{"$ref":"#/$defs/a%25b"}},"$ref":"#/$defs/a%25b"}`,
	} {
		if err := fitsSchema(t, schema, `{"x":1}`); err == nil {
			t.Errorf("%s was taken", schema)
		}
	}
}

func TestASchemaThatDoublesIsNotRun(t *testing.T) {
	double := func(levels int, wrap string) string {
		var b strings.Builder
		b.WriteString(`{"type":"object","$defs":{`)
		for i := range levels {
			fmt.Fprintf(&b, `"a%d":{"allOf":[`+wrap+`,`+wrap+`]},`, i, i+1, i+1)
		}
		fmt.Fprintf(&b, `"a%d":{}},"$ref":"#/$defs/a0"}`, levels)
		return b.String()
	}
	deep := strings.Repeat(`{"x":`, 40) + `1` + strings.Repeat(`}`, 40)
	began := time.Now()
	for name, err := range map[string]error{
		"in place":      fitsSchema(t, double(40, `{"$ref":"#/$defs/a%d"}`), `{}`),
		"by properties": fitsSchema(t, double(40, `{"properties":{"x":{"$ref":"#/$defs/a%d"}}}`), deep),
		"into itself":   fitsSchema(t, `{"type":"object","anyOf":[{"properties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"}}}]}`, deep),
	} {
		if err == nil {
			t.Errorf("a schema that doubles %s was run over 40 levels", name)
		}
	}
	if spent := time.Since(began); spent > 10*time.Second {
		t.Errorf("refusing took %v", spent)
	}
}

func TestSchemasThatPeopleWriteAreRun(t *testing.T) {
	value := `{"type":"object","properties":{"v":{"$ref":"#/$defs/value"}},"$defs":{"value":{"anyOf":[{"type":"string"},
		{"type":"array","items":{"$ref":"#/$defs/value"}},{"type":"object","additionalProperties":{"$ref":"#/$defs/value"}}]}}}`
	union := `{"type":"object","properties":{"q":{"$ref":"#/$defs/q"}},"$defs":{"q":{"oneOf":[
		{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#/$defs/q"}}},"required":["and"],"additionalProperties":false},
		{"type":"object","properties":{"not":{"$ref":"#/$defs/q"}},"required":["not"],"additionalProperties":false},
		{"type":"object","properties":{"is":{"type":"string"}},"required":["is"],"additionalProperties":false}]}}}`
	list := `{"type":"object","properties":{"ids":{"type":"array","items":{"type":"integer"}}},"required":["ids"]}`
	for _, c := range []struct {
		schema, arguments string
		fits              bool
	}{
		{value, `{"v":` + strings.Repeat(`[{"a":`, 25) + `"x"` + strings.Repeat(`}]`, 25) + `}`, true},
		{value, `{"v":[1]}`, false},
		{union, `{"q":{"and":[{"not":{"is":"a"}},{"and":[{"is":"b"}]}]}}`, true},
		{union, `{"q":{"or":[]}}`, false},
		{list, `{"ids":[` + strings.Repeat("1,", 100_000) + `1]}`, true},
		{list, `{"ids":["1"]}`, false},
		{list, `{}`, false},
	} {
		if err := fitsSchema(t, c.schema, c.arguments); (err == nil) != c.fits {
			t.Errorf("%.60s of %.60s: %v", c.arguments, c.schema, err)
		}
	}
}

func TestReferencesThatLeaveTheDocumentAreRefused(t *testing.T) {
	for _, ref := range []string{"https://x.example/s.json", "http://127.0.0.1/s", "file:///etc/passwd", "other.json", "#/$defs/absent"} {
		if err := fitsSchema(t, `{"type":"object","properties":{"x":{"$ref":"`+ref+`"}}}`, `{"x":1}`); err == nil {
			t.Errorf("%s was followed", ref)
		}
	}
}

// A name that a model learnt must go on meaning the same App when another of the
// same name is added.
func TestAnAddedAppTakesNoNameFromAnOlderOne(t *testing.T) {
	app := func(id domain.ConnectionID) domain.Connection {
		return domain.Connection{ID: id, Name: "mail", Revision: 1, Look: domain.AppLook{Tools: []domain.AppTool{{Name: "send", Schema: json.RawMessage(`{"type":"object"}`)}}}}
	}
	e := New(Options{})
	before := e.toolboxFor(&domain.StepFacts{Connections: []domain.Connection{app("con_1")}})
	after := e.toolboxFor(&domain.StepFacts{Connections: []domain.Connection{app("con_1"), app("con_2")}})
	if before.byName["mail__send"].connection.ID != "con_1" || after.byName["mail__send"].connection.ID != "con_1" || len(after.order) != len(before.order)+1 {
		t.Error("the newer App took the older one's name, or has none")
	}
}
