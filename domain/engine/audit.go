package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/gowebpki/jcs"

	"openbot/domain"
)

// was remembers how a row stood before this decision. It is for rows that do not say
// themselves what changed in them.
func (d *draft) was(row domain.Row) {
	if d.before == nil {
		d.before = map[string]domain.Row{}
	}
	d.before[domain.RowID(row)] = row
}

// change is what one row of a commit leaves in the audit log.
type change struct {
	kind  string
	org   domain.OrganizationID
	actor *domain.Actor // nil: whoever acts in this commit
	data  any
}

// audit gives the entries that follow from the rows that are written.
func (d *draft) audit(o Origin) []domain.AuditEntry {
	var entries []domain.AuditEntry
	acting := d.actor(o)
	for _, row := range d.commit.Rows {
		c, ok := d.change(row)
		if !ok {
			continue
		}
		e := domain.AuditEntry{Organization: c.org, At: d.at.Truncate(time.Millisecond), Kind: c.kind, Subject: domain.RowID(row), Data: canonical(c.data)}
		actor := acting
		if c.actor != nil {
			actor = *c.actor
		}
		o.sign(&e, actor)
		entries = append(entries, e)
	}
	return entries
}

// actor is who acts in this commit: the caller; without one whoever decides a Request
// in it, since its Grants and Rules are kept by the same decision; else the server.
func (d *draft) actor(o Origin) domain.Actor {
	if o.Member != "" {
		return o.actor()
	}
	for _, row := range d.commit.Rows {
		if r, ok := row.(*domain.Request); ok && d.signed[r.ID] {
			return r.Decision.By
		}
	}
	return o.actor()
}

// change says what a row of this commit leaves in the audit log. It is false for one
// that nobody needs to account for.
func (d *draft) change(row domain.Row) (change, bool) {
	switch r := row.(type) {
	case *domain.Organization:
		before, _ := d.before[string(r.ID)].(*domain.Organization)
		return organizationChange(before, r)
	case *domain.Member:
		before, _ := d.before[string(r.ID)].(*domain.Member)
		return memberChange(before, r)
	case *domain.Token:
		return tokenChange(r)
	case *domain.Connection:
		before, _ := d.before[string(r.ID)].(*domain.Connection)
		return connectionChange(before, r)
	case *domain.HostTool:
		return toolChange(r), true
	case *domain.Call:
		before, _ := d.before[string(r.ID)].(*domain.Call)
		return callChange(before, r)
	case *domain.Request:
		before, _ := d.before[string(r.ID)].(*domain.Request)
		return requestChange(before, r, d.signed[r.ID])
	case *domain.Grant:
		return grantChange(r)
	case *domain.Rule:
		return ruleChange(r), true
	}
	return change{}, false
}

// canonical is the form in which data is kept: what is hashed, byte for byte.
func canonical(data any) json.RawMessage {
	raw, err := json.Marshal(data)
	if err == nil {
		raw, err = jcs.Transform(raw)
	}
	if err != nil {
		return json.RawMessage("{}") // structs of strings and numbers always have a form
	}
	return raw
}

// textDigest stands in place of a free text: a person or a Bot wrote it, and it may
// hold what an argument holds.
func textDigest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func digestOf(text *string) string {
	if text == nil {
		return ""
	}
	return textDigest(*text)
}
