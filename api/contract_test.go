package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// contract is /openapi.json as a client reads it. Every answer of every test is
// held against it.
type contract struct {
	operations []operation
	defs       map[string]any
}

type operation struct {
	method, path string
	id, role     string
	parameters   []parameter
	body         map[string]any // the schema, nil without one
	optionalBody bool
	responses    map[string]map[string]any // status to media types
}

type parameter struct{ Name, In string }

func readContract(t *testing.T, h http.Handler) *contract {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	// $defs is where JSON Schema itself looks for what is shared.
	raw := strings.ReplaceAll(w.Body.String(), "#/components/schemas/", "#/$defs/")
	if c, ok := contracts.Load(raw); ok {
		return c.(*contract)
	}
	var doc struct {
		OpenAPI    string
		Components struct{ Schemas map[string]any }
		Paths      map[string]map[string]struct {
			OperationID string
			Parameters  []parameter
			Security    []map[string][]string
			RequestBody *struct {
				Required bool
				Content  map[string]struct{ Schema map[string]any }
			}
			Responses map[string]struct {
				Content map[string]struct{ Schema map[string]any }
			}
			Role string `json:"x-openbot-role"`
		}
	}
	must(t, json.Unmarshal([]byte(raw), &doc))
	if doc.OpenAPI != "3.1.0" {
		t.Fatalf("the document is of OpenAPI %q", doc.OpenAPI)
	}
	c := &contract{defs: doc.Components.Schemas}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			o := operation{method: strings.ToUpper(method), path: path, id: op.OperationID, role: op.Role, parameters: op.Parameters, responses: map[string]map[string]any{}}
			if op.RequestBody != nil {
				o.body, o.optionalBody = op.RequestBody.Content["application/json"].Schema, !op.RequestBody.Required
			}
			for status, r := range op.Responses {
				media := map[string]any{}
				for m, content := range r.Content {
					media[m] = content.Schema
				}
				o.responses[status] = media
			}
			c.operations = append(c.operations, o)
		}
	}
	slices.SortFunc(c.operations, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	contracts.Store(raw, c)
	return c
}

// contracts keeps documents by their text: every house has the same.
var contracts sync.Map

// find gives the operation of an address.
func (c *contract) find(method, path string) (operation, bool) {
	for _, o := range c.operations {
		if o.method != method {
			continue
		}
		want, got := strings.Split(o.path, "/"), strings.Split(path, "/")
		if len(want) != len(got) {
			continue
		}
		same := true
		for i := range want {
			same = same && (strings.HasPrefix(want[i], "{") || want[i] == got[i])
		}
		if same {
			return o, true
		}
	}
	return operation{}, false
}

// resolve follows a $ref.
func (c *contract) resolve(schema map[string]any) map[string]any {
	if ref := text(schema["$ref"]); ref != "" {
		out, _ := c.defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		return out
	}
	return schema
}

// prepared keeps schemas by their text: every house has the same.
var prepared sync.Map

// schema prepares a schema with those that it speaks of.
func (c *contract) schema(t *testing.T, schema map[string]any) *jsonschema.Resolved {
	t.Helper()
	key, err := json.Marshal(schema)
	must(t, err)
	if got, ok := prepared.Load(string(key)); ok {
		return got.(*jsonschema.Resolved)
	}
	whole := maps.Clone(schema)
	whole["$defs"] = map[string]any{}
	c.need(whole["$defs"].(map[string]any), key)
	raw, err := json.Marshal(whole)
	must(t, err)
	var parsed jsonschema.Schema
	must(t, json.Unmarshal(raw, &parsed))
	resolved, err := parsed.Resolve(nil)
	must(t, err)
	prepared.Store(string(key), resolved)
	return resolved
}

var reference = regexp.MustCompile(`"#/\$defs/([^"]+)"`)

// need adds the schemas that a text refers to.
func (c *contract) need(defs map[string]any, raw []byte) {
	for _, m := range reference.FindAllSubmatch(raw, -1) {
		name := string(m[1])
		if _, there := defs[name]; there {
			continue
		}
		defs[name] = c.defs[name]
		inner, err := json.Marshal(c.defs[name])
		if err == nil {
			c.need(defs, inner)
		}
	}
}

