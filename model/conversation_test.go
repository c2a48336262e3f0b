package model_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"openbot/domain"
)

func TestHistoryThatNoProviderWouldTake(t *testing.T) {
	given := &server{body: protocols[0].hi}
	request := ask("openai:x")
	request.System = ""
	request.Messages = []domain.ModelMessage{
		{Role: domain.RoleTool, CallID: "lost", Text: "a result without its call"},
		{Role: domain.RoleAssistant, Calls: []domain.ModelCall{
			{ID: "call_1_1", Name: "no such tool!", Arguments: json.RawMessage("[1]")},
			{ID: "call_1_2", Name: "", Arguments: json.RawMessage("{\"a\":\"\xff\"}")},
		}},
		{Role: domain.RoleTool, CallID: "call_1_2", Text: "caf\xe9"},
		{Role: domain.RoleAssistant, Calls: []domain.ModelCall{
			{ID: "call_1_1", Name: strings.Repeat("n", 70), Arguments: json.RawMessage(`{"a":"\ud800"}`)},
			{ID: strings.Repeat("i", 41), Name: "f"},
		}},
		{Role: domain.RoleTool, CallID: "call_1_1", Text: "the second one's"},
		{Role: domain.RoleTool, CallID: "call_1_1", Text: "once too often"},
	}
	if _, err := given.start(t).Call(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	same(t, given.got()[0].body["messages"], `[
		{"role": "assistant", "content": null, "tool_calls": [
			{"id": "call_1_1", "type": "function", "function": {"name": "no_such_tool_", "arguments": "{\"malformed_arguments\":\"[1]\"}"}},
			{"id": "call_1_2", "type": "function", "function": {"name": "unnamed", "arguments": "{\"a\":\"�\"}"}}]},
		{"role": "tool", "tool_call_id": "call_1_1", "content": "No result was recorded for this call."},
		{"role": "tool", "tool_call_id": "call_1_2", "content": "caf�"},
		{"role": "assistant", "content": null, "tool_calls": [
			{"id": "call_h3", "type": "function", "function": {"name": "`+strings.Repeat("n", 64)+`", "arguments": "{\"a\":\"�\"}"}},
			{"id": "call_h4", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
		{"role": "tool", "tool_call_id": "call_h3", "content": "the second one's"},
		{"role": "tool", "tool_call_id": "call_h4", "content": "No result was recorded for this call."}]`)
}

var allowedID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Whatever a history holds, both requests keep the protocols' rules: every call is
// answered right behind it, no ID comes twice, roles take turns where they must.
func TestAnyHistoryIsAValidRequest(t *testing.T) {
	openAI, anthropic := &server{body: protocols[0].hi}, &server{body: protocols[1].hi}
	models := map[string]interface {
		check(t *rapid.T, request domain.ModelRequest)
	}{
		"openai:x":    checker{openAI, openAI.start(t).Call, openAIRules},
		"anthropic:x": checker{anthropic, anthropic.start(t).Call, anthropicRules},
	}
	id := rapid.SampledFrom([]string{"", "a", "b", "call_h1", "call_h2", "ü", strings.Repeat("x", 50)})
	call := rapid.Custom(func(t *rapid.T) domain.ModelCall {
		return domain.ModelCall{
			ID: id.Draw(t, "id"), Name: rapid.OneOf(rapid.Just("f"), rapid.String()).Draw(t, "name"),
			Arguments: rapid.OneOf(rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"a":"\uDfff"}`), json.RawMessage("{\"a\":\"\xff\"}"), json.RawMessage(`{`), json.RawMessage("null")}),
				rapid.Map(rapid.SliceOf(rapid.Byte()), func(raw []byte) json.RawMessage { return raw })).Draw(t, "arguments"),
		}
	})
	text := rapid.OneOf(rapid.SampledFrom([]string{"", " ", "hi", "\xff"}), rapid.String())
	message := rapid.Custom(func(t *rapid.T) domain.ModelMessage {
		made := domain.ModelMessage{
			Role: rapid.SampledFrom([]domain.Role{domain.RoleUser, domain.RoleAssistant, domain.RoleTool}).Draw(t, "role"),
			Text: text.Draw(t, "text"),
		}
		switch made.Role {
		case domain.RoleAssistant:
			made.Calls = rapid.SliceOfN(call, 0, 3).Draw(t, "calls")
		case domain.RoleTool:
			made.CallID, made.Failed = id.Draw(t, "call"), rapid.Bool().Draw(t, "failed")
		}
		return made
	})
	rapid.Check(t, func(t *rapid.T) {
		request := domain.ModelRequest{
			System: text.Draw(t, "system"), Messages: rapid.SliceOfN(message, 0, 8).Draw(t, "messages"),
			Tools: []domain.ModelTool{{Name: "f", Description: text.Draw(t, "description"),
				Schema: json.RawMessage(rapid.OneOf(rapid.SampledFrom([]string{`{"type":"array"}`, `{"properties":null}`, ``, `null`}), rapid.String()).Draw(t, "schema"))}},
		}
		for name, checker := range models {
			request.Model = name
			checker.check(t, request)
		}
	})
}

type checker struct {
	server *server
	call   func(ctx context.Context, request domain.ModelRequest) (domain.ModelReply, error)
	rules  func(t *rapid.T, messages []any)
}

func (c checker) check(t *rapid.T, request domain.ModelRequest) {
	if _, err := c.call(t.Context(), request); err != nil {
		t.Fatalf("%s: %v", request.Model, err)
	}
	got := c.server.got()
	last := got[len(got)-1]
	if last.body == nil || !utf8.ValidString(last.raw) {
		t.Fatalf("no valid JSON: %q", last.raw)
	}
	messages, _ := last.body["messages"].([]any)
	if len(messages) == 0 {
		t.Fatalf("no messages: %s", last.raw)
	}
	c.rules(t, messages)
}

func openAIRules(t *rapid.T, messages []any) {
	var due []string
	seen := map[string]bool{}
	for _, one := range messages {
		message := one.(map[string]any)
		if message["role"] == "tool" {
			if len(due) == 0 || message["tool_call_id"] != due[0] {
				t.Fatalf("the result of %v comes where %v is due", message["tool_call_id"], due)
			}
			due = due[1:]
			continue
		}
		if len(due) > 0 {
			t.Fatalf("%v are not answered", due)
		}
		calls, _ := message["tool_calls"].([]any)
		for _, one := range calls {
			call := one.(map[string]any)
			function := call["function"].(map[string]any)
			due = append(due, checkCall(t, seen, call["id"], function["name"]))
			var arguments map[string]any
			if err := json.Unmarshal([]byte(function["arguments"].(string)), &arguments); err != nil || arguments == nil {
				t.Fatalf("arguments %v: %v", function["arguments"], err)
			}
		}
	}
	if len(due) > 0 {
		t.Fatalf("%v are not answered", due)
	}
}

func anthropicRules(t *rapid.T, messages []any) {
	var due []string
	seen := map[string]bool{}
	for i, one := range messages {
		message := one.(map[string]any)
		if want := []string{"user", "assistant"}[i%2]; message["role"] != want {
			t.Fatalf("message %d is of %v", i, message["role"])
		}
		blocks := message["content"].([]any)
		if len(blocks) == 0 {
			t.Fatalf("message %d is empty", i)
		}
		for _, one := range blocks {
			block := one.(map[string]any)
			switch block["type"] {
			case "tool_result":
				if len(due) == 0 || block["tool_use_id"] != due[0] {
					t.Fatalf("the result of %v comes where %v is due", block["tool_use_id"], due)
				}
				due = due[1:]
			case "tool_use":
				if _, ok := block["input"].(map[string]any); !ok {
					t.Fatalf("input %v", block["input"])
				}
				due = append(due, checkCall(t, seen, block["id"], block["name"]))
			default:
				if message["role"] == "user" && len(due) > 0 {
					t.Fatalf("%v are not answered first", due)
				}
				if text, _ := block["text"].(string); strings.TrimSpace(text) == "" {
					t.Fatalf("a blank text")
				}
			}
		}
	}
	if len(due) > 0 || len(messages)%2 == 0 {
		t.Fatalf("%v are not answered, %d messages", due, len(messages))
	}
}

func checkCall(t *rapid.T, seen map[string]bool, id, name any) string {
	known, _ := id.(string)
	called, _ := name.(string)
	if !allowedID.MatchString(known) || !allowedID.MatchString(called) || seen[known] {
		t.Fatalf("call %q of %q, seen %v", known, called, seen)
	}
	seen[known] = true
	return known
}
