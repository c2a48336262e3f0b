package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"openbot/domain"
)

// reasonParameter is the extra parameter of App and host tools. It is taken out
// again before the App sees the call.
const reasonParameter = "openbot_reason"

const reasonSchema = `{"type":"string","description":"Why you make this call, in one sentence. A person or Bot who decides about it reads this; the App does not."}`

// tool is one tool that a Bot may ask for, ready to be shown and checked.
type tool struct {
	shown      domain.ModelTool
	kind       domain.CallKind
	schema     *jsonschema.Resolved // of the App's own arguments
	bound      *schemaBound         // of the work that the schema makes; nil for our own
	hasReason  bool                 // openbot_reason was added and must be taken out
	connection *domain.Connection
	host       *domain.HostTool
	name       string // the App's or host's own name
	builtin    builtin
}

// decide is the tool of review Chats, made once.
var decide = sync.OnceValue(decideTool)

// toolbox is what a model is shown in one step.
type toolbox struct {
	order  []domain.ModelTool
	byName map[string]tool
}

func (b *toolbox) add(t tool) {
	if _, taken := b.byName[t.shown.Name]; taken {
		return
	}
	b.byName[t.shown.Name] = t
	b.order = append(b.order, t.shown)
}

// toolboxFor gathers the tools of a step: OpenBot's own, the host's, and those of
// every App that the Member can see. A review Chat has one tool alone.
func (e *Engine) toolboxFor(f *domain.StepFacts) *toolbox {
	box := &toolbox{byName: map[string]tool{}}
	if f.Chat.Kind == domain.ChatReview {
		b := decide()
		box.add(tool{shown: b.shown, kind: b.kind, schema: b.schema, name: b.shown.Name, builtin: b})
		return box
	}
	for _, b := range builtins() {
		if b.channel && f.Chat.Channel == "" {
			continue
		}
		box.add(tool{shown: b.shown, kind: b.kind, schema: b.schema, hasReason: b.hasReason, name: b.shown.Name, builtin: b})
	}
	var names domain.ModelToolNames
	for i := range f.HostTools {
		h := &f.HostTools[i]
		prepared, err := e.tools.of(string(h.ID), h.Revision, h.Name, h.Schema)
		if err != nil {
			continue // its schema was checked when it was registered
		}
		box.add(tool{shown: domain.ModelTool{Name: h.Name, Description: h.Description, Schema: prepared.shown},
			kind: domain.CallHost, schema: prepared.schema, bound: prepared.bound, hasReason: prepared.hasReason, host: h, name: h.Name})
	}
	for i := range f.Connections {
		c := &f.Connections[i]
		for _, t := range c.Look.Tools {
			prepared, err := e.tools.of(string(c.ID), c.Revision, t.Name, t.Schema)
			if err != nil {
				continue // the look leaves out tools whose schema cannot be read
			}
			box.add(tool{shown: domain.ModelTool{Name: names.Name(*c, t.Name), Description: t.Description, Schema: prepared.shown},
				kind: domain.CallApp, schema: prepared.schema, bound: prepared.bound, hasReason: prepared.hasReason, connection: c, name: t.Name})
		}
	}
	return box
}

// preparedTools caches what was made of a tool's schema. A revision names the
// content, so an entry never goes stale.
type preparedTools struct {
	mu      sync.Mutex
	entries map[string]prepared
}

type prepared struct {
	schema    *jsonschema.Resolved
	bound     *schemaBound
	shown     json.RawMessage
	hasReason bool
	err       error
}

const maxPrepared = 4096

func (p *preparedTools) of(owner string, revision int64, name string, schema json.RawMessage) (prepared, error) {
	key := fmt.Sprintf("%s/%d/%s", owner, revision, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if got, ok := p.entries[key]; ok {
		return got, got.err
	}
	if p.entries == nil || len(p.entries) >= maxPrepared {
		p.entries = map[string]prepared{}
	}
	got := prepare(schema)
	p.entries[key] = got
	return got, got.err
}

func prepare(raw json.RawMessage) prepared {
	resolved, err := resolveSchema(raw)
	if err != nil {
		return prepared{err: err}
	}
	bound, err := boundSchema(raw)
	if err != nil {
		return prepared{err: err}
	}
	shown, added := withReason(raw)
	return prepared{schema: resolved, bound: bound, shown: shown, hasReason: added}
}

// resolveSchema reads a JSON Schema. References that leave the document are
// refused: nothing is ever fetched because an App says so.
func resolveSchema(raw json.RawMessage) (*jsonschema.Resolved, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("the schema is not a JSON Schema: %w", err)
	}
	return schema.Resolve(&jsonschema.ResolveOptions{})
}

// withReason adds openbot_reason to a copy of a schema's properties. A tool that
// has a parameter of that name of its own keeps it, and gets none of ours.
func withReason(raw json.RawMessage) (json.RawMessage, bool) {
	var schema map[string]json.RawMessage
	if json.Unmarshal(raw, &schema) != nil || schema == nil {
		return raw, false
	}
	var properties map[string]json.RawMessage
	if p, ok := schema["properties"]; ok && json.Unmarshal(p, &properties) != nil {
		return raw, false
	}
	if properties == nil { // absent, or null
		properties = map[string]json.RawMessage{}
	}
	if _, own := properties[reasonParameter]; own {
		return raw, false
	}
	properties[reasonParameter] = json.RawMessage(reasonSchema)
	p, err := json.Marshal(properties)
	if err != nil {
		return raw, false
	}
	schema["properties"] = p
	out, err := json.Marshal(schema)
	if err != nil {
		return raw, false
	}
	return out, true
}

// fits checks arguments against a tool's schema.
func (t tool) fits(arguments json.RawMessage) error {
	var value any
	if err := json.Unmarshal(arguments, &value); err != nil {
		return err
	}
	if !t.bound.within(value) {
		return errors.New("they are larger or nested deeper than the tool's schema can be checked for")
	}
	if err := t.schema.Validate(value); err != nil {
		return shorter(err)
	}
	return nil
}

// shorter cuts the path of schemas that the validator puts before the cause.
func shorter(err error) error {
	text := err.Error()
	if i := strings.LastIndex(text, ": validating "); i >= 0 {
		text = text[i+2:]
	}
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return fmt.Errorf("%s", text)
}
