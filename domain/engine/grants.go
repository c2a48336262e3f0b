package engine

import (
	"context"
	"slices"
	"strings"

	"openbot/domain"
)

// NewGrant is what a person keeps a decision with.
type NewGrant struct {
	Bot        domain.BotID
	Capability domain.Capability
	Decision   string
	Scope      string
	Chat       domain.ChatID // for scope chat
}

// CreateGrant keeps a decision about a Bot in the caller's work. For a tool of an App
// it holds for the revision that the Connection has now. It settles what waits.
func (e *Engine) CreateGrant(ctx context.Context, p domain.Principal, in NewGrant) (domain.Grant, error) {
	in.Capability.Action = domain.CanonicalAction(in.Capability.Action)
	if in.Scope == "session" {
		in.Scope = domain.ScopeChat
	}
	if err := grantFits(in); err != nil {
		return domain.Grant{}, err
	}
	var grant domain.Grant
	err := e.decide(ctx, string(p.Member.ID), func(d *draft) error {
		bot, err := e.visibleBot(ctx, p.Organization, p.Member.ID, in.Bot)
		if err != nil {
			return err
		}
		due := d.at.Add(domain.RunnableGrace)
		grant = domain.Grant{ID: newID[domain.GrantID](domain.PrefixGrant), Organization: p.Organization, Member: p.Member.ID, Bot: bot.ID,
			Capability: in.Capability, Decision: in.Decision, Scope: in.Scope, Chat: in.Chat, Source: domain.SourcePerson,
			SettleDueAt: &due, CreatedAt: d.at}
		if in.Scope == domain.ScopeChat {
			chat, err := e.Chat(ctx, p, in.Chat)
			if err != nil {
				return err
			}
			if chat.Bot != bot.ID {
				return invalid("chat", "is not a Chat of this Bot")
			}
		}
		if in.Capability.Action == domain.ActionAppsCall {
			id, _, _ := strings.Cut(in.Capability.Target, "/")
			c, err := e.Store.Connection(ctx, domain.ConnectionID(id))
			if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
				return err
			}
			if err != nil || c.Organization != p.Organization || !c.VisibleTo(p.Member.ID) {
				return invalid("capability.target", "must be <connection>/<tool name> with a Connection of yours")
			}
			grant.Revision = c.Revision
		}
		d.put(&grant)
		d.result = grant
		return nil
	})
	return grant, err
}

func grantFits(in NewGrant) error {
	switch {
	case !slices.Contains(domain.Actions(), in.Capability.Action):
		return invalid("capability.action", "is not an action, such as apps.call")
	case in.Capability.Target == "" || len(in.Capability.Target) > 500:
		return invalid("capability.target", "must have 1 to 500 bytes")
	case in.Decision != domain.DecisionAllow && in.Decision != domain.DecisionDeny:
		return invalid("decision", "must be allow or deny")
	case in.Scope != domain.ScopeChat && in.Scope != domain.ScopeLifetime:
		return invalid("scope", "must be chat or lifetime")
	case (in.Scope == domain.ScopeChat) != (in.Chat != ""):
		return invalid("chat", "belongs to scope chat, and scope chat needs it")
	}
	return nil
}

// Grant reads a Grant of the caller's work, revoked or not.
func (e *Engine) Grant(ctx context.Context, p domain.Principal, id domain.GrantID) (domain.Grant, error) {
	const message = "There is no Grant with this ID in your work."
	g, err := e.Store.Grant(ctx, id)
	if err != nil {
		return g, asNotFound(err, "GrantNotFound", message)
	}
	if g.Member != p.Member.ID {
		return domain.Grant{}, domain.Errorf(domain.CodeNotFound, "GrantNotFound", message)
	}
	return g, nil
}

// Grants lists the Grants of the caller's work, newest first.
func (e *Engine) Grants(ctx context.Context, p domain.Principal, filter domain.GrantFilter, page domain.Page) ([]domain.Grant, error) {
	filter.Member = p.Member.ID
	return e.Store.Grants(ctx, p.Organization, filter, page)
}

// RevokeGrant takes a Grant back, with all that were given on its strength. A Grant
// that is revoked already stays as it is.
func (e *Engine) RevokeGrant(ctx context.Context, p domain.Principal, id domain.GrantID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		g, err := e.Grant(ctx, p, id)
		if err != nil {
			return err
		}
		below, err := e.Store.GrantsBelow(ctx, id)
		if err != nil {
			return err
		}
		for _, g := range append([]domain.Grant{g}, below...) {
			if g.RevokedAt != nil {
				continue
			}
			at := d.at
			g.RevokedAt, g.SettleDueAt = &at, nil
			d.put(&g)
		}
		return nil
	})
}
