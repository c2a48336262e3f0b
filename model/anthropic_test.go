package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"openbot/domain"
)

func TestAnthropicRequest(t *testing.T) {
	given := &server{body: protocols[1].hi}
	models := given.start(t)
	request := ask("anthropic:claude-sonnet-4-5")
	request.Messages, request.Tools = history, tools
	if reply, err := models.Call(t.Context(), request); err != nil || reply.Text != "hi" {
		t.Fatalf("%+v %v", reply, err)
	}
	got := given.got()[0]
	if got.path != "/v1/messages" || got.header.Get("X-Api-Key") != anthropicKey || got.header.Get("Anthropic-Version") != "2023-06-01" ||
		got.header.Get("Authorization") != "" {
		t.Errorf("%s %v", got.path, got.header)
	}
	same(t, any(got.body), `{
		"model": "claude-sonnet-4-5", "max_tokens": 8192, "system": "Be brief.",
		"messages": [
			{"role": "user", "content": [{"type": "text", "text": "mail them"}]},
			{"role": "assistant", "content": [
				{"type": "text", "text": "I will."},
				{"type": "tool_use", "id": "c1", "name": "mail__send", "input": {"to": "a<b>&c"}},
				{"type": "tool_use", "id": "c2", "name": "mail__send", "input": {"malformed_arguments": "{\"to\":"}}]},
			{"role": "user", "content": [
				{"type": "tool_result", "tool_use_id": "c1", "content": "sent"},
				{"type": "tool_result", "tool_use_id": "c2", "content": "bad arguments", "is_error": true},
				{"type": "text", "text": "hurry"}]},
			{"role": "assistant", "content": [{"type": "tool_use", "id": "c3", "name": "mail__list", "input": {}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c3"}]}
		],
		"tools": [
			{"name": "mail__send", "description": "Sends",
				"input_schema": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}},
			{"name": "mail__list", "input_schema": {"type": "object", "properties": {}, "description": "a<b"}},
			{"name": "mail__odd", "input_schema": {"type": "object", "properties": {}}}
		]}`)
}

func TestAnthropicRolesTakeTurns(t *testing.T) {
	given := &server{body: protocols[1].hi}
	request := ask("anthropic:x")
	request.System = ""
	request.Messages = []domain.ModelMessage{
		{Role: domain.RoleAssistant, Text: "welcome "},
		{Role: domain.RoleUser, Text: "one"},
		{Role: domain.RoleUser, Text: " \n"},
		{Role: domain.RoleUser, Text: "two"},
		{Role: domain.RoleAssistant, Text: ""},
		{Role: domain.RoleUser, Text: "three"},
		{Role: domain.RoleAssistant, Text: "four\n"},
	}
	if _, err := given.start(t).Call(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	same(t, given.got()[0].body["messages"], `[
		{"role": "user", "content": [{"type": "text", "text": "(nothing)"}]},
		{"role": "assistant", "content": [{"type": "text", "text": "welcome"}]},
		{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}, {"type": "text", "text": "three"}]},
		{"role": "assistant", "content": [{"type": "text", "text": "four"}]},
		{"role": "user", "content": [{"type": "text", "text": "(nothing)"}]}]`)
	if _, there := given.got()[0].body["system"]; there {
		t.Error("an empty system prompt was sent")
	}
}

func TestAnthropicReplies(t *testing.T) {
	ends := func(why string, blocks ...string) string {
		return `{"type":"message","content":[` + strings.Join(blocks, ",") + `],"stop_reason":"` + why + `"}`
	}
	text := `{"type":"text","text":"half"}`
	use := `{"type":"tool_use","id":"toolu_1","name":"f","input":{"x": 1}}`
	asked := domain.ModelCall{ID: "toolu_1", Name: "f", Arguments: json.RawMessage(`{"x": 1}`)}
	cut := "half\n\n[The answer was cut here: it reached the model's output limit.]"
	cases := []struct {
		name  string
		body  string
		text  string
		calls []domain.ModelCall
		fails string
	}{
		{"text", ends("end_turn", text), "half", nil, ""},
		{"text in blocks beside others", ends("end_turn", `{"type":"thinking","thinking":"hm"}`, text, text), "halfhalf", nil, ""},
		{"nothing more to say", ends("end_turn"), "", nil, ""},
		{"a call", ends("tool_use", use), "", []domain.ModelCall{asked}, ""},
		{"a call beside text", ends("tool_use", text, use), "half", []domain.ModelCall{asked}, ""},
		{"calls with the same ID", ends("tool_use", use, use), "", []domain.ModelCall{asked, {ID: "call_2", Name: "f", Arguments: asked.Arguments}}, ""},
		{"a call without input", ends("tool_use", `{"type":"tool_use","id":"a","name":"f"}`), "", []domain.ModelCall{{ID: "a", Name: "f", Arguments: json.RawMessage("{}")}}, ""},
		{"cut text", ends("max_tokens", text), cut, nil, ""},
		{"cut call", ends("max_tokens", text, use), "", nil, "middle of a tool call"},
		{"cut before any text", ends("max_tokens"), "", nil, "output limit"},
		{"full context", ends("model_context_window_exceeded", use), "", nil, "middle of a tool call"},
		{"refusal in words", ends("refusal", text), "half", nil, ""},
		{"refusal without words", ends("refusal"), "", nil, "refused"},
		{"refusal with a call", ends("refusal", text, use), "", nil, "refused"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			given := &server{body: c.body}
			reply, err := given.start(t).Call(t.Context(), ask("anthropic:x"))
			checkReply(t, reply, err, c.text, c.calls, c.fails)
		})
	}
}

func TestAnthropicUsageHoldsAllInput(t *testing.T) {
	given := &server{body: `{"content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",
		"usage":{"input_tokens":700,"cache_read_input_tokens":200,"cache_creation_input_tokens":100,"output_tokens":50}}`}
	reply, err := given.start(t).Call(t.Context(), ask("anthropic:x"))
	want := domain.ModelUsage{InputTokens: 1000, CachedInputTokens: 200, CacheWriteTokens: 100, OutputTokens: 50}
	if err != nil || reply.Usage != want {
		t.Errorf("got %+v %v, want %+v", reply.Usage, err, want)
	}
}
