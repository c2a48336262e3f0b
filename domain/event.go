package domain

import (
	"encoding/json"
	"time"
)

// Kinds of events, as readers see them.
const (
	EventMessage        = "message"
	EventTurnStatus     = "turn.status"
	EventCallStatus     = "call.status"
	EventRequestPending = "request.pending"
	EventRequestDecided = "request.decided"
	EventRequestVerdict = "request.verdict"
	EventDelegation     = "delegation.status"
	EventNotice         = "notice"
	EventReminder       = "reminder"
)

// Event is one saved fact for readers of a Chat, of an execution or of everything
// that concerns a Member. Sequence counts within the Chat; Position orders all
// events of the server, and a reader who has seen N never misses one below it.
type Event struct {
	Organization OrganizationID
	Member       MemberID
	Chat         ChatID
	Sequence     int64
	Position     int64 // given by the database
	Kind         string
	Subject      string // the ID of the row that changed
	Data         json.RawMessage
	At           time.Time
}

// ChatStream is told about what happens in a Chat.
func ChatStream(id ChatID) string { return string(id) }

// MemberStream is told about everything that concerns a Member.
func MemberStream(id MemberID) string { return string(id) }

// ConnectionStream is told when a look at an App ended.
func ConnectionStream(id ConnectionID) string { return string(id) }
