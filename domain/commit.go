package domain

import "time"

// Row is an aggregate that a commit writes: *Organization, *Member, *Token, *Bot,
// *Chat, *Turn, *Call, *Request, *Grant, *Rule, *Connection, *HostTool, *Preview,
// *Delegation, *Reminder, *Trigger, *SigningKey, *AuditHead, *Webhook, *Delivery or
// *Channel.
//
// A row with Version 0 is inserted with version 1. Any other is updated where its
// id and version still stand, and its version goes up by one; when that touches no
// row the whole commit fails with conflict.
type Row interface{ rowID() string }

func (r *Organization) rowID() string { return string(r.ID) }
func (r *Member) rowID() string       { return string(r.ID) }
func (r *Token) rowID() string        { return string(r.ID) }
func (r *Bot) rowID() string          { return string(r.ID) }
func (r *Chat) rowID() string         { return string(r.ID) }
func (r *Turn) rowID() string         { return string(r.ID) }
func (r *Call) rowID() string         { return string(r.ID) }
func (r *Request) rowID() string      { return string(r.ID) }
func (r *Grant) rowID() string        { return string(r.ID) }
func (r *Rule) rowID() string         { return string(r.ID) }
func (r *Connection) rowID() string   { return string(r.ID) }
func (r *Preview) rowID() string      { return string(r.ID) }
func (r *HostTool) rowID() string     { return string(r.ID) }
func (r *Delegation) rowID() string   { return string(r.ID) }
func (r *Trigger) rowID() string      { return string(r.ID) }
func (r *Reminder) rowID() string     { return string(r.ID) }
func (r *Webhook) rowID() string      { return string(r.ID) }
func (r *Delivery) rowID() string     { return string(r.ID) }
func (r *Channel) rowID() string      { return string(r.ID) }

// RowID gives the ID of a row, by which rows of one commit are ordered.
func RowID(r Row) string { return r.rowID() }

// Commit is everything that one decision changes. All of it is written in one
// transaction, or none of it.
type Commit struct {
	At         time.Time
	Rows       []Row
	Items      []Item
	Inputs     []Input      // put into an inbox
	Taken      []InputID    // taken out of an inbox; each must still be there
	Reminded   []ReminderID // reminders that fired or were cancelled; each must still be there
	Usage      []UsageEntry
	Events     []Event
	Kept       *KeptAnswer // the answer kept under an Idempotency-Key or commandKey
	CloseChats []ChatID    // deleted Chats: their inbox, their reminders and their command keys go
	Gates      []WorkGate  // work above; each must still be as it was seen
	Cost       *WorkCost   // added to work and to all work above it
	StopWork   *StopWork   // stops all work that a Chat gave away
	// CloseReminders takes the reminders of Chats whose work was stopped.
	CloseReminders []ChatID
	Audit          []AuditEntry
	Links          []AuditLink   // of entries that are there already
	Deliveries     []*Deliveries // tells webhooks what the commit changes
}

// WorkGate is a piece of work as a commit below it saw it: the commit fails with
// conflict when the work was paused, let go on, stopped or ended meanwhile, and none of
// that can happen beside it.
type WorkGate struct {
	ID   DelegationID
	Gate int64
}

// WorkCost is what a model step cost, for the work that it belongs to and all above.
type WorkCost struct {
	Path  []DelegationID
	Nanos int64
}

// StopWork stops every open piece of work that a Chat gave away and that is not being
// stopped yet.
type StopWork struct {
	Chat   ChatID
	Why    string
	Notice NoticeKind
}

// KeptAnswer is the first successful answer under a key of a Member. Inserting a
// key that is there fails the commit with conflict.
type KeptAnswer struct {
	Member      MemberID
	Key         string
	Fingerprint string // of method, route and body: the same key with another is refused
	Status      int
	Body        []byte
	Chat        ChatID     // a commandKey lives as long as this Chat
	Until       *time.Time // an Idempotency-Key is kept until then
	CreatedAt   time.Time
}
