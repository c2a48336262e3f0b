package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// Health of an App, as the last look found it.
const (
	HealthUnknown = "unknown"
	HealthOK      = "ok"
	HealthDown    = "unreachable"
)

// Connection is the way to one App, made by a Member for itself or for the whole
// organization.
type Connection struct {
	ID           ConnectionID
	Organization OrganizationID
	Member       MemberID // who made it
	Shared       bool     // for the whole organization
	Name         string
	Transport    Transport
	URL          string
	Command      string
	Args         []string
	HeaderNames  []string // what can be shown of the secrets
	EnvNames     []string
	Sealed       []byte // AppSecrets, encrypted
	// Revision moves with every change of the address, the secrets or of what the App
	// offers. No decision outlives it.
	Revision  int64
	Look      AppLook
	Health    string
	HealthWhy string // why it is unreachable, in words
	LookedAt  *time.Time
	LookDueAt *time.Time // set while somebody waits for a look
	DeletedAt *time.Time
	CreatedAt time.Time
	UpdatedAt time.Time
	Version   int64
}

// VisibleTo reports whether work for this Member may use the Connection.
func (c Connection) VisibleTo(member MemberID) bool {
	return c.DeletedAt == nil && (c.Shared || c.Member == member)
}

// Tool finds a tool by the App's own name for it.
func (c Connection) Tool(name string) (AppTool, bool) {
	for _, t := range c.Look.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return AppTool{}, false
}

// Looked is the outcome of a look: what the App offers, or why it cannot be
// reached.
type Looked struct {
	At   time.Time
	Look AppLook
	Down string
}

// DecideLook gives the Connection after a look. Tools are compared by the digest of
// their content, so that a notification without a change makes no revision, and
// new resources void no decision; an App that cannot be reached keeps what it
// offered and its revision.
func DecideLook(c Connection, ev Looked) Connection {
	c.LookedAt, c.LookDueAt, c.UpdatedAt = ptr(ev.At), nil, ev.At
	if ev.Down != "" {
		c.Health, c.HealthWhy = HealthDown, ev.Down
		return c
	}
	c.Health, c.HealthWhy = HealthOK, ""
	changes := c.Look.Changes
	if ev.Look.Digest != c.Look.Digest && c.Look.Digest != "" {
		c.Revision++
		change := changeOf(c.Look, ev.Look)
		change.Revision, change.AtMs = c.Revision, ev.At.UnixMilli()
		changes = noteChange(changes, change)
	}
	c.Look = ev.Look
	c.Look.Changes = changes
	return c
}

// HostTool is a tool of the host, reached by a signed HTTP request.
type HostTool struct {
	ID           HostToolID
	Organization OrganizationID
	Name         string
	Description  string
	Schema       json.RawMessage
	Endpoint     string
	Sealed       []byte // the signing secret, encrypted
	Approval     bool   // a decision is required
	Tags         []string
	RepeatSafe   bool
	Revision     int64 // moves with every change, and no two tools of a name share one; a saved call holds for one
	DeletedAt    *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// MaxToolName is the longest tool name that model providers allow.
const MaxToolName = 64

// ModelToolNames maps tools to the names that a model is shown:
// <connection name>__<tool> within 64 of [A-Za-z0-9_-]. A name that is too long, has
// other characters or is already taken gets a hash of the Connection and tool, so
// that a tool keeps its name while others come and go, and two never collide.
type ModelToolNames struct {
	taken map[string]string
}

// Name gives the model's name for a tool of a Connection.
func (n *ModelToolNames) Name(connection Connection, tool string) string {
	plain := connection.Name + "__" + tool
	name := strings.Map(nameRune, plain)
	identity := string(connection.ID) + "/" + tool
	if name != plain || len(name) > MaxToolName || strings.HasPrefix(name, builtinPrefix) {
		name = hashedName(name, identity)
	}
	if n.taken == nil {
		n.taken = map[string]string{}
	}
	// An App chooses its tools' names, so a hashed name can be taken as well.
	for salted := identity; ; salted += "+" {
		if other, taken := n.taken[name]; !taken || other == identity {
			break
		}
		name = hashedName(name, salted)
	}
	n.taken[name] = identity
	return name
}

// builtinPrefix starts the names of OpenBot's own tools; nothing else may.
const builtinPrefix = "openbot_"

func hashedName(name, identity string) string {
	sum := sha256.Sum256([]byte(identity))
	suffix := "_" + hex.EncodeToString(sum[:])[:10]
	for strings.HasPrefix(name, builtinPrefix) {
		name = strings.TrimPrefix(name, builtinPrefix)
	}
	return name[:min(len(name), MaxToolName-len(suffix))] + suffix
}

func nameRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		return r
	default:
		return '_'
	}
}
