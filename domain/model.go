package domain

import (
	"encoding/json"
	"math"
)

// Purpose says what a model is called for.
type Purpose string

const (
	// PurposeTurn is a step of a Turn.
	PurposeTurn Purpose = "turn"
	// PurposeReview is a step of a review Chat, where a Bot decides a Request.
	PurposeReview Purpose = "review"
	// PurposeJudge reads Rules.
	PurposeJudge Purpose = "judge"
	// PurposeReviewer leaves a verdict for the person.
	PurposeReviewer Purpose = "reviewer"
)

// Role says who wrote a message of a model conversation.
type Role string

const (
	// RoleUser is a person, or the server on somebody's behalf.
	RoleUser Role = "user"
	// RoleAssistant is the Bot.
	RoleAssistant Role = "assistant"
	// RoleTool is the result of one tool call.
	RoleTool Role = "tool"
)

// ModelRequest is everything that one model call gets to see.
type ModelRequest struct {
	Model    string // "provider:model", e.g. "openai:gpt-5-mini", or "playbook"
	Purpose  Purpose
	System   string
	Messages []ModelMessage
	Tools    []ModelTool
	// Script is what the playbook reads; other providers never look at it.
	Script Script
}

// Script is what drives the deterministic playbook model.
type Script struct {
	Inputs       []string      // texts of the Turn's input in order: people's messages and task texts
	Notices      []string      // the rest of its input, which directs nothing
	StepsDone    int           // committed model steps of this Turn that asked for calls
	Outcomes     []ToolOutcome // what each call of this Turn gave, in order
	Instructions string        // of the Bot, for review Chats
	Judge        *JudgeCase    // for the judge
	Reviewer     *ReviewerCase // for the automatic reviewer
}

// ToolOutcome is one settled call of the Turn, as the model saw it.
type ToolOutcome struct {
	Name string
	Text string
}

// ModelMessage is one message of the history. An assistant message may carry
// calls; a tool message carries the result of one.
type ModelMessage struct {
	Role   Role
	Text   string
	Calls  []ModelCall
	CallID string // for RoleTool: which call this is the result of
	Failed bool   // for RoleTool: the call did not succeed
}

// ModelCall is one tool call as the model asked for it.
type ModelCall struct {
	ID        string          // the provider's ID of the call
	Name      string          // the tool name that the model was shown
	Arguments json.RawMessage // as the model wrote it; may be no valid JSON
}

// ModelTool is a tool as shown to a model.
type ModelTool struct {
	Name        string // at most 64 of [A-Za-z0-9_-]
	Description string
	Schema      json.RawMessage // a JSON Schema of type object
}

// ModelReply is what a model answered.
type ModelReply struct {
	Text  string
	Calls []ModelCall
	Usage ModelUsage
}

// ModelUsage counts tokens. InputTokens holds all input, cached input included,
// whatever the provider's own way of counting.
type ModelUsage struct {
	InputTokens       int64
	CachedInputTokens int64 // part of InputTokens that was read from a cache
	CacheWriteTokens  int64 // part of InputTokens that was written to a cache
	OutputTokens      int64
}

// ModelPrice is what a model costs, in pico-USD a token (10⁻¹² USD), so that
// decimal prices of a micro-USD a token stay exact. A nil part costs as Input.
type ModelPrice struct {
	Input       int64
	CachedInput *int64
	CacheWrite  *int64
	Output      int64
}

// CostNanos is the cost of a usage in nano-USD, rounded half up once. A usage that
// no model has costs the most that there is; it never turns negative.
func (p ModelPrice) CostNanos(u ModelUsage) int64 {
	plain := u.InputTokens - u.CachedInputTokens - u.CacheWriteTokens
	pico := sum(times(plain, p.Input), times(u.OutputTokens, p.Output),
		times(u.CachedInputTokens, priceOr(p.CachedInput, p.Input)), times(u.CacheWriteTokens, priceOr(p.CacheWrite, p.Input)))
	return sum(pico, 500) / 1000
}

// times and sum stop at the largest number. Negative parts count as nothing.
func times(a, b int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

func sum(parts ...int64) int64 {
	total := int64(0)
	for _, part := range parts {
		if part = max(part, 0); part > math.MaxInt64-total {
			return math.MaxInt64
		}
		total += part
	}
	return total
}

func priceOr(price *int64, other int64) int64 {
	if price == nil {
		return other
	}
	return *price
}

// MicrosFromNanos rounds nano-USD half up to micro-USD. It is applied once, where
// a sum is shown.
func MicrosFromNanos(nanos int64) int64 { return sum(nanos, 500) / 1000 }

// ModelError is a model call that gave no reply. Temporary ones are tried again.
type ModelError struct {
	Temporary bool
	Message   string // for people; never holds a key
	Err       error  // for logs
}

// Error joins the message and the cause.
func (e *ModelError) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap gives the cause.
func (e *ModelError) Unwrap() error { return e.Err }
