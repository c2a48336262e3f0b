package api

import (
	"context"
	"net/http"
	"strconv"

	"openbot/domain"
	"openbot/domain/engine"
)

// Channel is a group chat outside that is bound to a Bot.
type Channel struct {
	ID          domain.ChannelID           `json:"id" example:"chn_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Member      domain.MemberID            `json:"member" doc:"Who made it; its Chats are this Member's."`
	Name        string                     `json:"name"`
	Bot         domain.BotID               `json:"bot"`
	URL         string                     `json:"url" doc:"Answers go there, signed as Standard Webhooks says."`
	Actors      map[string]domain.MemberID `json:"actors" doc:"Which Member an outside author is. Whoever is not named is no Member: nothing runs for them."`
	Enabled     bool                       `json:"enabled"`
	DisabledWhy *string                    `json:"disabledWhy" doc:"Why the server disabled it, or null."`
	CreatedAt   int64                      `json:"createdAt"`
	UpdatedAt   int64                      `json:"updatedAt"`
	Secret      string                     `json:"secret,omitempty" doc:"The signing secret, shown this once, in the answer that makes the Channel."`
}

func wireChannel(c domain.Channel) Channel {
	out := Channel{ID: c.ID, Member: c.Member, Name: c.Name, Bot: c.Bot, URL: c.URL, Actors: c.Actors, Enabled: c.Enabled,
		DisabledWhy: orNull(c.DisabledWhy), CreatedAt: ms(c.CreatedAt), UpdatedAt: ms(c.UpdatedAt)}
	if out.Actors == nil {
		out.Actors = map[string]domain.MemberID{}
	}
	return out
}

// NewChannel is the body that makes a Channel.
type NewChannel struct {
	Name    string            `json:"name" minLength:"1" maxLength:"200"`
	Bot     string            `json:"bot,omitempty" doc:"Left out: your Main Bot."`
	URL     string            `json:"url" minLength:"1" maxLength:"2048" doc:"An https or http address."`
	Actors  map[string]string `json:"actors,omitempty" doc:"Outside author to Member ID. Only an admin may name another Member."`
	Enabled *bool             `json:"enabled,omitempty" doc:"Left out: true."`
	Secret  *string           `json:"secret,omitempty" maxLength:"200" doc:"whsec_ and base64; made when left out."`
}

// ChannelChange is the body that changes a Channel. A new Bot takes over in outside chats
// that have no Chat yet.
type ChannelChange struct {
	Name    *string            `json:"name,omitempty" minLength:"1" maxLength:"200"`
	Bot     *string            `json:"bot,omitempty"`
	URL     *string            `json:"url,omitempty" minLength:"1" maxLength:"2048"`
	Actors  *map[string]string `json:"actors,omitempty" doc:"Replaces all of them."`
	Enabled *bool              `json:"enabled,omitempty"`
	Secret  *string            `json:"secret,omitempty" maxLength:"200" doc:"Signs every message from now on."`
}

// ChannelMessage is the body that brings a message in from outside.
type ChannelMessage struct {
	Author     string `json:"author" minLength:"1" maxLength:"200" doc:"Who wrote it, as it is called outside."`
	Text       string `json:"text" minLength:"1" maxLength:"524288" doc:"At most 524288 bytes."`
	Chat       string `json:"chat,omitempty" minLength:"1" maxLength:"200" doc:"The outside chat that it was written in; left out: main."`
	CommandKey string `json:"commandKey,omitempty" maxLength:"200" doc:"The same as an Idempotency-Key, remembered as long as the Chat."`
}

// PostedOutside is where a message from outside went.
type PostedOutside struct {
	Turn *string       `json:"turn" doc:"The Turn that takes the message; null while one of another author is under way, which comes first."`
	Chat domain.ChatID `json:"chat"`
}

func wirePostedOutside(p engine.Posted) PostedOutside {
	return PostedOutside{Turn: orNull(p.Turn), Chat: p.Chat}
}

// ChannelPath names a Channel in an address.
type ChannelPath struct {
	Channel string `path:"channel" doc:"The ID of the Channel."`
}

func (p ChannelPath) id() (domain.ChannelID, error) {
	if !domain.ValidID(p.Channel, domain.PrefixChannel) {
		return "", notFound("Channel")
	}
	return domain.ChannelID(p.Channel), nil
}

type channelOut = struct{ Body Channel }

func (s *server) channelRoutes() {
	const list, tag = "channels", "Channels"
	register(s, route{id: "listChannels", method: http.MethodGet, path: "/v1/channels", tag: tag, summary: "List your Channels, newest first",
		about: "Admins see those of the organization.", role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *struct{ Paged }) (*listed[Channel], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Channels(ctx, p, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(c domain.Channel) string { return string(c.ID) }, wireChannel), nil
		})
	register(s, route{id: "createChannel", method: http.MethodPost, path: "/v1/channels", tag: tag, summary: "Bind a group chat outside to a Bot",
		about: "The signing secret is in this answer alone.", role: domain.RoleWrite, status: 201, errors: []int{404, 409}}, s.createChannel)
	register(s, route{id: "readChannel", method: http.MethodGet, path: "/v1/channels/{channel}", tag: tag, summary: "Read a Channel",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *ChannelPath) (*channelOut, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			c, err := s.Engine.Channel(ctx, p, id)
			return &channelOut{wireChannel(c)}, err
		})
	register(s, route{id: "changeChannel", method: http.MethodPatch, path: "/v1/channels/{channel}", tag: tag, summary: "Change a Channel",
		about: "What waits to go out goes to the new address.", role: domain.RoleWrite, status: 200, errors: []int{404, 409}}, s.changeChannel)
	register(s, route{id: "deleteChannel", method: http.MethodDelete, path: "/v1/channels/{channel}", tag: tag, summary: "Take a Channel away",
		about: "Its Chats stay. Nothing comes in or goes out any more.", role: domain.RoleWrite, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *ChannelPath) (*none, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return nil, s.Engine.DeleteChannel(ctx, p, id)
		})
	register(s, route{id: "postToChannel", method: http.MethodPost, path: "/v1/channels/{channel}/messages", tag: tag, summary: "Bring a message in from outside",
		about: "Every outside chat is one Chat of the Bot. A Turn takes the messages of one author only and works with the rights of the Member that the author is, narrowed by your token.",
		role:  domain.RoleWrite, status: 202, errors: []int{404, 409}}, s.postToChannel)
	s.channelDeliveryRoutes(tag)
}

func (s *server) createChannel(ctx context.Context, p domain.Principal, in *struct {
	Keyed
	Body NewChannel
}) (*channelOut, error) {
	b := in.Body
	fields := engine.ChannelFields{Name: &b.Name, URL: &b.URL, Actors: members(b.Actors), Enabled: b.Enabled, Secret: b.Secret}
	if b.Bot != "" {
		bot, err := botID(b.Bot)
		if err != nil {
			return nil, err
		}
		fields.Bot = &bot
	}
	c, secret, err := s.Engine.CreateChannel(keep(ctx, wireChannel), p, fields)
	if err != nil {
		return nil, err
	}
	out := wireChannel(c)
	out.Secret = secret
	return &channelOut{out}, nil
}

func (s *server) changeChannel(ctx context.Context, p domain.Principal, in *struct {
	ChannelPath
	Body ChannelChange
}) (*channelOut, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	b := in.Body
	fields := engine.ChannelFields{Name: b.Name, URL: b.URL, Enabled: b.Enabled, Secret: b.Secret}
	if b.Bot != nil {
		bot, err := botID(*b.Bot)
		if err != nil {
			return nil, err
		}
		fields.Bot = &bot
	}
	if b.Actors != nil {
		fields.Actors = members(*b.Actors)
	}
	c, err := s.Engine.ChangeChannel(ctx, p, id, fields)
	return &channelOut{wireChannel(c)}, err
}

func botID(text string) (domain.BotID, error) {
	if !domain.ValidID(text, domain.PrefixBot) {
		return "", notFound("Bot")
	}
	return domain.BotID(text), nil
}

// members gives actors typed; the engine looks at each. It is never nil.
func members(actors map[string]string) map[string]domain.MemberID {
	out := make(map[string]domain.MemberID, len(actors))
	for author, member := range actors {
		out[author] = domain.MemberID(member)
	}
	return out
}

func (s *server) postToChannel(ctx context.Context, p domain.Principal, in *struct {
	Keyed
	ChannelPath
	Body ChannelMessage
}) (*struct{ Body PostedOutside }, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	b := in.Body
	if len(b.Text) > domain.MaxMessage {
		return nil, invalid("text", "must have at most "+strconv.Itoa(domain.MaxMessage)+" bytes")
	}
	if _, err := s.Engine.Channel(ctx, p, id); err != nil {
		return nil, err
	}
	// A commandKey lives with the Chat, which the engine finds.
	if ctx, err = keepCommand(ctx, s, p, b.CommandKey, domain.ChatID(id), wirePostedOutside); err != nil {
		return nil, err
	}
	posted, err := s.Engine.PostToChannel(ctx, p, id, engine.ChannelMessage{Author: b.Author, Text: b.Text, Chat: b.Chat})
	return &struct{ Body PostedOutside }{wirePostedOutside(posted)}, err
}

func (s *server) channelDeliveryRoutes(tag string) {
	const list = "channel deliveries"
	register(s, route{id: "listChannelDeliveries", method: http.MethodGet, path: "/v1/channels/{channel}/deliveries", tag: tag,
		summary: "List what goes out through a Channel, newest first", about: "What was taken is kept for 7 days, dead messages for 30.",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Paged
			ChannelPath
			DeliveryQuery
		}) (*listed[Delivery], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.ChannelDeliveries(ctx, p, id, domain.DeliveryStatus(in.Status), page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(d domain.Delivery) string { return string(d.ID) }, wireDelivery), nil
		})
	register(s, route{id: "resendChannelDelivery", method: http.MethodPost, path: "/v1/channels/{channel}/deliveries/{delivery}/resend", tag: tag,
		summary: "Send a dead message of a Channel again", about: "It goes out under the same webhook-id, with all its tries before it.",
		role: domain.RoleWrite, status: 202, errors: []int{404, 409}, optionalBody: true},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			ChannelPath
			DeliveryName
			Body *struct{}
		}) (*struct{ Body Delivery }, error) {
			channel, err := in.ChannelPath.id()
			if err != nil {
				return nil, err
			}
			if _, err := s.Engine.Channel(ctx, p, channel); err != nil {
				return nil, err
			}
			id, err := in.DeliveryName.id()
			if err != nil {
				return nil, err
			}
			d, err := s.Engine.ResendToChannel(keep(ctx, wireDelivery), p, channel, id)
			return &struct{ Body Delivery }{wireDelivery(d)}, err
		})
}
