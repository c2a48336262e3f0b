package api

import (
	"context"
	"net/http"

	"openbot/domain"
	"openbot/domain/engine"
)

// Grant is a kept decision for a Bot and exactly one capability.
type Grant struct {
	ID         domain.GrantID `json:"id" example:"grt_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Bot        domain.BotID   `json:"bot"`
	Capability Capability     `json:"capability"`
	Limit      string         `json:"limit,omitempty" enum:"time,steps,budget" doc:"Of delegations.continue: the kind of limit that it speaks of; left out: each."`
	Decision   string         `json:"decision" enum:"allow,deny"`
	Scope      string         `json:"scope" enum:"chat,lifetime"`
	Chat       *string        `json:"chat" doc:"Of scope chat."`
	Revision   *int64         `json:"revision" doc:"Of the Connection; the decision holds for this one alone. null for what is no tool of an App."`
	Source     GrantSource    `json:"source"`
	Taint      []TaintSource  `json:"taint,omitempty" doc:"Of an allow by a person: what its Request showed. In the Chat of that Request the Grant counts in spite of this taint."`
	CreatedAt  int64          `json:"createdAt"`
	RevokedAt  *int64         `json:"revokedAt"`
}

// GrantSource is where a Grant or Rule comes from.
type GrantSource struct {
	Kind    string  `json:"kind" enum:"request,endorsement,person" doc:"request: the answer to one; endorsement: the support of a Bot for one; person: kept by hand."`
	Request *string `json:"request"`
	Grant   *string `json:"grant" doc:"The Grant on whose strength a Bot gave it; revoking that one revokes this one."`
}

func wireGrant(g domain.Grant) Grant {
	out := Grant{ID: g.ID, Bot: g.Bot, Capability: Capability(g.Capability), Decision: g.Decision, Scope: g.Scope, Chat: orNull(g.Chat),
		Source:    GrantSource{Kind: g.Source, Request: orNull(g.Request), Grant: orNull(g.Parent)},
		CreatedAt: ms(g.CreatedAt), RevokedAt: msOrNull(g.RevokedAt)}
	out.Limit, out.Taint = g.Limit, wireTaint(g.Shown)
	if g.Capability.Action == domain.ActionAppsCall {
		out.Revision = &g.Revision
	}
	return out
}

// NewGrant is the body that keeps a decision.
type NewGrant struct {
	Bot        string     `json:"bot"`
	Capability Capability `json:"capability"`
	Decision   string     `json:"decision" enum:"allow,deny"`
	Scope      string     `json:"scope" enum:"chat,lifetime,session" doc:"session is the older word for chat."`
	Chat       *string    `json:"chat,omitempty" doc:"Of scope chat."`
}

type grantQuery struct {
	Paged
	Bot     string `query:"bot" doc:"Of this Bot."`
	Revoked bool   `query:"revoked" doc:"Only those that were revoked; they are left out otherwise."`
}

func (s *server) grantRoutes() {
	const list = "grants"
	register(s, route{id: "listGrants", method: http.MethodGet, path: "/v1/grants", tag: "Grants", summary: "List the Grants of your work, newest first",
		role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *grantQuery) (*listed[Grant], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			bot, err := eitherID("bot", in.Bot, "bot", "", domain.PrefixBot)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Grants(ctx, p, domain.GrantFilter{Bot: domain.BotID(bot), Revoked: in.Revoked}, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(g domain.Grant) string { return string(g.ID) }, wireGrant), nil
		})
	register(s, route{id: "createGrant", method: http.MethodPost, path: "/v1/grants", tag: "Grants", summary: "Keep a decision about a Bot",
		about: "For a tool of an App it holds for the revision that the Connection has now. It settles equal Requests that wait.",
		role:  domain.RoleWrite, status: 201, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			Body NewGrant
		}) (*struct{ Body Grant }, error) {
			b := in.Body
			if !domain.ValidID(b.Bot, domain.PrefixBot) {
				return nil, notFound("Bot")
			}
			made := engine.NewGrant{Bot: domain.BotID(b.Bot), Capability: domain.Capability(b.Capability), Decision: b.Decision, Scope: b.Scope}
			if b.Chat != nil {
				if !domain.ValidID(*b.Chat, domain.PrefixChat) {
					return nil, notFound("Chat")
				}
				made.Chat = domain.ChatID(*b.Chat)
			}
			g, err := s.Engine.CreateGrant(keep(ctx, wireGrant), p, made)
			return &struct{ Body Grant }{wireGrant(g)}, err
		})
	register(s, route{id: "revokeGrant", method: http.MethodDelete, path: "/v1/grants/{grant}", tag: "Grants", summary: "Revoke a Grant",
		about: "What was given on its strength is revoked as well. It stays readable with revoked=true.",
		role:  domain.RoleWrite, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Grant string `path:"grant" doc:"The ID of the Grant."`
		}) (*none, error) {
			if !domain.ValidID(in.Grant, domain.PrefixGrant) {
				return nil, notFound("Grant")
			}
			return nil, s.Engine.RevokeGrant(ctx, p, domain.GrantID(in.Grant))
		})
}
