package domain

import (
	"strconv"
	"time"
)

// Organization is a tenant.
type Organization struct {
	ID        OrganizationID
	Name      string
	Settings  Settings
	CreatedAt time.Time
	UpdatedAt time.Time
	Version   int64
}

// Member is a person of an organization.
type Member struct {
	ID           MemberID
	Organization OrganizationID
	Name         string
	Permissions  Permissions
	MainBot      BotID
	DisabledAt   *time.Time
	ClosingDueAt *time.Time // set while the Requests of a disabled Member are being closed
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// Token is a secret that acts as one Member. Its scopes can only narrow what the
// Member may do.
type Token struct {
	ID           TokenID
	Organization OrganizationID
	Member       MemberID
	Name         string
	Hash         string // SHA-256 of the secret in hex
	Scopes       Permissions
	ExpiresAt    *time.Time
	LastUsedAt   *time.Time
	RevokedAt    *time.Time
	ClosingDueAt *time.Time // set while the Requests of its work are being closed
	CreatedAt    time.Time
	Version      int64
}

// Alive reports whether the token still opens the door at this time.
func (t Token) Alive(at time.Time) bool {
	return t.RevokedAt == nil && (t.ExpiresAt == nil || at.Before(*t.ExpiresAt))
}

// Principal is who calls: a Member by one of its tokens.
type Principal struct {
	Organization OrganizationID
	Member       Member
	Token        Token
}

// HasRole reports whether both the Member and the token hold the role.
func (p Principal) HasRole(role string) bool {
	return p.Member.Permissions.HasRole(role) && p.Token.Scopes.HasRole(role)
}

// Authority is one Member by one token, kept with the work that it started.
// A Turn's rights are the intersection of all authorities whose input it took.
//
// In a Channel the Member is the author of a message, who can be nobody, and the token is
// that of whoever posted it.
type Authority struct {
	Member MemberID `json:"member"`
	Token  TokenID  `json:"token"`
	Via    MemberID `json:"via,omitempty"` // whose token it is, when it is not the Member's
}

// Bearer is whose token it is.
func (a Authority) Bearer() MemberID {
	if a.Via != "" {
		return a.Via
	}
	return a.Member
}

// AddAuthority gives the list with one more authority, without repeats. The
// input is not changed.
func AddAuthority(list []Authority, more ...Authority) []Authority {
	out := append([]Authority(nil), list...)
next:
	for _, a := range more {
		for _, have := range out {
			if have == a {
				continue next
			}
		}
		out = append(out, a)
	}
	return out
}

// Rights is an authority with what was loaded for it, for the check.
type Rights struct {
	Member Member // without an ID for an author who is no Member
	Token  Token
	Via    *Member // whose token it is, when it is not the Member's
}

// Stands says whether somebody stands behind the work at all, and why nobody
// does. It is asked of everything that a Bot tries, also of what needs no
// capability: a revoked token and a disabled Member end every later call, and nothing
// runs for an author who is no Member. A token that merely expired still stands.
func Stands(rights []Rights) (why string, ok bool) {
	if len(rights) == 0 {
		return "no member stands behind this work", false
	}
	for _, r := range rights {
		if r.Member.ID == "" {
			return "the author of the message is no member of the organization", false
		}
		if r.Member.DisabledAt != nil {
			return "the member is disabled", false
		}
		if r.Via != nil && r.Via.DisabledAt != nil {
			return "the member whose token posted the message is disabled", false
		}
		if r.Token.RevokedAt != nil {
			return "the token that started the work was revoked", false
		}
	}
	return "", true
}

// Policy says whether every one of these rights covers the capability. With no
// rights at all nothing is covered. The pattern is the narrowest word to show:
// what covered it, or why nothing did. An expired token goes on narrowing; a
// revoked one and a disabled Member deny.
func Policy(rights []Rights, c Capability) (pattern string, ok bool) {
	if why, ok := Stands(rights); !ok {
		return why, false
	}
	for _, r := range rights {
		if _, covered := r.Member.Permissions.Covering(c); !covered {
			return "the member's permissions do not cover " + c.Action, false
		}
		found, covered := r.Token.Scopes.Covering(c)
		if !covered {
			return "the scopes of the token that started the work do not cover " + c.Action, false
		}
		pattern = found
	}
	return pattern, true
}

func pathIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
