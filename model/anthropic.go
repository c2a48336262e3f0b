package model

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"openbot/domain"
)

// anthropicMaxTokens is sent since the protocol requires a limit; it is within
// what every model of the price table may write.
const anthropicMaxTokens = 8192

// nothingSaid fills a user message that the protocol requires and nobody wrote.
const nothingSaid = "(nothing)"

// anthropic speaks Anthropic's messages.
type anthropic struct{ endpoint }

type anthropicRequest struct {
	Model     string             `json:"model"`
	MaxTokens int                `json:"max_tokens"`
	System    string             `json:"system,omitempty"`
	Messages  []anthropicMessage `json:"messages"`
	Tools     []anthropicTool    `json:"tools,omitempty"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type anthropicReply struct {
	Type       string         `json:"type"`
	Error      *providerError `json:"error"`
	StopReason string         `json:"stop_reason"`
	Content    []struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"content"`
	Usage struct {
		InputTokens              int64 `json:"input_tokens"`
		CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
		CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
		OutputTokens             int64 `json:"output_tokens"`
	} `json:"usage"`
}

func (a anthropic) call(ctx context.Context, name string, request domain.ModelRequest) (domain.ModelReply, error) {
	var reply anthropicReply
	header := http.Header{"X-Api-Key": {a.key}, "Anthropic-Version": {"2023-06-01"}}
	if err := a.post(ctx, "/v1/messages", header, anthropicBody(name, request), &reply); err != nil {
		return domain.ModelReply{}, err
	}
	if reply.Error != nil {
		return domain.ModelReply{}, a.inside(*reply.Error)
	}
	// The protocol counts cached input beside the rest.
	read, written := max(reply.Usage.CacheReadInputTokens, 0), max(reply.Usage.CacheCreationInputTokens, 0)
	answer := domain.ModelReply{
		Usage: usageOf(max(reply.Usage.InputTokens, 0)+read+written, read, written, reply.Usage.OutputTokens),
	}
	var texts []string
	for _, block := range reply.Content {
		switch block.Type {
		case "text":
			texts = append(texts, block.Text)
		case "tool_use":
			if len(block.Input) == 0 {
				block.Input = json.RawMessage("{}")
			}
			answer.Calls = append(answer.Calls, domain.ModelCall{ID: block.ID, Name: block.Name, Arguments: block.Input})
		}
	}
	answer.Text = strings.Join(texts, "")
	nameCalls(answer.Calls)
	return a.ended(answer, reply.StopReason)
}

func anthropicBody(name string, request domain.ModelRequest) anthropicRequest {
	body := anthropicRequest{Model: name, MaxTokens: anthropicMaxTokens}
	if system := strings.ToValidUTF8(request.System, "\uFFFD"); strings.TrimSpace(system) != "" {
		body.System = system
	}
	talk := alternation{}
	for _, said := range converse(request.Messages) {
		talk.text(said.role, said.text)
		var results []anthropicBlock
		for _, call := range said.calls {
			talk.add(said.role, anthropicBlock{Type: "tool_use", ID: call.id, Name: call.name, Input: call.arguments})
			results = append(results, anthropicBlock{
				Type: "tool_result", ToolUseID: call.id, Content: call.result, IsError: call.failed,
			})
		}
		// They come before any text of the same user message, as the protocol asks.
		talk.add(domain.RoleUser, results...)
	}
	if len(talk) == 0 || talk[len(talk)-1].Role == string(domain.RoleAssistant) {
		// An answer at the end would be taken for the beginning of the next one.
		talk.text(domain.RoleUser, nothingSaid)
	}
	body.Messages = talk
	for _, tool := range request.Tools {
		body.Tools = append(body.Tools, anthropicTool{
			Name: tool.Name, Description: strings.ToValidUTF8(tool.Description, "\uFFFD"), InputSchema: schemaObject(tool.Schema),
		})
	}
	return body
}

// alternation grows a list of messages whose roles take turns, a user first.
type alternation []anthropicMessage

func (t *alternation) text(role domain.Role, text string) {
	// The protocol refuses blocks of blanks, and an answer that ends with one.
	if text = strings.TrimSpace(text); text != "" {
		t.add(role, anthropicBlock{Type: "text", Text: text})
	}
}

func (t *alternation) add(role domain.Role, blocks ...anthropicBlock) {
	if len(blocks) == 0 {
		return
	}
	if len(*t) == 0 && role == domain.RoleAssistant {
		t.text(domain.RoleUser, nothingSaid)
	}
	if last := len(*t) - 1; last >= 0 && (*t)[last].Role == string(role) {
		(*t)[last].Content = append((*t)[last].Content, blocks...)
		return
	}
	*t = append(*t, anthropicMessage{Role: string(role), Content: blocks})
}
