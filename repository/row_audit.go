package repository

import "openbot/domain"

// auditRow is an entry with its link, as one statement gives both. It is written by
// insertAudit alone, and never changed.
type auditRow struct {
	OrganizationID domain.OrganizationID
	Position       int64
	Kind           string
	Subject        string
	ActorTag       string
	ActorID        string
	TokenID        domain.TokenID
	Address        string
	Data           string
	Created        int64 `gorm:"column:created_at"`
	Number         int64 // 0 while it is not chained
	Previous       string
	Hash           string
}

func (r auditRow) domain() domain.AuditEntry {
	e := domain.AuditEntry{Organization: r.OrganizationID, Position: r.Position, At: moment(r.Created), Kind: r.Kind, Subject: r.Subject,
		Actor: actorOf(r.ActorTag, r.ActorID), Token: r.TokenID, Address: r.Address, Data: raw(r.Data)}
	if r.Number != 0 {
		e.Link = &domain.AuditLink{Organization: r.OrganizationID, Position: r.Position, Number: r.Number, Previous: r.Previous, Hash: r.Hash}
	}
	return e
}

// actorOf puts an ID where the tag says. One that its tag has no place for is kept all
// the same: it is not what was hashed, and the check of the chain must see it.
func actorOf(tag, id string) domain.Actor {
	a := domain.Actor{Tag: tag}
	switch tag {
	case domain.TagBot:
		a.Bot = domain.BotID(id)
	case domain.TagGrant:
		a.Grant = domain.GrantID(id)
	case domain.TagRule:
		a.Rule = domain.RuleID(id)
	default:
		a.User = domain.MemberID(id)
	}
	return a
}

// idOf gives the ID of an actor; "" for one without.
func idOf(a domain.Actor) string {
	switch a.Tag {
	case domain.TagBot:
		return string(a.Bot)
	case domain.TagGrant:
		return string(a.Grant)
	case domain.TagRule:
		return string(a.Rule)
	}
	return string(a.User)
}

type linkRow struct {
	OrganizationID domain.OrganizationID
	Position       int64
	Number         int64
	Previous       string
	Hash           string
}

func (linkRow) TableName() string { return "audit_links" }

func fromLink(l *domain.AuditLink) linkRow {
	return linkRow{OrganizationID: l.Organization, Position: l.Position, Number: l.Number, Previous: l.Previous, Hash: l.Hash}
}

func (r linkRow) domain() domain.AuditLink {
	return domain.AuditLink{Organization: r.OrganizationID, Position: r.Position, Number: r.Number, Previous: r.Previous, Hash: r.Hash}
}

type headRow struct {
	ID       domain.OrganizationID `gorm:"<-:create"`
	Entries  int64
	Hash     string
	Position int64
	Signed   string
	Linked   int64 `gorm:"column:linked_at"`
	Version  int64
}

func (headRow) TableName() string { return "audit_heads" }

func fromHead(h *domain.AuditHead, version int64) headRow {
	return headRow{ID: h.ID, Entries: h.Count, Hash: h.Hash, Position: h.Position, Signed: h.Signed, Linked: micros(h.LinkedAt), Version: version}
}

func (r headRow) domain() domain.AuditHead {
	return domain.AuditHead{ID: r.ID, Count: r.Entries, Hash: r.Hash, Position: r.Position, Signed: r.Signed, LinkedAt: moment(r.Linked), Version: r.Version}
}

// keyRow is written once.
type keyRow struct {
	ID       domain.SigningKeyID `gorm:"<-:create"`
	Number   int64               `gorm:"<-:create"`
	Public   string              `gorm:"<-:create"`
	Sealed   []byte              `gorm:"<-:create"`
	ActiveAt int64               `gorm:"<-:create"`
	Created  int64               `gorm:"column:created_at;<-:create"`
	Version  int64
}

func (keyRow) TableName() string { return "signing_keys" }

func fromSigningKey(k *domain.SigningKey, version int64) keyRow {
	return keyRow{ID: k.ID, Number: k.Number, Public: k.Public, Sealed: k.Sealed, ActiveAt: micros(k.ActiveAt), Created: micros(k.CreatedAt), Version: version}
}

func (r keyRow) domain() domain.SigningKey {
	return domain.SigningKey{ID: r.ID, Number: r.Number, Public: r.Public, Sealed: r.Sealed, ActiveAt: moment(r.ActiveAt), CreatedAt: moment(r.Created), Version: r.Version}
}