// fits holds an answer against the document.
func (h *house) fits(r *http.Request, a answer) {
	h.t.Helper()
	op, ok := h.contract.find(r.Method, r.URL.Path)
	if !ok {
		return
	}
	media, ok := op.responses[strconv.Itoa(a.status)]
	if !ok {
		h.t.Errorf("%s gave %d, which its document does not name: %s", op.id, a.status, a.body)
		return
	}
	if len(media) == 0 {
		if a.body != "" {
			h.t.Errorf("%s gave %d with a body that its document does not name: %s", op.id, a.status, a.body)
		}
		return
	}
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	schema, ok := media[kind].(map[string]any)
	if !ok {
		h.t.Errorf("%s gave %d as %q; its document names %v", op.id, a.status, kind, slices.Collect(maps.Keys(media)))
		return
	}
	if !strings.HasSuffix(kind, "json") || kind == "application/x-ndjson" {
		return // a text, whose form the document does not describe
	}
	var value any
	must(h.t, json.Unmarshal([]byte(a.body), &value))
	if err := h.contract.schema(h.t, schema).Validate(value); err != nil {
		h.t.Errorf("%s gave %d with a body that does not fit its document: %v\n%s", op.id, a.status, err, a.body)
	}
}

// The document names every operation, with words, an error form and the role.
func TestTheDocumentIsWhole(t *testing.T) {
	h := newHouse(t)
	seen := map[string]bool{}
	for _, o := range h.contract.operations {
		if o.id == "" || seen[o.id] {
			t.Errorf("%s %s has no name of its own: %q", o.method, o.path, o.id)
		}
		seen[o.id] = true
		signed := o.id == "signalTrigger" // a signature over the body stands for the token
		if (!signed && strings.HasPrefix(o.path, "/v1/") || strings.HasPrefix(o.path, "/api/v1/")) != (o.role != "") {
			t.Errorf("%s has the role %q", o.id, o.role)
		}
		takes := func(name, in string) bool { return slices.Contains(o.parameters, parameter{name, in}) }
		if name := o.named(); name != "" && !takes(name, "path") {
			t.Errorf("%s does not describe {%s}", o.id, name)
		}
		if o.method == "POST" && !signed && !takes("Idempotency-Key", "header") {
			t.Errorf("%s takes no Idempotency-Key", o.id)
		}
		if strings.HasPrefix(o.id, "list") && o.id != "listItems" && (!takes("limit", "query") || !takes("cursor", "query")) {
			t.Errorf("%s has no pages", o.id)
		}
		if len(o.responses) < 3 {
			t.Errorf("%s names the answers %v alone", o.id, slices.Collect(maps.Keys(o.responses)))
		}
	}
	if len(seen) < 40 {
		t.Errorf("there are %d operations only", len(seen))
	}
	docs := h.call("GET", "/docs", "").body
	for id := range seen {
		if !strings.Contains(docs, `id="`+id+`"`) {
			t.Errorf("/docs does not describe %s", id)
		}
	}
}

// A null is allowed exactly where the document says so: the check of all answers
// can fail.
func TestTheContractNotices(t *testing.T) {
	h := newHouse(t)
	bot := h.contract.defs["Bot"].(map[string]any)
	properties := bot["properties"].(map[string]any)
	if got := properties["owner"].(map[string]any)["type"]; !slices.Contains(got.([]any), any("null")) {
		t.Errorf("owner is %v", got)
	}
	if got := properties["name"].(map[string]any)["type"]; got != "string" {
		t.Errorf("name is %v", got)
	}
	if bot["additionalProperties"] != false {
		t.Error("a Bot may have fields that nobody named")
	}
	request := h.contract.defs["Request"].(map[string]any)
	decision := request["properties"].(map[string]any)["decision"].(map[string]any)["anyOf"]
	if len(decision.([]any)) != 2 {
		t.Errorf("decision is %v", decision)
	}
}
