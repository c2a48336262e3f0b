package domain

import "time"

// ChatKind says what a Chat is for.
type ChatKind string

const (
	// ChatPlain is a conversation with a person.
	ChatPlain ChatKind = "chat"
	// ChatTask is where a delegation runs.
	ChatTask ChatKind = "task"
	// ChatReview is where a Bot decides a Request.
	ChatReview ChatKind = "review"
)

// ChatStatus is what a Chat shows; it follows its Turn.
type ChatStatus string

const (
	// ChatIdle has no Turn under way.
	ChatIdle ChatStatus = "idle"
	// ChatRunning has a Turn that is queued or running.
	ChatRunning ChatStatus = "running"
	// ChatWaiting has a Turn that waits for an answer.
	ChatWaiting ChatStatus = "waiting"
	// ChatPaused has work at a limit.
	ChatPaused ChatStatus = "paused"
)

// Chat is a conversation with one Bot. It is the unit of concurrency: every
// commit that concerns a Chat moves its Version, and its counters number the
// items and events, so that they have no gap and no repeat.
type Chat struct {
	ID           ChatID
	Organization OrganizationID
	Member       MemberID
	Bot          BotID
	Kind         ChatKind
	Mode         string // "" or "plan"
	Plan         PlanTerms
	Title        string
	Status       ChatStatus
	Parent       *ChatParent // of a task Chat; its Delegation is the newest round
	Request      RequestID   // of a review Chat: what is decided in it
	Channel      ChannelID   // of a Chat of a Channel, or ""
	Outside      string      // the chat of the Channel that it is, as it is called outside
	Taint        Taint       // content from outside the organization that it took in
	Turn         TurnID      // the Turn under way, or ""
	LastTurn     TurnID      // the newest Turn, or ""
	LastItem     int64       // sequence of the newest item
	LastEvent    int64       // sequence of the newest event
	LastInput    int64       // sequence of the newest input that went to the inbox
	ArchivedAt   *time.Time  // of a review Chat: when its review was over
	DeletedAt    *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// ModePlan is the mode of a Chat in which only reads and the plan itself run.
const ModePlan = "plan"

// PlanTerms are what a person set for the plans of a Chat. The Bot cannot choose
// them.
type PlanTerms struct {
	TimeoutMs int64  `json:"timeoutMs,omitempty"` // 0: that of every Request
	OnExpire  string `json:"onExpire,omitempty"`  // allow or deny; "" is deny
}

// Faults lists what does not fit, or nil.
func (p PlanTerms) Faults() []Fault {
	var faults []Fault
	if p.TimeoutMs != 0 && (p.TimeoutMs < minRequestTimeoutMs || p.TimeoutMs > maxRequestTimeoutMs) {
		faults = append(faults, Fault{Path: "planTimeoutMs", Message: "must be from 1000 (1 s) to 2592000000 (30 days)"})
	}
	if p.OnExpire != "" && p.OnExpire != DecisionAllow && p.OnExpire != DecisionDeny {
		faults = append(faults, Fault{Path: "planOnExpire", Message: "must be allow or deny"})
	}
	return faults
}

// ChatParent is where a task Chat comes from.
type ChatParent struct {
	Chat       ChatID       `json:"chat"`
	Delegation DelegationID `json:"delegation"`
}

// Bounds of what people write, in bytes.
const (
	MaxTitle   = 500
	MaxMessage = 512 * 1024
)

// ItemKind says what an entry of the history is.
type ItemKind string

const (
	// ItemMessage was written by a person.
	ItemMessage ItemKind = "message"
	// ItemNotice was written by the server.
	ItemNotice ItemKind = "notice"
	// ItemAnswer is text of the Bot.
	ItemAnswer ItemKind = "answer"
	// ItemToolCall is a call that the Bot asked for.
	ItemToolCall ItemKind = "tool_call"
	// ItemToolResult is what a call gave.
	ItemToolResult ItemKind = "tool_result"
	// ItemReminder is input that the Bot asked for at a time.
	ItemReminder ItemKind = "reminder"
)

// Topic says what a text of the inbox or history is about, where that matters.
type Topic string

const (
	// TopicTask is a notice with a task, which stands after its first line.
	TopicTask Topic = "task"
	// TopicDecision is the reason of a decision, given to the Bot as a message.
	TopicDecision Topic = "decision"
)

// Item is one entry of a Chat's history.
type Item struct {
	Chat      ChatID
	Sequence  int64
	Turn      TurnID
	Step      int // the model step that it belongs to; 0 for input before the first
	Kind      ItemKind
	From      string // the ID of the Member or Bot, or "openbot"
	Text      string
	Topic     Topic
	Call      CallID // of tool_call and tool_result
	CreatedAt time.Time
}

// Input waits in an inbox until the Chat's Turn takes it.
type Input struct {
	ID        InputID
	Chat      ChatID
	Sequence  int64 // order in this inbox
	Kind      ItemKind
	From      string
	Text      string
	Topic     Topic
	Authority []Authority
	Taint     Taint // what the text rests on; the Chat that takes the input takes it in
	CreatedAt time.Time
}

// FromServer is the author of what the server writes into a Chat.
const FromServer = "openbot"

// Delegation is the newest round of work of a task Chat, or "".
func (c Chat) Delegation() DelegationID {
	if c.Parent == nil {
		return ""
	}
	return c.Parent.Delegation
}
