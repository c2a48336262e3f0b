package model_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"openbot/domain"
)

// history is a Chat with all that a history can hold: two calls of one step with a
// text beside them, a message that came in between, and a second step.
var history = []domain.ModelMessage{
	{Role: domain.RoleUser, Text: "mail them"},
	{Role: domain.RoleAssistant, Text: "I will.", Calls: []domain.ModelCall{
		{ID: "c1", Name: "mail__send", Arguments: json.RawMessage(`{"to": "a<b>&c"}`)},
		{ID: "c2", Name: "mail__send", Arguments: json.RawMessage(`{"to":`)},
	}},
	{Role: domain.RoleUser, Text: "hurry"},
	{Role: domain.RoleTool, CallID: "c2", Text: "bad arguments", Failed: true},
	{Role: domain.RoleTool, CallID: "c1", Text: "sent"},
	{Role: domain.RoleAssistant, Calls: []domain.ModelCall{{ID: "c3", Name: "mail__list"}}},
	{Role: domain.RoleTool, CallID: "c3", Text: ""},
}

var tools = []domain.ModelTool{
	{Name: "mail__send", Description: "Sends", Schema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}`)},
	{Name: "mail__list", Schema: json.RawMessage(`{"description":"a<b"}`)},
	{Name: "mail__odd", Schema: json.RawMessage(`no JSON`)},
}

// same compares JSON by value.
func same(t *testing.T, got any, want string) {
	t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatalf("the wanted JSON is none: %v", err)
	}
	if !reflect.DeepEqual(got, wanted) {
		shown, _ := json.Marshal(got)
		t.Errorf("got  %s\nwant %s", shown, want)
	}
}

func TestOpenAIRequest(t *testing.T) {
	given := &server{body: protocols[0].hi}
	models := given.start(t)
	request := ask("openai:llama3:8b")
	request.Messages, request.Tools = history, tools
	if reply, err := models.Call(t.Context(), request); err != nil || reply.Text != "hi" {
		t.Fatalf("%+v %v", reply, err)
	}
	got := given.got()[0]
	if got.path != "/v1/chat/completions" || got.header.Get("Authorization") != "Bearer "+openAIKey || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", got.path, got.header)
	}
	if strings.Contains(got.raw, `\u003c`) {
		t.Error("the body escapes what needs no escape")
	}
	same(t, any(got.body), `{
		"model": "llama3:8b",
		"messages": [
			{"role": "system", "content": "Be brief."},
			{"role": "user", "content": "mail them"},
			{"role": "assistant", "content": "I will.", "tool_calls": [
				{"id": "c1", "type": "function", "function": {"name": "mail__send", "arguments": "{\"to\": \"a<b>&c\"}"}},
				{"id": "c2", "type": "function", "function": {"name": "mail__send", "arguments": "{\"malformed_arguments\":\"{\\\"to\\\":\"}"}}]},
			{"role": "tool", "tool_call_id": "c1", "content": "sent"},
			{"role": "tool", "tool_call_id": "c2", "content": "bad arguments"},
			{"role": "user", "content": "hurry"},
			{"role": "assistant", "content": null, "tool_calls": [
				{"id": "c3", "type": "function", "function": {"name": "mail__list", "arguments": "{}"}}]},
			{"role": "tool", "tool_call_id": "c3", "content": ""}
		],
		"tools": [
			{"type": "function", "function": {"name": "mail__send", "description": "Sends",
				"parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}}},
			{"type": "function", "function": {"name": "mail__list", "parameters": {"type": "object", "properties": {}, "description": "a<b"}}},
			{"type": "function", "function": {"name": "mail__odd", "parameters": {"type": "object", "properties": {}}}}
		]}`)
}

func TestOpenAIRequestWithoutAnything(t *testing.T) {
	given := &server{body: protocols[0].hi}
	if _, err := given.start(t).Call(t.Context(), domain.ModelRequest{Model: "openai:x", System: " "}); err != nil {
		t.Fatal(err)
	}
	same(t, any(given.got()[0].body), `{"model": "x", "messages": [{"role": "user", "content": "(nothing)"}]}`)
}

func TestOpenAIReplies(t *testing.T) {
	call := func(id, arguments string) string {
		return `{"id":"` + id + `","type":"function","function":{"name":"f","arguments":` + arguments + `}}`
	}
	calls := func(ended string, calls ...string) string {
		return `{"choices":[{"message":{"content":null,"tool_calls":[` + strings.Join(calls, ",") + `]},"finish_reason":"` + ended + `"}]}`
	}
	says := func(ended, message string) string {
		return `{"choices":[{"message":` + message + `,"finish_reason":"` + ended + `"}]}`
	}
	asked := func(id, arguments string) domain.ModelCall {
		return domain.ModelCall{ID: id, Name: "f", Arguments: json.RawMessage(arguments)}
	}
	cut := "half\n\n[The answer was cut here: it reached the model's output limit.]"
	cases := []struct {
		name  string
		body  string
		text  string
		calls []domain.ModelCall
		fails string // what the final error shows
	}{
		{"text", says("stop", `{"content":"hi"}`), "hi", nil, ""},
		{"text in parts", says("stop", `{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"h"},{"type":"text","text":"i"}]}`), "hi", nil, ""},
		{"nothing more to say", says("stop", `{"content":""}`), "", nil, ""},
		{"refusal", says("stop", `{"content":null,"refusal":"I will not."}`), "I will not.", nil, ""},
		{"refusal with a call", says("stop", `{"refusal":"I will not.","tool_calls":[`+call("a", `"{}"`)+`]}`), "", nil, "refused"},
		{"one call", calls("tool_calls", call("a", `"{\"x\":1}"`)), "", []domain.ModelCall{asked("a", `{"x":1}`)}, ""},
		{"a call that ended with stop", calls("stop", call("a", `"{}"`)), "", []domain.ModelCall{asked("a", "{}")}, ""},
		{"calls without or with the same ID", calls("tool_calls", call("a", `"{}"`), call("a", `""`), call("", `null`)), "",
			[]domain.ModelCall{asked("a", "{}"), asked("call_2", "{}"), asked("call_3", "{}")}, ""},
		{"arguments as JSON", calls("tool_calls", call("a", `{"x":1}`)), "", []domain.ModelCall{asked("a", `{"x":1}`)}, ""},
		{"malformed arguments are the engine's to judge", calls("tool_calls", call("a", `"{\"x\":"`)), "", []domain.ModelCall{asked("a", `{"x":`)}, ""},
		{"text beside a call", says("tool_calls", `{"content":"I try.","tool_calls":[`+call("a", `"{}"`)+`]}`), "I try.", []domain.ModelCall{asked("a", "{}")}, ""},
		{"cut text", says("length", `{"content":"half"}`), cut, nil, ""},
		{"cut before any text", says("length", `{"content":null}`), "", nil, "output limit"},
		{"cut call", calls("length", call("a", `"{\"x\""`)), "", nil, "middle of a tool call"},
		{"whole call of a cut answer", calls("length", call("a", `"{}"`)), "", nil, "middle of a tool call"},
		{"content filter", says("content_filter", `{"content":"half"}`), "", nil, "content filter"},
		{"content filter with a call", calls("content_filter", call("a", `"{}"`)), "", nil, "content filter"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			given := &server{body: c.body}
			reply, err := given.start(t).Call(t.Context(), ask("openai:x"))
			checkReply(t, reply, err, c.text, c.calls, c.fails)
		})
	}
}

func checkReply(t *testing.T, reply domain.ModelReply, err error, text string, calls []domain.ModelCall, fails string) {
	t.Helper()
	if fails != "" {
		if found := failure(t, err); found.Temporary || !strings.Contains(found.Message, fails) {
			t.Errorf("temporary %v %q, want a final error with %q", found.Temporary, found.Message, fails)
		}
		if reply.Calls != nil {
			t.Errorf("calls beside an error: %+v", reply.Calls)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if reply.Text != text || !reflect.DeepEqual(reply.Calls, calls) {
		t.Errorf("got %q %s, want %q %s", reply.Text, reply.Calls, text, calls)
	}
}

func TestOpenAIMiddleOfAnswerErrorIsTemporary(t *testing.T) {
	for _, body := range []string{
		`{"choices":[{"message":{"content":"half"},"finish_reason":"error"}]}`,
		`{"choices":[{"message":{"content":"half"},"finish_reason":"stop","error":{"code":502,"message":"upstream"}}]}`,
		`{"choices":[]}`,
		`{"choices":[{}]}`,
	} {
		given := &server{body: body}
		if _, err := given.start(t).Call(t.Context(), ask("openai:x")); !failure(t, err).Temporary {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestOpenAIUsage(t *testing.T) {
	cases := []struct {
		name  string
		usage string
		want  domain.ModelUsage
	}{
		{"cached is a part of the input", `{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":200,"cache_write_tokens":50}}`,
			domain.ModelUsage{InputTokens: 1000, CachedInputTokens: 200, CacheWriteTokens: 50, OutputTokens: 100}},
		{"no details", `{"prompt_tokens":7,"completion_tokens":3}`, domain.ModelUsage{InputTokens: 7, OutputTokens: 3}},
		{"none", `null`, domain.ModelUsage{}},
		{"negative", `{"prompt_tokens":-7,"completion_tokens":-3,"prompt_tokens_details":{"cached_tokens":-1}}`, domain.ModelUsage{}},
		{"more cached than there is", `{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":50,"cache_write_tokens":9}}`,
			domain.ModelUsage{InputTokens: 10, CachedInputTokens: 10, OutputTokens: 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			given := &server{body: `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":` + c.usage + `}`}
			reply, err := given.start(t).Call(t.Context(), ask("openai:x"))
			if err != nil || reply.Usage != c.want {
				t.Errorf("got %+v %v, want %+v", reply.Usage, err, c.want)
			}
		})
	}
}
