package engine

import (
	"context"
	"maps"
	"slices"

	"openbot/domain"
)

// ChannelFields is what a Member sets of a Channel; nil leaves a field as it is.
type ChannelFields struct {
	Name    *string
	Bot     *domain.BotID // nil for a new one: the Member's Main Bot
	URL     *string
	Actors  map[string]domain.MemberID // replaces all of them
	Enabled *bool
	Secret  *string // signs what goes out; made when left out, and shown once
}

// CreateChannel binds a group chat outside to a Bot. It gives the signing secret this
// once.
func (e *Engine) CreateChannel(ctx context.Context, p domain.Principal, in ChannelFields) (domain.Channel, string, error) {
	if in.Secret == nil {
		made := newSigningSecret()
		in.Secret = &made
	}
	var c domain.Channel
	err := e.decide(ctx, string(p.Member.ID), func(d *draft) error {
		c = domain.Channel{ID: newID[domain.ChannelID](domain.PrefixChannel), Organization: p.Organization, Member: p.Member.ID,
			Bot: p.Member.MainBot, Actors: map[string]domain.MemberID{}, Enabled: true, CreatedAt: d.at, UpdatedAt: d.at}
		if in.Name == nil || in.URL == nil {
			return invalid("name", "and url are required")
		}
		if err := e.setChannel(ctx, &c, p, in); err != nil {
			return err
		}
		d.put(&c)
		d.result = c
		return nil
	})
	return c, *in.Secret, err
}

// ChangeChannel sets fields of a Channel. A new Bot takes over in outside chats that have
// no Chat yet; what waits to go out goes to the new address.
func (e *Engine) ChangeChannel(ctx context.Context, p domain.Principal, id domain.ChannelID, in ChannelFields) (domain.Channel, error) {
	var c domain.Channel
	err := e.decide(ctx, string(id), func(d *draft) error {
		var err error
		if c, err = e.Channel(ctx, p, id); err != nil {
			return err
		}
		if err := e.setChannel(ctx, &c, p, in); err != nil {
			return err
		}
		c.UpdatedAt = d.at
		d.put(&c)
		return nil
	})
	return c, err
}

// DeleteChannel takes a Channel away. Its Chats stay as they are; nothing comes in or goes
// out any more.
func (e *Engine) DeleteChannel(ctx context.Context, p domain.Principal, id domain.ChannelID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		c, err := e.Channel(ctx, p, id)
		if err != nil {
			return err
		}
		at := d.at
		c.DeletedAt, c.UpdatedAt, c.Sealed = &at, at, nil
		d.put(&c)
		return nil
	})
}

// Channel reads a Channel of the caller, or for admins of the organization.
func (e *Engine) Channel(ctx context.Context, p domain.Principal, id domain.ChannelID) (domain.Channel, error) {
	c, err := e.Store.Channel(ctx, id)
	if err == nil && (c.Organization != p.Organization || c.DeletedAt != nil || c.Member != p.Member.ID && !p.HasRole(domain.RoleAdmin)) {
		err = domain.Errorf(domain.CodeNotFound, "", "")
	}
	if err != nil {
		return domain.Channel{}, asNotFound(err, "ChannelNotFound", "There is no Channel with this ID.")
	}
	return c, nil
}

// Channels lists those of the caller, and for admins those of the organization.
func (e *Engine) Channels(ctx context.Context, p domain.Principal, page domain.Page) ([]domain.Channel, error) {
	return e.Store.Channels(ctx, p.Organization, p.Member.ID, p.HasRole(domain.RoleAdmin), page)
}

func (e *Engine) setChannel(ctx context.Context, c *domain.Channel, p domain.Principal, in ChannelFields) error {
	if in.Name != nil {
		if n := len(*in.Name); n < 1 || n > domain.MaxChannelName {
			return invalidf("name", "must have 1 to %d bytes", domain.MaxChannelName)
		}
		c.Name = safeText(*in.Name)
	}
	set(&c.URL, in.URL)
	if err := e.checkReceiver(c.URL); err != nil {
		return err
	}
	if in.Enabled != nil {
		c.Enabled, c.DisabledWhy = *in.Enabled, ""
	}
	if in.Bot != nil {
		// Whose Bot it is does not depend on which admin changes the Channel.
		bot, err := e.visibleBot(ctx, c.Organization, c.Member, *in.Bot)
		if err != nil {
			return err
		}
		if bot.Kind == domain.BotSession || bot.ArchivedAt != nil {
			return invalid("bot", "must be a lasting Bot that is not archived")
		}
		c.Bot = bot.ID
	}
	if in.Actors != nil {
		if err := e.setActors(ctx, c, p, in.Actors); err != nil {
			return err
		}
	}
	if in.Secret == nil {
		return nil
	}
	var err error
	c.Sealed, err = e.sealSigning(*in.Secret, c.Organization, string(c.ID))
	return err
}

// setActors says who outside authors are. Whoever may post to the Channel acts in their
// name, so only an admin says so of anybody else.
func (e *Engine) setActors(ctx context.Context, c *domain.Channel, p domain.Principal, actors map[string]domain.MemberID) error {
	if len(actors) > domain.MaxActors {
		return invalidf("actors", "has more than %d entries", domain.MaxActors)
	}
	for _, author := range slices.Sorted(maps.Keys(actors)) {
		member := actors[author]
		if !domain.ValidOutside(author) {
			return invalidf("actors", "has a name that is not 1 to %d bytes without control characters", domain.MaxOutsideName)
		}
		if before, there := c.Actors[author]; there && before == member {
			continue
		}
		if member != p.Member.ID && !p.HasRole(domain.RoleAdmin) {
			return domain.Errorf(domain.CodeForbidden, "Forbidden", "Only an admin may say that an outside author is another Member.")
		}
		if !domain.ValidID(string(member), domain.PrefixMember) {
			return invalid("actors", "must name Members of the organization")
		}
		if _, err := e.Member(ctx, p, member); domain.IsCode(err, domain.CodeNotFound) {
			return invalid("actors", "must name Members of the organization")
		} else if err != nil {
			return err
		}
	}
	c.Actors = actors
	return nil
}
