package api

import (
	"context"
	"net/http"

	"openbot/domain"
	"openbot/domain/engine"
)

// Bot is an agent.
type Bot struct {
	ID           domain.BotID  `json:"id" example:"bot_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Kind         string        `json:"kind" enum:"main,lasting,session" doc:"main: one for each Member; lasting: lives until archived; session: a helper in one Chat."`
	Owner        *string       `json:"owner" doc:"The Bot that owns it."`
	Shared       bool          `json:"shared" doc:"It belongs to the organization."`
	Chat         *string       `json:"chat" doc:"Of a session Bot: the Chat that it lives in."`
	Name         string        `json:"name"`
	Role         string        `json:"role" doc:"What it is for, in one line."`
	Instructions string        `json:"instructions"`
	Model        *string       `json:"model" doc:"provider:model; null: the server's default."`
	Memory       string        `json:"memory" doc:"Text that the Bot reads and changes."`
	Taint        []TaintSource `json:"taint,omitempty" doc:"Content from outside that what a Bot wrote here rests on: it taints every Chat with this Bot. A person who sets memory, or name, role and instructions together, takes the taint of those away."`
	Archived     bool          `json:"archived"`
	CreatedAt    int64         `json:"createdAt"`
	UpdatedAt    int64         `json:"updatedAt"`
}

func wireBot(b domain.Bot) Bot {
	return Bot{ID: b.ID, Kind: string(b.Kind), Owner: orNull(b.Owner), Shared: b.Shared, Chat: orNull(b.Chat), Name: b.Name, Role: b.Role,
		Instructions: b.Instructions, Model: orNull(b.Model), Memory: b.Memory, Taint: wireTaint(b.Brings()), Archived: b.ArchivedAt != nil,
		CreatedAt: ms(b.CreatedAt), UpdatedAt: ms(b.UpdatedAt)}
}

// NewBot is the body that makes a lasting Bot.
type NewBot struct {
	Name         string  `json:"name" minLength:"1" maxLength:"200"`
	Role         string  `json:"role" maxLength:"1000"`
	Instructions string  `json:"instructions" maxLength:"100000"`
	Model        *string `json:"model,omitempty" maxLength:"200" example:"openai:gpt-5-mini"`
	Owner        *string `json:"owner,omitempty" doc:"A Bot of yours; with neither owner nor shared your Main Bot owns it."`
	Shared       *bool   `json:"shared,omitempty" doc:"For the whole organization; needs admin."`
}

// BotChange is the body that changes a Bot.
type BotChange struct {
	Name         *string `json:"name,omitempty" minLength:"1" maxLength:"200"`
	Role         *string `json:"role,omitempty" maxLength:"1000"`
	Instructions *string `json:"instructions,omitempty" maxLength:"100000"`
	Model        *string `json:"model,omitempty" maxLength:"200" doc:"The empty text goes back to the server's default."`
	Memory       *string `json:"memory,omitempty" maxLength:"100000"`
}

// BotPath names a Bot in an address.
type BotPath struct {
	Bot string `path:"bot" doc:"The ID of the Bot."`
}

func (p BotPath) id() (domain.BotID, error) {
	if !domain.ValidID(p.Bot, domain.PrefixBot) {
		return "", notFound("Bot")
	}
	return domain.BotID(p.Bot), nil
}

func (s *server) botRoutes() {
	const list = "bots"
	register(s, route{id: "listBots", method: http.MethodGet, path: "/v1/bots", tag: "Bots", summary: "List your Bots and the shared ones, newest first",
		role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *struct{ Paged }) (*listed[Bot], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Bots(ctx, p, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(b domain.Bot) string { return string(b.ID) }, wireBot), nil
		})
	register(s, route{id: "createBot", method: http.MethodPost, path: "/v1/bots", tag: "Bots", summary: "Make a lasting Bot",
		role: domain.RoleWrite, status: 201, errors: []int{404, 409}}, s.createBot)
	register(s, route{id: "readBot", method: http.MethodGet, path: "/v1/bots/{bot}", tag: "Bots", summary: "Read a Bot",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *BotPath) (*struct{ Body Bot }, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			b, err := s.Engine.Bot(ctx, p, id)
			return &struct{ Body Bot }{wireBot(b)}, err
		})
	register(s, route{id: "changeBot", method: http.MethodPatch, path: "/v1/bots/{bot}", tag: "Bots", summary: "Change a Bot",
		role: domain.RoleWrite, status: 200, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			BotPath
			Body BotChange
		}) (*struct{ Body Bot }, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			b, err := s.Engine.ChangeBot(ctx, p, id, engine.BotFields{Name: in.Body.Name, Role: in.Body.Role,
				Instructions: in.Body.Instructions, Model: in.Body.Model, Memory: in.Body.Memory})
			return &struct{ Body Bot }{wireBot(b)}, err
		})
	register(s, route{id: "archiveBot", method: http.MethodDelete, path: "/v1/bots/{bot}", tag: "Bots", summary: "Archive a Bot",
		role: domain.RoleWrite, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *BotPath) (*none, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return nil, s.Engine.ArchiveBot(ctx, p, id)
		})
}

func (s *server) createBot(ctx context.Context, p domain.Principal, in *struct {
	Keyed
	Body NewBot
}) (*struct{ Body Bot }, error) {
	fields := engine.BotFields{Name: &in.Body.Name, Role: &in.Body.Role, Instructions: &in.Body.Instructions,
		Model: in.Body.Model, Shared: in.Body.Shared}
	if in.Body.Owner != nil {
		if !domain.ValidID(*in.Body.Owner, domain.PrefixBot) {
			return nil, invalid("owner", "must be the ID of a Bot")
		}
		owner := domain.BotID(*in.Body.Owner)
		fields.Owner = &owner
	}
	b, err := s.Engine.CreateBot(keep(ctx, wireBot), p, fields)
	return &struct{ Body Bot }{wireBot(b)}, err
}
