package engine

import (
	"context"
	"crypto/subtle"
	"time"

	"openbot/domain"
)

// touchEvery is how exact a token's last-used time is.
const touchEvery = time.Minute

// Authenticate finds who a secret belongs to. Every reason to refuse gives the
// same words.
func (e *Engine) Authenticate(ctx context.Context, secret string) (domain.Principal, error) {
	refused := domain.Errorf(domain.CodeUnauthenticated, "Unauthenticated", "The token is missing, wrong, expired or revoked.")
	if len(secret) < 16 || len(secret) > 500 {
		return domain.Principal{}, refused
	}
	hash := HashSecret(secret)
	p, err := e.Store.Principal(ctx, hash)
	if domain.IsCode(err, domain.CodeNotFound) {
		return domain.Principal{}, refused
	}
	if err != nil {
		return domain.Principal{}, err
	}
	at := e.now()
	if subtle.ConstantTimeCompare([]byte(hash), []byte(p.Token.Hash)) != 1 || !p.Token.Alive(at) || p.Member.DisabledAt != nil {
		return domain.Principal{}, refused
	}
	if p.Token.LastUsedAt == nil || at.Sub(*p.Token.LastUsedAt) >= touchEvery {
		if err := e.Store.TouchToken(ctx, p.Token.ID, at); err != nil {
			e.Logger.Warn("a token's last use was not noted", "token", p.Token.ID, "error", err)
		}
	}
	return p, nil
}

// NewToken is what a token is made from. Member is whom it acts as; "" means the
// caller.
type NewToken struct {
	Member    domain.MemberID
	Name      string
	Scopes    domain.Permissions
	ExpiresAt *time.Time
}

// CreateToken makes a token and gives its secret, this once. Its scopes may not
// go beyond those of the token that makes it.
func (e *Engine) CreateToken(ctx context.Context, p domain.Principal, in NewToken) (domain.Token, string, error) {
	secret := newSecret()
	var token domain.Token
	err := e.decide(ctx, string(p.Organization), func(d *draft) error {
		member := in.Member
		if member == "" {
			member = p.Member.ID
		}
		if _, err := e.Member(ctx, p, member); err != nil {
			return err
		}
		if n := len(in.Name); n < 1 || n > 200 {
			return invalid("name", "must have 1 to 200 bytes")
		}
		if len(in.Scopes) == 0 || len(in.Scopes) > 100 {
			return invalid("scopes", "must have 1 to 100 entries")
		}
		if faults := in.Scopes.Faults("scopes"); faults != nil {
			return invalidFaults(faults)
		}
		for _, scope := range in.Scopes {
			if !p.Token.Scopes.Within(scope) {
				return domain.Errorf(domain.CodeForbidden, "Forbidden", "The scope %s goes beyond those of the token that you use.", scope)
			}
		}
		if in.ExpiresAt != nil && !domain.Before(d.at, *in.ExpiresAt) {
			return invalid("expiresAt", "must be in the future")
		}
		token = domain.Token{ID: newID[domain.TokenID](domain.PrefixToken), Organization: p.Organization, Member: member,
			Name: safeText(in.Name), Hash: HashSecret(secret), Scopes: in.Scopes, ExpiresAt: in.ExpiresAt, CreatedAt: d.at}
		d.put(&token)
		d.result = token
		return nil
	})
	return token, secret, err
}

// RevokeToken ends a token: every later call of the work that it started is
// denied, and its Requests are closed.
func (e *Engine) RevokeToken(ctx context.Context, p domain.Principal, id domain.TokenID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		token, err := e.Store.Token(ctx, id)
		if err == nil && token.Organization != p.Organization {
			err = domain.Errorf(domain.CodeNotFound, "", "")
		}
		if err != nil {
			return asNotFound(err, "TokenNotFound", "There is no token with this ID.")
		}
		if token.RevokedAt != nil {
			return nil
		}
		at, due := d.at, d.at.Add(domain.RunnableGrace)
		token.RevokedAt, token.ClosingDueAt = &at, &due
		d.put(&token)
		return nil
	})
}

// Tokens lists the tokens of the organization.
func (e *Engine) Tokens(ctx context.Context, p domain.Principal, page domain.Page) ([]domain.Token, error) {
	return e.Store.Tokens(ctx, p.Organization, page)
}

// MemberFields is what an admin sets of a Member; nil leaves a field as it is.
type MemberFields struct {
	Name        *string
	Permissions domain.Permissions
	Disabled    *bool
}

// CreateMember adds a person with a Main Bot.
func (e *Engine) CreateMember(ctx context.Context, p domain.Principal, in MemberFields) (domain.Member, error) {
	var m domain.Member
	err := e.decide(ctx, string(p.Organization), func(d *draft) error {
		var bot domain.Bot
		m, bot = newMember(d.at, p.Organization)
		if in.Permissions == nil {
			in.Permissions = domain.Permissions{domain.RoleWrite, "*"}
		}
		if err := setMember(&m, p, in, d.at); err != nil {
			return err
		}
		d.put(&m, &bot)
		d.result = m
		return nil
	})
	return m, err
}

// ChangeMember sets fields of a Member. Disabling one closes its Requests.
func (e *Engine) ChangeMember(ctx context.Context, p domain.Principal, id domain.MemberID, in MemberFields) (domain.Member, error) {
	var m domain.Member
	err := e.decide(ctx, string(id), func(d *draft) error {
		var err error
		if m, err = e.Member(ctx, p, id); err != nil {
			return err
		}
		if id == p.Member.ID && (in.Disabled != nil && *in.Disabled || in.Permissions != nil && !in.Permissions.HasRole(domain.RoleAdmin)) {
			return domain.Errorf(domain.CodeConflict, "MemberConflict", "You cannot disable yourself or take the admin role from yourself.")
		}
		before := m
		d.was(&before)
		if err := setMember(&m, p, in, d.at); err != nil {
			return err
		}
		m.UpdatedAt = d.at
		d.put(&m)
		return nil
	})
	return m, err
}

