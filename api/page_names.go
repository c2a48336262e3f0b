package api

import (
	"context"
	"fmt"
	"time"

	"openbot/domain"
	"openbot/web"
)

// names are what people call the Bots and Connections of a page.
type names struct{ domain.Names }

// nameless collects what a page needs names for.
type nameless struct {
	bots        map[domain.BotID]bool
	connections map[domain.ConnectionID]bool
}

func (c *nameless) bot(ids ...domain.BotID) {
	if c.bots == nil {
		c.bots = map[domain.BotID]bool{}
	}
	for _, id := range ids {
		if id != "" {
			c.bots[id] = true
		}
	}
}

func (c *nameless) connection(ids ...domain.ConnectionID) {
	if c.connections == nil {
		c.connections = map[domain.ConnectionID]bool{}
	}
	for _, id := range ids {
		if id != "" {
			c.connections[id] = true
		}
	}
}

func (c *nameless) request(r domain.Request) {
	c.bot(r.Bot)
	c.bot(r.Chain...)
	c.bot(r.Approver.Bot)
	if r.Decision != nil {
		c.bot(r.Decision.By.Bot)
	}
	for _, e := range r.Endorsements {
		c.bot(e.Bot)
	}
	c.target(r.Capability)
	if r.App != nil {
		c.connection(r.App.Connection)
	}
	for _, source := range r.Taint {
		c.connection(source.Connection)
	}
}

func (c *nameless) target(capability domain.Capability) {
	switch capability.Action {
	case domain.ActionBotsDelegate, domain.ActionBotsPromote:
		c.bot(domain.BotID(capability.Target))
	case domain.ActionAppsCall:
		connection, _ := splitTarget(capability.Target)
		c.connection(connection)
	}
}

func (s *server) namesOf(ctx context.Context, p domain.Principal, c nameless) (names, error) {
	bots := make([]domain.BotID, 0, len(c.bots))
	for id := range c.bots {
		bots = append(bots, id)
	}
	connections := make([]domain.ConnectionID, 0, len(c.connections))
	for id := range c.connections {
		connections = append(connections, id)
	}
	found, err := s.Engine.Names(ctx, p, bots, connections)
	return names{found}, err
}

func (n names) bot(id domain.BotID) string {
	if name := n.Bots[id]; name != "" {
		return name
	}
	return string(id)
}

func (n names) connection(id domain.ConnectionID) string {
	if name := n.Connections[id]; name != "" {
		return name
	}
	return string(id)
}

// actor names who decides or decided. Each entry of me is this person.
func (n names) actor(a domain.Actor, me domain.MemberID) string {
	switch a.Tag {
	case domain.TagPerson:
		if a.User == me {
			return "you"
		}
		return "another Member (" + string(a.User) + ")"
	case domain.TagBot:
		return n.bot(a.Bot)
	case domain.TagGrant:
		return "a Grant"
	case domain.TagRule:
		return "a Rule"
	case domain.TagExpiry:
		return "expiry, because nobody answered in time"
	case domain.TagPolicy:
		return "policy"
	case domain.TagExemption:
		return "the settings: it needs no decision"
	}
	return a.Tag
}

// moment puts a time in words, as seen from now.
func moment(at, now time.Time) web.Moment {
	ago, far := now.Sub(at), ""
	switch {
	case ago >= time.Second:
		far = roughly(ago) + " ago"
	case ago <= -time.Second:
		far = "in " + roughly(-ago)
	default:
		far = "now"
	}
	at = at.UTC()
	return web.Moment{ISO: at.Format(time.RFC3339), Text: at.Format("2006-01-02 15:04:05") + " UTC", Far: far, Ms: at.UnixMilli()}
}

func momentOrNil(at *time.Time, now time.Time) *web.Moment {
	if at == nil {
		return nil
	}
	m := moment(*at, now)
	return &m
}

// roughly is a duration to the nearest unit that people think in.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d days", d.Round(day)/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d.Round(time.Hour)/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", d.Round(time.Minute)/time.Minute)
	default:
		return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
	}
}
