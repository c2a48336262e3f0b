package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"openbot/domain"
)

// noResult stands in for a result that the history does not hold: both protocols
// refuse a call without one, and the Chat could never go on.
const noResult = "No result was recorded for this call."

// utterance is one message of the history in the form that both protocols share:
// the results stand with the calls that they answer.
type utterance struct {
	role  domain.Role // user or assistant
	text  string
	calls []exchange
}

// exchange is one past tool call with its result.
type exchange struct {
	id        string
	name      string
	arguments json.RawMessage // always a JSON object
	result    string
	failed    bool
}

// converse arranges a history so that both protocols take it: results directly
// behind their calls, every call with a result, IDs and names of allowed letters,
// no ID twice. A result without its call has no place in either and is left out.
func converse(messages []domain.ModelMessage) []utterance {
	type place struct{ utterance, call int }
	var (
		talk []utterance
		open = map[string][]place{}
		used = map[string]bool{}
	)
	for _, message := range messages {
		text := strings.ToValidUTF8(message.Text, "\uFFFD")
		switch message.Role {
		case domain.RoleTool:
			waiting := open[message.CallID]
			if len(waiting) == 0 {
				continue
			}
			at := waiting[0]
			open[message.CallID] = waiting[1:]
			call := &talk[at.utterance].calls[at.call]
			call.result, call.failed = text, message.Failed
		case domain.RoleAssistant:
			said := utterance{role: domain.RoleAssistant, text: text}
			if len(message.Calls) > 0 {
				// A step is over when the next one begins: an ID that comes again is a new call.
				clear(open)
			}
			for i, call := range message.Calls {
				open[call.ID] = append(open[call.ID], place{len(talk), i})
				said.calls = append(said.calls, exchange{
					id: wireID(call.ID, used), name: wireName(call.Name),
					arguments: argumentsObject(call.Arguments), result: noResult, failed: true,
				})
			}
			talk = append(talk, said)
		default:
			talk = append(talk, utterance{role: domain.RoleUser, text: text})
		}
	}
	return talk
}

// wireID keeps a provider's ID where both protocols allow it. Other IDs, and one
// that another call of the history has already, get one that depends on the
// history before it alone, so that a cached beginning stays the same.
func wireID(id string, used map[string]bool) string {
	if !allowedName(id, 40) || used[id] {
		for n := len(used) + 1; ; n++ {
			if id = fmt.Sprintf("call_h%d", n); !used[id] {
				break
			}
		}
	}
	used[id] = true
	return id
}

// wireName makes a name fit that a model or a script made up: one such name would
// make every later request of the Chat invalid.
func wireName(name string) string {
	if allowedName(name, 64) {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if nameLetter(r) {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 64)]
}

func allowedName(name string, limit int) bool {
	return name != "" && len(name) <= limit && !strings.ContainsFunc(name, func(r rune) bool { return !nameLetter(r) })
}

func nameLetter(r rune) bool {
	return r == '_' || r == '-' || (r >= '0' && r <= '9') || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z')
}

// argumentsObject gives the arguments as a JSON object. What is none is wrapped, so
// that the model still sees what it wrote.
func argumentsObject(raw json.RawMessage) json.RawMessage {
	raw = bytes.ToValidUTF8(bytes.TrimSpace(raw), []byte("\uFFFD"))
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	if raw[0] == '{' && json.Valid(raw) {
		return wellFormed(raw)
	}
	wrapped, err := encode(map[string]string{"malformed_arguments": string(raw)})
	if err != nil {
		return json.RawMessage("{}")
	}
	return bytes.TrimSpace(wrapped)
}

// wellFormed writes JSON anew when it may hold half of a surrogate pair, which
// servers refuse and Go's check lets through.
func wellFormed(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`\ud`)) && !bytes.Contains(raw, []byte(`\uD`)) {
		return raw
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return raw
	}
	again, err := encode(value)
	if err != nil {
		return raw
	}
	return bytes.TrimSpace(again)
}

// schemaObject gives a tool's schema with the two members that providers insist on.
func schemaObject(raw json.RawMessage) json.RawMessage {
	raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	var schema map[string]json.RawMessage
	if json.Unmarshal(raw, &schema) != nil || schema == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	properties := bytes.TrimSpace(schema["properties"])
	if string(schema["type"]) == `"object"` && len(properties) > 0 && properties[0] == '{' {
		return wellFormed(raw)
	}
	schema["type"] = json.RawMessage(`"object"`)
	if len(properties) == 0 || properties[0] != '{' {
		schema["properties"] = json.RawMessage("{}")
	}
	again, err := encode(schema)
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return wellFormed(bytes.TrimSpace(again))
}

// nameCalls gives every call of an answer an ID of its own: some servers leave it
// out or use one twice.
func nameCalls(calls []domain.ModelCall) []domain.ModelCall {
	used := map[string]bool{}
	for i := range calls {
		id := strings.ToValidUTF8(calls[i].ID, "\uFFFD")
		if id == "" || used[id] {
			for n := i + 1; ; n++ {
				if id = fmt.Sprintf("call_%d", n); !used[id] {
					break
				}
			}
		}
		used[id] = true
		calls[i].ID = id
	}
	return calls
}

// usageOf clamps what a server counted: a negative or too large part would turn
// into a negative cost.
func usageOf(input, cached, written, output int64) domain.ModelUsage {
	input, output = max(input, 0), max(output, 0)
	cached = min(max(cached, 0), input)
	written = min(max(written, 0), input-cached)
	return domain.ModelUsage{InputTokens: input, CachedInputTokens: cached, CacheWriteTokens: written, OutputTokens: output}
}

// cutNote ends an answer that is not whole, so that nobody takes it for whole.
const cutNote = "\n\n[The answer was cut here: it reached the model's output limit.]"

// ended judges why a model stopped. Calls of an answer that did not come to its
// own end are never run: the last one may be half, or one may be missing.
func (e endpoint) ended(reply domain.ModelReply, why string) (domain.ModelReply, error) {
	switch why {
	case "length", "max_tokens", "model_context_window_exceeded":
		if len(reply.Calls) > 0 {
			return domain.ModelReply{}, final("the model's answer was cut at its output limit in the middle of a tool call; ask for less in one step")
		}
		if strings.TrimSpace(reply.Text) == "" {
			return domain.ModelReply{}, final("the model reached its output limit before it said anything; ask for less in one step")
		}
		reply.Text += cutNote
	case "content_filter":
		return domain.ModelReply{}, final("%s stopped the answer with its content filter; put it in other words", e.provider)
	case "refusal":
		if len(reply.Calls) > 0 || strings.TrimSpace(reply.Text) == "" {
			return domain.ModelReply{}, final("the model refused to answer; put it in other words")
		}
	case "error":
		return domain.ModelReply{}, e.garbled("an error in the middle of its answer", nil)
	case "":
		if len(reply.Calls) == 0 && reply.Text == "" {
			return domain.ModelReply{}, e.garbled("neither a text nor a tool call", nil)
		}
	}
	return reply, nil
}
