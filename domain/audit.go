package domain

import (
	"encoding/json"
	"time"
)

// Kinds of entries of the audit log: what was done to which kind of row.
const (
	// AuditOrganizationCreated is the first entry of every organization.
	AuditOrganizationCreated = "organization.created"
	// AuditRequestDecided is an answer, or the decision of a Grant, a Bot or the clock.
	AuditRequestDecided = "request.decided"
	// AuditRequestEndorsed is the support of a Bot that may not decide by itself.
	AuditRequestEndorsed = "request.endorsed"
	// AuditRequestCancelled is a Request that was closed with its work, undecided.
	AuditRequestCancelled = "request.cancelled"
	// AuditRequestEscalated is a Request that a second Member may answer from now on.
	AuditRequestEscalated = "request.escalated"
	// AuditCallDecided is a call that was allowed or denied without a Request.
	AuditCallDecided = "call.decided"
	// AuditGrantCreated is a decision that is kept from now on.
	AuditGrantCreated = "grant.created"
	// AuditGrantRevoked is a kept decision that was taken back.
	AuditGrantRevoked = "grant.revoked"
	// AuditRuleCreated is a new Rule.
	AuditRuleCreated = "rule.created"
	// AuditRuleChanged is a Rule with another text, effect or state.
	AuditRuleChanged = "rule.changed"
	// AuditRuleDeleted is a Rule that was taken away.
	AuditRuleDeleted = "rule.deleted"
	// AuditSettingsChanged is a change of the organization's settings.
	AuditSettingsChanged = "settings.changed"
	// AuditTokenCreated is a new token.
	AuditTokenCreated = "token.created"
	// AuditTokenRevoked is a token that was ended.
	AuditTokenRevoked = "token.revoked"
	// AuditMemberCreated is a new Member.
	AuditMemberCreated = "member.created"
	// AuditMemberChanged is a Member with another name, other permissions, or disabled.
	AuditMemberChanged = "member.changed"
	// AuditConnectionCreated is a new Connection.
	AuditConnectionCreated = "connection.created"
	// AuditConnectionChanged is a Connection of a new revision, name or reach; the server
	// itself finds that an App offers something else.
	AuditConnectionChanged = "connection.changed"
	// AuditConnectionDeleted is a Connection that was taken away.
	AuditConnectionDeleted = "connection.deleted"
	// AuditToolCreated is a new tool of the host.
	AuditToolCreated = "tool.created"
	// AuditToolChanged is a tool of the host of a new revision.
	AuditToolChanged = "tool.changed"
	// AuditToolDeleted is a tool of the host that was taken away.
	AuditToolDeleted = "tool.deleted"
)

// AuditKinds lists every kind of entry.
func AuditKinds() []string {
	return []string{AuditOrganizationCreated, AuditRequestDecided, AuditRequestEndorsed, AuditRequestCancelled, AuditRequestEscalated, AuditCallDecided,
		AuditGrantCreated, AuditGrantRevoked, AuditRuleCreated, AuditRuleChanged, AuditRuleDeleted, AuditSettingsChanged,
		AuditTokenCreated, AuditTokenRevoked, AuditMemberCreated, AuditMemberChanged, AuditConnectionCreated,
		AuditConnectionChanged, AuditConnectionDeleted, AuditToolCreated, AuditToolChanged, AuditToolDeleted}
}

// AuditEntry is one line of an organization's audit log. It is written in the
// transaction of what it records and never changed; it holds no secret, no argument
// and no free text of a person or a Bot, only their digests.
type AuditEntry struct {
	Organization OrganizationID
	Position     int64     // given by the database; entries are chained in this order
	At           time.Time // in whole milliseconds: exactly what is hashed
	Kind         string
	Subject      string // the ID of the row that it is about
	Actor        Actor
	Token        TokenID         // the token that the actor used, or ""
	Address      string          // where the actor called from, or ""
	Data         json.RawMessage // an object in the form of RFC 8785
	Link         *AuditLink      // nil until it was chained
}

// AuditLink is the place of an entry in its organization's chain.
type AuditLink struct {
	Organization OrganizationID
	Position     int64  // of the entry
	Number       int64  // from 1, without a gap
	Previous     string // the hash of the entry before; "" for the first
	Hash         string // SHA-256 in hex over the entry, its number and Previous
}

// AuditHead is the end of an organization's chain. It remembers how many entries
// there were, so that the last ones cannot be taken away unnoticed.
type AuditHead struct {
	ID       OrganizationID
	Count    int64  // of chained entries
	Hash     string // of the last one; "" when there is none
	Position int64  // of the last one
	Signed   string // AuditHeadClaims as a JWS; "" when there is none
	LinkedAt time.Time
	Version  int64
}

// AuditHeadClaims is what the server signs about the end of a chain.
type AuditHeadClaims struct {
	Organization OrganizationID `json:"organization"`
	Count        int64          `json:"count"`
	Hash         string         `json:"hash"`
	AtMs         int64          `json:"at"` // milliseconds since the epoch
}

// Claims gives what is signed about the head.
func (h AuditHead) Claims() AuditHeadClaims {
	return AuditHeadClaims{Organization: h.ID, Count: h.Count, Hash: h.Hash, AtMs: h.LinkedAt.UnixMilli()}
}

// AuditFilter narrows a list of entries. Empty fields do not narrow.
type AuditFilter struct {
	Kind    string
	Subject string
	Actor   string    // the ID of the actor, or its tag when it has none
	From    time.Time // not before
	To      time.Time // before
}

func (r *AuditHead) rowID() string { return string(r.ID) }