// Member reads a Member of the caller's organization.
func (e *Engine) Member(ctx context.Context, p domain.Principal, id domain.MemberID) (domain.Member, error) {
	m, err := e.Store.Member(ctx, id)
	if err == nil && m.Organization != p.Organization {
		err = domain.Errorf(domain.CodeNotFound, "", "")
	}
	return m, asNotFound(err, "MemberNotFound", "There is no Member with this ID.")
}

// Members lists the Members of the organization.
func (e *Engine) Members(ctx context.Context, p domain.Principal, page domain.Page) ([]domain.Member, error) {
	return e.Store.Members(ctx, p.Organization, page)
}

func setMember(m *domain.Member, p domain.Principal, in MemberFields, at time.Time) error {
	if in.Name != nil {
		m.Name = safeText(*in.Name)
	}
	if n := len(m.Name); n < 1 || n > 200 {
		return invalid("name", "must have 1 to 200 bytes")
	}
	if in.Permissions != nil {
		if len(in.Permissions) > 100 {
			return invalid("permissions", "must have at most 100 entries")
		}
		if faults := in.Permissions.Faults("permissions"); faults != nil {
			return invalidFaults(faults)
		}
		for _, permission := range in.Permissions {
			if !p.Token.Scopes.Within(permission) {
				return domain.Errorf(domain.CodeForbidden, "Forbidden", "The permission %s goes beyond the scopes of the token that you use.", permission)
			}
		}
		m.Permissions = in.Permissions
	}
	if in.Disabled != nil && *in.Disabled != (m.DisabledAt != nil) {
		m.DisabledAt, m.ClosingDueAt = nil, nil
		if *in.Disabled {
			due := at.Add(domain.RunnableGrace)
			m.DisabledAt, m.ClosingDueAt = &at, &due
		}
	}
	return nil
}

func newMember(at time.Time, org domain.OrganizationID) (domain.Member, domain.Bot) {
	m := domain.Member{ID: newID[domain.MemberID](domain.PrefixMember), Organization: org, CreatedAt: at, UpdatedAt: at}
	bot := domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Organization: org, Kind: domain.BotMain, Member: m.ID,
		Name: "Main", Role: "You are the assistant of one person and do what it asks with the tools that you have.", CreatedAt: at, UpdatedAt: at}
	m.MainBot = bot.ID
	return m, bot
}

// FirstStart makes the organization, its first Member with a Main Bot, and a token
// with every right, when there is no token yet. secret is the token's; "" makes
// one. It gives the secret, or "" when the start was not the first.
func (e *Engine) FirstStart(ctx context.Context, secret string) (string, error) {
	if secret == "" {
		secret = newSecret()
	}
	if err := e.PrepareKeys(ctx); err != nil {
		return "", err
	}
	at := e.now()
	org := domain.Organization{ID: newID[domain.OrganizationID](domain.PrefixOrganization), Name: "Organization",
		Settings: domain.DefaultSettings(), CreatedAt: at, UpdatedAt: at}
	member, bot := newMember(at, org.ID)
	member.Name, member.Permissions = "Admin", domain.Permissions{domain.RoleAdmin, "*"}
	token := domain.Token{ID: newID[domain.TokenID](domain.PrefixToken), Organization: org.ID, Member: member.ID, Name: "first token",
		Hash: HashSecret(secret), Scopes: domain.Permissions{domain.RoleAdmin, "*"}, CreatedAt: at}
	d := &draft{at: at, commit: domain.Commit{At: at, Rows: []domain.Row{&org, &member, &bot, &token, &domain.AuditHead{ID: org.ID, LinkedAt: at}}}}
	if err := e.attest(ctx, d); err != nil {
		return "", err
	}
	made, err := e.Store.FirstStart(ctx, d.commit)
	if err != nil || !made {
		return "", err
	}
	return secret, nil
}

// Settings reads the settings of the caller's organization.
func (e *Engine) Settings(ctx context.Context, p domain.Principal) (domain.Settings, error) {
	org, err := e.Store.Organization(ctx, p.Organization)
	return org.Settings, err
}

// Organization reads the caller's organization.
func (e *Engine) Organization(ctx context.Context, p domain.Principal) (domain.Organization, error) {
	return e.Store.Organization(ctx, p.Organization)
}

// ChangeSettings applies change to the settings and saves them when the whole
// fits; a bad one changes nothing.
func (e *Engine) ChangeSettings(ctx context.Context, p domain.Principal, change func(*domain.Settings) error) (domain.Settings, error) {
	var out domain.Settings
	err := e.decide(ctx, string(p.Organization), func(d *draft) error {
		org, err := e.Store.Organization(ctx, p.Organization)
		if err != nil {
			return err
		}
		before := org
		d.was(&before)
		if err := change(&org.Settings); err != nil {
			return err
		}
		if faults := org.Settings.Faults(); faults != nil {
			return invalidFaults(faults)
		}
		if m := org.Settings.JudgeModel; m != nil && e.CheckModel != nil {
			if err := e.CheckModel(*m); err != nil {
				return invalid("judgeModel", err.Error())
			}
		}
		if esc := org.Settings.Escalation; esc != nil {
			if _, err := e.Member(ctx, p, esc.Member); err != nil {
				return invalid("escalation.member", "must be a Member of the organization")
			}
		}
		org.UpdatedAt = d.at
		d.put(&org)
		out = org.Settings
		return nil
	})
	return out, err
}
