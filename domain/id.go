package domain

import "strings"

// Typed IDs. Each is a prefix and a UUIDv7 in hex without dashes, so that no ID of
// one kind is taken for another and rows sort by the time they were made.
type (
	// OrganizationID names a tenant; nothing crosses it.
	OrganizationID string
	// MemberID names a person of an organization.
	MemberID string
	// TokenID names a token, never its secret.
	TokenID string
	// BotID names a Bot.
	BotID string
	// ChatID names a Chat.
	ChatID string
	// TurnID names one run of a Bot's loop.
	TurnID string
	// CallID names one tool call that a model asked for.
	CallID string
	// RequestID names a question to a decider.
	RequestID string
	// GrantID names a kept decision.
	GrantID string
	// RuleID names a kept decision in plain language.
	RuleID string
	// ConnectionID names the way to one App.
	ConnectionID string
	// DelegationID names a piece of work given to a Bot.
	DelegationID string
	// ExecutionID names the run record of a piece of work. It is a plain UUIDv7.
	ExecutionID string
	// TriggerID names what gives work at times or on a signal.
	TriggerID string
	// InputID names one row of an inbox.
	InputID string
	// PreviewID names one trial of a Rule.
	PreviewID string
	// HostToolID names a tool of the host.
	HostToolID string
	// ReminderID names a reminder, and the input that it becomes.
	ReminderID string
	// UsageID names one line of the ledger of usage.
	UsageID string
	// SigningKeyID names a key that signs receipts.
	SigningKeyID string
	// WebhookID names an address that is told what happens.
	WebhookID string
	// DeliveryID names one message to an outside receiver.
	DeliveryID string
	// ChannelID names a group chat outside that is bound to a Bot.
	ChannelID string
)

// Prefixes of the IDs, as they stand on the wire.
const (
	PrefixOrganization = "org_"
	PrefixMember       = "mem_"
	PrefixToken        = "tok_"
	PrefixBot          = "bot_"
	PrefixChat         = "chat_"
	PrefixTurn         = "turn_"
	PrefixCall         = "call_"
	PrefixRequest      = "req_"
	PrefixGrant        = "grt_"
	PrefixRule         = "rul_"
	PrefixConnection   = "con_"
	PrefixDelegation   = "dlg_"
	PrefixTrigger      = "trg_"
	PrefixInput        = "ntc_"
	PrefixHostTool     = "hook_" // what is called outside, signed: tools of the host
	PrefixPreview      = "prv_"
	PrefixReminder     = PrefixInput
	PrefixUsage        = "use_"
	PrefixSigningKey   = "key_"
	PrefixWebhook      = PrefixHostTool // and addresses that are told
	PrefixDelivery     = "dlv_"
	PrefixChannel      = "chn_"
)

// ValidID reports whether id is the prefix followed by 32 lower-case hex digits.
// Everything else is answered as not found, so that a malformed ID tells nothing.
func ValidID(id, prefix string) bool {
	hex, ok := strings.CutPrefix(id, prefix)
	if !ok || len(hex) != 32 {
		return false
	}
	for _, c := range hex {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ValidExecutionID reports whether id is a UUID with dashes, in lower-case hex.
func ValidExecutionID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i, c := range []byte(id) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
