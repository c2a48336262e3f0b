package domain

import "time"

// Receipt is what the server signs about the decision of a Request, in the
// transaction that decides it. The arguments appear as their digest.
type Receipt struct {
	Organization       OrganizationID `json:"organization"`
	Request            RequestID      `json:"request"`
	Revision           int64          `json:"revision"` // of the Request with this decision
	Decision           string         `json:"decision"` // allow, deny or ask
	Scope              string         `json:"scope"`
	By                 Actor          `json:"by"`
	Capability         Capability     `json:"capability"`
	Bot                BotID          `json:"bot"`
	Call               CallID         `json:"toolCallId"`
	ArgumentsSHA256    string         `json:"argumentsSha256"`              // in hex, of their RFC 8785 form
	Connection         ConnectionID   `json:"connection,omitempty"`         // of an App tool
	ConnectionRevision int64          `json:"connectionRevision,omitempty"` // the one that the decision holds for
	AtMs               int64          `json:"at"`                           // milliseconds since the epoch
}

// ReceiptFor gives what is signed about a decided Request; digest is that of its
// arguments. It is false for a Request without a decision.
func (r Request) ReceiptFor(digest string) (Receipt, bool) {
	if r.Decision == nil {
		return Receipt{}, false
	}
	out := Receipt{Organization: r.Organization, Request: r.ID, Revision: r.Revision, Decision: r.Decision.Decision, Scope: r.Decision.Scope,
		By: r.Decision.By, Capability: r.Capability, Bot: r.Bot, Call: r.Call, ArgumentsSHA256: digest, AtMs: r.Decision.AtMs}
	if r.App != nil {
		out.Connection, out.ConnectionRevision = r.App.Connection, r.App.Revision
	}
	return out, true
}

// SigningKey is a key pair that signs receipts and heads of audit logs. Old keys
// stay, so that what they signed can be checked.
type SigningKey struct {
	ID        SigningKeyID // the kid of what it signs
	Number    int64        // from 1; two keys never have the same
	Public    string       // the x of RFC 8037: the Ed25519 public key in base64url
	Sealed    []byte       // the seed of the private key, encrypted
	ActiveAt  time.Time    // signs from then on; published before
	CreatedAt time.Time
	Version   int64
}

func (r *SigningKey) rowID() string { return string(r.ID) }

// SigningKeyNow gives the key that signs at a time: the newest that is active. It is
// false when there is none.
func SigningKeyNow(keys []SigningKey, at time.Time) (SigningKey, bool) {
	var found SigningKey
	for _, k := range keys {
		if !Before(at, k.ActiveAt) && k.Number > found.Number {
			found = k
		}
	}
	return found, found.Number > 0
}
