package model

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"openbot/domain"
)

// openAI speaks chat completions, the protocol that most servers offer.
type openAI struct{ endpoint }

type openAIRequest struct {
	Model    string          `json:"model"`
	Messages []openAIMessage `json:"messages"`
	Tools    []openAITool    `json:"tools,omitempty"`
}

type openAIMessage struct {
	Role       string       `json:"role"`
	Content    *string      `json:"content"`
	ToolCalls  []openAICall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type openAICall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function openAIFunction `json:"function"`
}

type openAIFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type openAITool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type openAIReply struct {
	Error   *providerError `json:"error"`
	Choices []struct {
		FinishReason string         `json:"finish_reason"`
		Error        *providerError `json:"error"`
		Message      struct {
			Content   textOrParts `json:"content"`
			Refusal   string      `json:"refusal"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string          `json:"name"`
					Arguments json.RawMessage `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		PromptTokens        int64 `json:"prompt_tokens"`
		CompletionTokens    int64 `json:"completion_tokens"`
		PromptTokensDetails struct {
			CachedTokens     int64 `json:"cached_tokens"`
			CacheWriteTokens int64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// textOrParts is a text, or the list of parts that some servers send instead.
type textOrParts string

// UnmarshalJSON takes a string, null, or parts of which only text counts.
func (t *textOrParts) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*t = textOrParts(text)
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	var texts []string
	for _, part := range parts {
		if part.Type == "text" {
			texts = append(texts, part.Text)
		}
	}
	*t = textOrParts(strings.Join(texts, ""))
	return nil
}

func (o openAI) call(ctx context.Context, name string, request domain.ModelRequest) (domain.ModelReply, error) {
	var reply openAIReply
	header := http.Header{"Authorization": {"Bearer " + o.key}}
	if err := o.post(ctx, "/chat/completions", header, openAIBody(name, request), &reply); err != nil {
		return domain.ModelReply{}, err
	}
	if reply.Error != nil {
		return domain.ModelReply{}, o.inside(*reply.Error)
	}
	if len(reply.Choices) == 0 {
		return domain.ModelReply{}, o.garbled("no choices; check "+o.baseVariable, nil)
	}
	choice := reply.Choices[0]
	if choice.Error != nil {
		return domain.ModelReply{}, o.inside(*choice.Error)
	}
	answer := domain.ModelReply{
		Text: string(choice.Message.Content),
		Usage: usageOf(reply.Usage.PromptTokens, reply.Usage.PromptTokensDetails.CachedTokens,
			reply.Usage.PromptTokensDetails.CacheWriteTokens, reply.Usage.CompletionTokens),
	}
	why := choice.FinishReason
	if refusal := choice.Message.Refusal; refusal != "" {
		answer.Text, why = refusal, "refusal"
	}
	for _, call := range choice.Message.ToolCalls {
		answer.Calls = append(answer.Calls, domain.ModelCall{
			ID: call.ID, Name: call.Function.Name, Arguments: openAIArguments(call.Function.Arguments),
		})
	}
	nameCalls(answer.Calls)
	return o.ended(answer, why)
}

// openAIArguments takes the text that holds the JSON, or the JSON itself as some
// servers send it. No arguments are an empty object.
func openAIArguments(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

func openAIBody(name string, request domain.ModelRequest) openAIRequest {
	body := openAIRequest{Model: name}
	if system := strings.ToValidUTF8(request.System, "\uFFFD"); strings.TrimSpace(system) != "" {
		body.Messages = append(body.Messages, openAIMessage{Role: "system", Content: &system})
	}
	for _, said := range converse(request.Messages) {
		message := openAIMessage{Role: string(said.role), Content: &said.text}
		if said.text == "" && len(said.calls) > 0 {
			message.Content = nil
		}
		for _, call := range said.calls {
			message.ToolCalls = append(message.ToolCalls, openAICall{
				ID: call.id, Type: "function",
				Function: openAIFunction{Name: call.name, Arguments: string(call.arguments)},
			})
		}
		body.Messages = append(body.Messages, message)
		for _, call := range said.calls {
			body.Messages = append(body.Messages, openAIMessage{Role: "tool", Content: &call.result, ToolCallID: call.id})
		}
	}
	if len(body.Messages) == 0 {
		nothing := nothingSaid
		body.Messages = append(body.Messages, openAIMessage{Role: "user", Content: &nothing})
	}
	for _, tool := range request.Tools {
		shown := openAITool{Type: "function"}
		shown.Function.Name = tool.Name
		shown.Function.Description = strings.ToValidUTF8(tool.Description, "\uFFFD")
		shown.Function.Parameters = schemaObject(tool.Schema)
		body.Tools = append(body.Tools, shown)
	}
	return body
}
