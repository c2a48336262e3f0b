package domain

import (
	"encoding/json"
	"strings"
	"time"
)

// Answers of scripts to a Request. A standing decision is none: it is policy, and
// people write policy where they see what they sign up to.
const (
	ApprovalApproved = "approved"
	ApprovalDenied   = "denied"
)

// Approval is what a script sees of a Request: no more than it needs to answer, with
// secrets masked. The Request itself never reaches a script.
type Approval struct {
	Request   RequestID // for the place in a list, not for the script
	ID        string    // UUID of the Request
	RunID     string    // UUID of its Turn
	ToolName  string    // the App's or host's own name, or that of OpenBot's own tool
	Resource  string    // masked; "" for none
	Tags      []string
	Reason    string          // the Bot's words, masked
	Input     json.RawMessage // the exact arguments, masked
	Decision  string          // "" while there is none
	Verdict   string          // of the automatic reviewer, "" for none
	CreatedAt time.Time
	ExpiresAt time.Time
}

// NewApproval gives what a script sees of a Request.
func NewApproval(r Request, mask *Redactor) Approval {
	a := Approval{Request: r.ID, ID: UUIDOf(string(r.ID)), RunID: UUIDOf(string(r.Turn)), ToolName: r.ToolName(), Tags: r.Tags,
		Reason: mask.Text(r.Reason), Resource: mask.Text(r.Resource), Input: json.RawMessage("{}"), CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt}
	if len(r.Arguments) > 0 {
		a.Input = mask.JSON(r.Arguments)
	}
	switch r.Status {
	case RequestAllowed:
		a.Decision = ApprovalApproved
	case RequestDenied:
		a.Decision = ApprovalDenied
	}
	if r.ReviewVerdict != nil {
		a.Verdict = r.ReviewVerdict.Verdict
	}
	return a
}

// toolOf names OpenBot's own tool behind an action.
var toolOf = map[string]string{
	ActionBotsDelegate: "openbot_delegate", ActionBotsSpawn: "openbot_spawn", ActionBotsCreate: "openbot_create_bot",
	ActionBotsPromote: "openbot_promote_bot", ActionPlansRun: "openbot_plan", ActionChannelsSend: "openbot_send",
}

// ToolName is the name that the owner of the tool gave it. What the server itself asks
// has no tool and is called by its action.
func (r Request) ToolName() string {
	switch name := toolOf[r.Capability.Action]; {
	case r.App != nil:
		return r.App.Tool
	case r.Capability.Action == ActionToolsCall:
		return r.Capability.Target
	case name != "":
		return name
	}
	return r.Capability.Action
}

// UUIDOf is the UUID within an ID, in its usual form (RFC 9562).
func UUIDOf(id string) string {
	_, hex, _ := strings.Cut(id, "_")
	if len(hex) != 32 {
		return ""
	}
	return hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:]
}

// IDOf is the ID with a prefix of a UUID. It takes the one form that UUIDOf gives and
// reports false for everything else.
func IDOf(uuid, prefix string) (string, bool) {
	if len(uuid) != 36 {
		return "", false
	}
	id := prefix + strings.ReplaceAll(uuid, "-", "")
	return id, ValidID(id, prefix) && UUIDOf(id) == uuid
}
