package domain

import (
	"slices"
	"strings"
)

// API roles, as they stand in permissions and scopes.
const (
	// RoleRead may call every GET.
	RoleRead = "read"
	// RoleWrite may act and answer; it includes read.
	RoleWrite = "write"
	// RoleAdmin may change members, settings and connections of the organization;
	// it includes write.
	RoleAdmin = "admin"
)

// Capability is an action with a target, e.g. apps.call on con_7/send_email.
type Capability struct {
	Action string `json:"action"`
	Target string `json:"target"`
}

// String gives action:target, the form that patterns match.
func (c Capability) String() string { return c.Action + ":" + c.Target }

// Actions that need a decision.
const (
	ActionAppsCall            = "apps.call"
	ActionToolsCall           = "tools.call"
	ActionBotsDelegate        = "bots.delegate"
	ActionBotsSpawn           = "bots.spawn"
	ActionBotsCreate          = "bots.create"
	ActionBotsPromote         = "bots.promote"
	ActionPlansRun            = "plans.run"
	ActionChannelsSend        = "channels.send"
	ActionDelegationsContinue = "delegations.continue"
)

// Actions lists every action of a capability.
func Actions() []string {
	return []string{ActionAppsCall, ActionToolsCall, ActionBotsDelegate, ActionBotsSpawn, ActionBotsCreate,
		ActionBotsPromote, ActionPlansRun, ActionChannelsSend, ActionDelegationsContinue}
}

// CanonicalAction maps the older agents.* names to bots.* and leaves others alone.
func CanonicalAction(action string) string {
	if rest, ok := strings.CutPrefix(action, "agents."); ok {
		return "bots." + rest
	}
	return action
}

// Match reports whether text fits a pattern in which * stands for any run of
// characters, the empty one included. There are no other special characters.
func Match(pattern, text string) bool {
	head, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == text
	}
	if !strings.HasPrefix(text, head) {
		return false
	}
	text = text[len(head):]
	for {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(part):], more
	}
}

// Permissions is a list of API roles and of patterns over capabilities: a
// Member's, or the scopes of a token.
type Permissions []string

// HasRole reports whether the list holds the role or one that includes it.
func (p Permissions) HasRole(role string) bool {
	for _, entry := range p {
		switch entry {
		case RoleAdmin:
			return true
		case RoleWrite:
			if role != RoleAdmin {
				return true
			}
		case RoleRead:
			if role == RoleRead {
				return true
			}
		}
	}
	return false
}

// Covering gives the first pattern that covers the capability.
func (p Permissions) Covering(c Capability) (string, bool) {
	text := c.String()
	for _, entry := range p {
		if isRole(entry) {
			continue
		}
		if Match(canonicalPattern(entry), text) {
			return entry, true
		}
	}
	return "", false
}

// Faults lists the entries that are neither a role nor a pattern of a known
// action, each with its place in the list.
func (p Permissions) Faults(path string) []Fault {
	var faults []Fault
	for i, entry := range p {
		if isRole(entry) || entry == "*" {
			continue
		}
		action, target, ok := strings.Cut(canonicalPattern(entry), ":")
		known := ok && target != "" && len(entry) <= 500 &&
			slices.ContainsFunc(Actions(), func(a string) bool { return Match(action, a) })
		if !known {
			faults = append(faults, Fault{Path: pathIndex(path, i),
				Message: `must be read, write, admin, * or action:target such as "apps.call:con_7/*"`})
		}
	}
	return faults
}

func canonicalPattern(pattern string) string {
	action, target, ok := strings.Cut(pattern, ":")
	if !ok {
		return pattern
	}
	return CanonicalAction(action) + ":" + target
}

func isRole(entry string) bool {
	return entry == RoleRead || entry == RoleWrite || entry == RoleAdmin
}

// Within reports whether an entry gives nothing beyond this list.
func (p Permissions) Within(entry string) bool {
	if isRole(entry) {
		return p.HasRole(entry)
	}
	for _, own := range p {
		// A star in entry is matched by a star of own alone, so matching it as plain
		// text is enough.
		if !isRole(own) && Match(canonicalPattern(own), canonicalPattern(entry)) {
			return true
		}
	}
	return false
}
