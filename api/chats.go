package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"openbot/domain"
	"openbot/domain/engine"
)

// Chat is a conversation with one Bot.
type Chat struct {
	ID       domain.ChatID `json:"id" example:"chat_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Bot      domain.BotID  `json:"bot"`
	Kind     string        `json:"kind" enum:"chat,task,review" doc:"chat: with a person; task: given-away work runs in it; review: a Bot decides a Request in it."`
	Mode     *string       `json:"mode" doc:"plan, or null."`
	Title    string        `json:"title"`
	Archived bool          `json:"archived" doc:"Of a review Chat: its review is over."`
	PlanTerms
	Status    string               `json:"status" enum:"idle,running,waiting,paused"`
	Parent    Nullable[ChatParent] `json:"parent" doc:"Where a task Chat comes from."`
	Channel   *ChatChannel         `json:"channel,omitempty" doc:"Of a Chat of a Channel: which outside chat it is."`
	Tainted   bool                 `json:"tainted" doc:"It took in content from outside the organization."`
	Taint     []TaintSource        `json:"taint,omitempty" doc:"Where that came from."`
	Turn      *string              `json:"turn" doc:"The Turn under way."`
	CreatedAt int64                `json:"createdAt"`
	UpdatedAt int64                `json:"updatedAt"`
}

// ChatParent is where a task Chat comes from.
type ChatParent struct {
	Chat       domain.ChatID       `json:"chat"`
	Delegation domain.DelegationID `json:"delegation"`
}

// ChatChannel is the outside chat that a Chat is.
type ChatChannel struct {
	Channel domain.ChannelID `json:"channel"`
	Chat    string           `json:"chat" doc:"As it is called outside."`
}

func wireChat(c domain.Chat) Chat {
	out := Chat{ID: c.ID, Bot: c.Bot, Kind: string(c.Kind), Mode: orNull(c.Mode), Title: c.Title, Status: string(c.Status),
		Tainted: c.Tainted(), Taint: wireTaint(c.Taint), Turn: orNull(c.Turn), CreatedAt: ms(c.CreatedAt), UpdatedAt: ms(c.UpdatedAt)}
	out.Archived = c.ArchivedAt != nil
	if ms := c.Plan.TimeoutMs; ms > 0 {
		out.PlanTimeoutMs = &ms
	}
	if on := c.Plan.OnExpire; on != "" {
		out.PlanOnExpire = &on
	}
	if c.Parent != nil {
		out.Parent.Value = &ChatParent{Chat: c.Parent.Chat, Delegation: c.Parent.Delegation}
	}
	if c.Channel != "" {
		out.Channel = &ChatChannel{Channel: c.Channel, Chat: c.Outside}
	}
	return out
}

// NewChat is the body that makes a Chat.
type NewChat struct {
	Bot   string `json:"bot,omitempty" doc:"Left out: your Main Bot."`
	Title string `json:"title,omitempty" maxLength:"500"`
	Mode  string `json:"mode,omitempty" enum:"plan" doc:"plan: only reads run until a plan was allowed."`
	PlanTerms
}

// PlanTerms are what a person sets for the plans of a Chat.
type PlanTerms struct {
	PlanTimeoutMs *int64  `json:"planTimeoutMs,omitempty" minimum:"1000" maximum:"2592000000" doc:"How long a plan waits for an answer; left out: as long as any Request."`
	PlanOnExpire  *string `json:"planOnExpire,omitempty" enum:"allow,deny" doc:"What happens to a plan that nobody answers; left out: deny. Time when no server ran does not count towards allow."`
}

// ChatChange is the body that changes a Chat.
type ChatChange struct {
	Title *string          `json:"title,omitempty" maxLength:"500"`
	Mode  Optional[string] `json:"mode,omitempty" doc:"plan, or null to leave plan mode."`
	PlanTerms
}

// Message is the body that gives a message to a Chat.
type Message struct {
	Text       string `json:"text" minLength:"1" maxLength:"524288" doc:"At most 524288 bytes."`
	CommandKey string `json:"commandKey,omitempty" maxLength:"200" doc:"The same as an Idempotency-Key, remembered as long as the Chat."`
}

// Posted is where a message went.
type Posted struct {
	Turn       domain.TurnID       `json:"turn" doc:"The Turn that takes the message."`
	Chat       domain.ChatID       `json:"chat"`
	Delegation domain.DelegationID `json:"delegation,omitempty" doc:"The new round of work, when the Chat is that of ended work."`
}

func wirePosted(p engine.Posted) Posted { return Posted(p) }

// Interrupt is the body that stops a Turn.
type Interrupt struct {
	Delegations bool `json:"delegations,omitempty" doc:"Also cancels the work that the Chat gave away."`
}

// Item is one entry of a Chat's history.
type Item struct {
	Sequence  int64         `json:"sequence"`
	Turn      domain.TurnID `json:"turn"`
	Kind      string        `json:"kind" enum:"message,notice,answer,tool_call,tool_result,reminder"`
	From      string        `json:"from" doc:"The ID of the Member or Bot, openbot, or author: and the name of an outside author."`
	Text      string        `json:"text,omitempty"`
	Call      *ItemCall     `json:"call,omitempty"`
	CreatedAt int64         `json:"createdAt"`
}

// ChatPath names a Chat in an address.
type ChatPath struct {
	Chat string `path:"chat" doc:"The ID of the Chat."`
}

func (p ChatPath) id() (domain.ChatID, error) {
	if !domain.ValidID(p.Chat, domain.PrefixChat) {
		return "", notFound("Chat")
	}
	return domain.ChatID(p.Chat), nil
}

func (s *server) chatRoutes() {
	const list = "chats"
	register(s, route{id: "listChats", method: http.MethodGet, path: "/v1/chats", tag: "Chats", summary: "List your Chats, newest first",
		role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *struct{ Paged }) (*listed[Chat], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Chats(ctx, p, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(c domain.Chat) string { return string(c.ID) }, wireChat), nil
		})
	register(s, route{id: "createChat", method: http.MethodPost, path: "/v1/chats", tag: "Chats", summary: "Make a Chat",
		role: domain.RoleWrite, status: 201, errors: []int{404, 409}}, s.createChat)
	register(s, route{id: "readChat", method: http.MethodGet, path: "/v1/chats/{chat}", tag: "Chats", summary: "Read a Chat",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *ChatPath) (*struct{ Body Chat }, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			c, err := s.Engine.Chat(ctx, p, id)
			if err != nil {
				return nil, err
			}
			shown, err := s.Engine.ShownChats(ctx, c)
			return &struct{ Body Chat }{wireChat(shown[0])}, err
		})
	register(s, route{id: "changeChat", method: http.MethodPatch, path: "/v1/chats/{chat}", tag: "Chats", summary: "Change a Chat",
		about: "A new plan time and end count for plans that are handed in from now on.",
		role:  domain.RoleWrite, status: 200, errors: []int{404, 409}}, s.changeChat)
	register(s, route{id: "deleteChat", method: http.MethodDelete, path: "/v1/chats/{chat}", tag: "Chats", summary: "Interrupt a Chat and delete it",
		role: domain.RoleWrite, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *ChatPath) (*none, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return nil, s.Engine.DeleteChat(ctx, p, id)
		})
	register(s, route{id: "postMessage", method: http.MethodPost, path: "/v1/chats/{chat}/messages", tag: "Chats", summary: "Give a message to a Chat",
		about: "An idle Chat starts a Turn with it; a Turn under way reads it before its next step.",
		role:  domain.RoleWrite, status: 202, errors: []int{404, 409}}, s.postMessage)
	register(s, route{id: "interruptChat", method: http.MethodPost, path: "/v1/chats/{chat}/interrupt", tag: "Chats", summary: "Stop the Turn under way",
		about: "Its open Requests are cancelled and its waiting calls do not run; a call that is out keeps its result.",
		role:  domain.RoleWrite, status: 200, errors: []int{404, 409}, optionalBody: true},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			ChatPath
			Body *Interrupt
		}) (*struct{ Body Chat }, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			c, err := s.Engine.Interrupt(keep(ctx, wireChat), p, id, in.Body != nil && in.Body.Delegations)
			return &struct{ Body Chat }{wireChat(c)}, err
		})
	register(s, route{id: "listItems", method: http.MethodGet, path: "/v1/chats/{chat}/items", tag: "Chats", summary: "The history of a Chat, in order",
		role: domain.RoleRead, status: 200, errors: []int{404}}, s.listItems)
}

func (s *server) createChat(ctx context.Context, p domain.Principal, in *struct {
	Keyed
	Body *NewChat
}) (*struct{ Body Chat }, error) {
	var body NewChat
	if in.Body != nil {
		body = *in.Body
	}
	if body.Bot != "" && !domain.ValidID(body.Bot, domain.PrefixBot) {
		return nil, notFound("Bot")
	}
	if len(body.Title) > domain.MaxTitle {
		return nil, invalid("title", "must have at most "+strconv.Itoa(domain.MaxTitle)+" bytes")
	}
	c, err := s.Engine.CreateChat(keep(ctx, wireChat), p, engine.NewChat{Bot: domain.BotID(body.Bot), Title: body.Title, Mode: body.Mode, Plan: body.terms()})
	return &struct{ Body Chat }{wireChat(c)}, err
}

func (t PlanTerms) terms() domain.PlanTerms {
	var terms domain.PlanTerms
	if t.PlanTimeoutMs != nil {
		terms.TimeoutMs = *t.PlanTimeoutMs
	}
	if t.PlanOnExpire != nil {
		terms.OnExpire = *t.PlanOnExpire
	}
	return terms
}

func (s *server) changeChat(ctx context.Context, p domain.Principal, in *struct {
	ChatPath
	Body ChatChange
}) (*struct{ Body Chat }, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	fields := engine.ChatFields{Title: in.Body.Title, TimeoutMs: in.Body.PlanTimeoutMs, OnExpire: in.Body.PlanOnExpire}
	if in.Body.Title != nil && len(*in.Body.Title) > domain.MaxTitle {
		return nil, invalid("title", "must have at most "+strconv.Itoa(domain.MaxTitle)+" bytes")
	}
	if in.Body.Mode.Set {
		mode := ""
		if in.Body.Mode.Value != nil {
			mode = *in.Body.Mode.Value
		}
		fields.Mode = &mode
	}
	c, err := s.Engine.ChangeChat(ctx, p, id, fields)
	return &struct{ Body Chat }{wireChat(c)}, err
}

func (s *server) postMessage(ctx context.Context, p domain.Principal, in *struct {
	Keyed
	ChatPath
	Body Message
}) (*struct{ Body Posted }, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	if len(in.Body.Text) > domain.MaxMessage {
		return nil, invalid("text", "must have at most "+strconv.Itoa(domain.MaxMessage)+" bytes")
	}
	if in.Body.CommandKey != "" {
		if _, err := s.Engine.Chat(ctx, p, id); err != nil {
			return nil, err // a key is forgotten with its Chat
		}
	}
	if ctx, err = keepCommand(ctx, s, p, in.Body.CommandKey, id, wirePosted); err != nil {
		return nil, err
	}
	posted, err := s.Engine.PostMessage(ctx, p, id, in.Body.Text)
	return &struct{ Body Posted }{wirePosted(posted)}, err
}

func (s *server) listItems(ctx context.Context, p domain.Principal, in *struct {
	ChatPath
	AfterSequence int64 `query:"afterSequence" minimum:"0" doc:"Only what comes after it."`
	Limit         int   `query:"limit" default:"50" minimum:"1" maximum:"200" doc:"How many to give at most."`
}) (*listed[Item], error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	items, calls, err := s.Engine.Items(ctx, p, id, in.AfterSequence, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := &listed[Item]{Body: []Item{}}
	if len(items) > in.Limit {
		items = items[:in.Limit]
		out.Link = nextLink(ctx, url.Values{"afterSequence": {strconv.FormatInt(items[len(items)-1].Sequence, 10)}, "limit": {strconv.Itoa(in.Limit)}})
	}
	for _, i := range items {
		out.Body = append(out.Body, wireItem(i, calls))
	}
	return out, nil
}

func wireItem(i domain.Item, calls map[domain.CallID]domain.Call) Item {
	out := Item{Sequence: i.Sequence, Turn: i.Turn, Kind: string(i.Kind), From: i.From, Text: i.Text, CreatedAt: ms(i.CreatedAt)}
	if c, ok := calls[i.Call]; ok {
		out.Call = &ItemCall{ID: c.ID, Name: c.Name, Arguments: rawJSON(c.Arguments), Status: string(c.Status), DecidedBy: wireDecidedBy(c.Decided)}
	}
	return out
}
