package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"openbot/domain"
)

// ChannelMessage is a message that somebody wrote in a group chat outside.
type ChannelMessage struct {
	Author string
	Text   string
	Chat   string // the outside chat; "" means the main one
}

// PostToChannel gives an outside message to the Chat of its outside chat, which is made by
// its first message. An idle Chat starts a Turn with it; a Turn of the same author under
// way reads it before its next step; one of another author comes first, and the Turn of
// the answer is then "".
func (e *Engine) PostToChannel(ctx context.Context, p domain.Principal, id domain.ChannelID, in ChannelMessage) (Posted, error) {
	if in.Chat == "" {
		in.Chat = domain.MainOutside
	}
	for path, name := range map[string]string{"author": in.Author, "chat": in.Chat} {
		if !domain.ValidOutside(name) {
			return Posted{}, invalidf(path, "must have 1 to %d bytes, no control characters, and no space at its ends", domain.MaxOutsideName)
		}
	}
	if len(in.Text) == 0 || len(in.Text) > domain.MaxMessage {
		return Posted{}, invalidf("text", "must have 1 to %d bytes", domain.MaxMessage)
	}
	if _, err := e.Channel(ctx, p, id); err != nil {
		return Posted{}, err
	}
	lane := string(id)
	if seen, err := e.Store.ChannelChat(ctx, id, in.Chat); err == nil {
		lane = string(seen.ID)
	}
	var posted Posted
	err := e.decide(ctx, lane, func(d *draft) error {
		c, err := e.Channel(ctx, p, id)
		if err != nil {
			return err
		}
		if !c.Enabled {
			return domain.Errorf(domain.CodeConflict, "ChannelConflict", "The Channel is disabled. Enable it first.")
		}
		chat, author, err := e.channelChat(ctx, d, c, in.Chat)
		if err != nil {
			return err
		}
		d.in(&chat)
		d.keptIn = chat.ID
		input := domain.Input{ID: newID[domain.InputID](domain.PrefixInput), Kind: domain.ItemMessage, From: domain.FromOutside(in.Author),
			Text: safeText(in.Text), Authority: []domain.Authority{actingFor(p, c.Actors[in.Author])}}
		if c.Actors[in.Author] == "" {
			// It comes from outside the organization.
			input.Taint = domain.Taint{{Kind: domain.SourceChannel, Channel: string(c.ID), Author: in.Author, Chat: chat.ID, AtMs: d.at.UnixMilli()}}
		}
		posted = Posted{Chat: chat.ID}
		if chat.Turn == "" {
			author = input.Author()
			d.startTurn([]domain.Input{input})
		} else {
			d.enqueue(input)
		}
		if author == input.Author() {
			posted.Turn = chat.Turn
		}
		d.event(domain.EventMessage, string(posted.Turn), map[string]any{"turn": posted.Turn, "from": input.From})
		d.result = posted
		return nil
	})
	return posted, err
}

// actingFor is what stands behind a message that a caller posts in the name of a Member, or
// of nobody.
func actingFor(p domain.Principal, member domain.MemberID) domain.Authority {
	a := domain.Authority{Member: member, Token: p.Token.ID}
	if member != p.Member.ID {
		a.Via = p.Member.ID
	}
	return a
}

// channelChat reads the Chat of an outside chat with the author of its Turn under way, or
// makes one.
func (e *Engine) channelChat(ctx context.Context, d *draft, c domain.Channel, outside string) (chat domain.Chat, author string, err error) {
	chat, err = e.Store.ChannelChat(ctx, c.ID, outside)
	if err == nil && chat.Turn != "" {
		turn, err := e.Store.Turn(ctx, chat.Turn)
		return chat, turn.Author, err
	}
	if err == nil || !domain.IsCode(err, domain.CodeNotFound) {
		return chat, "", err
	}
	bot, err := e.Store.Bot(ctx, c.Bot)
	if err != nil {
		return chat, "", err
	}
	if bot.ArchivedAt != nil {
		return chat, "", domain.Errorf(domain.CodeConflict, "ChannelConflict", "The Bot of the Channel is archived. Give the Channel another.")
	}
	return domain.Chat{ID: newID[domain.ChatID](domain.PrefixChat), Organization: c.Organization, Member: c.Member, Bot: c.Bot, Kind: domain.ChatPlain,
		Channel: c.ID, Outside: outside, Title: cut(c.Name+": "+outside, domain.MaxTitle), Status: domain.ChatIdle, CreatedAt: d.at}, "", nil
}

// outsideMessage is what goes out through a Channel.
type outsideMessage struct {
	Channel  domain.ChannelID `json:"channel"`
	Chat     string           `json:"chat"`
	Text     string           `json:"text"`
	Turn     domain.TurnID    `json:"turn"`
	Author   string           `json:"author,omitempty"`   // who wrote last what it answers
	Sequence int64            `json:"sequence,omitempty"` // of the answer in the Chat's history: answers can overtake each other
}

// sayOutside sends the answer of a step out through the Channel of its Chat, if it has
// one.
func (w *stepWork) sayOutside(d *draft, text string) {
	if w.chat.Channel == "" || text == "" {
		return
	}
	m := outsideMessage{Channel: w.chat.Channel, Chat: w.chat.Outside, Text: text, Turn: w.turn.ID, Sequence: w.chat.LastItem}
	wrote := func(from string) {
		if author, outside := domain.OutsideAuthor(from); outside {
			m.Author = author
		}
	}
	for _, i := range w.facts.Items {
		if i.Turn == w.turn.ID {
			wrote(i.From)
		}
	}
	for _, in := range w.read {
		wrote(in.From)
	}
	d.sendOutside(&w.chat, w.turn.Member, m)
}

func (d *draft) sendOutside(chat *domain.Chat, member domain.MemberID, message outsideMessage) {
	due := d.at.Add(domain.RunnableGrace)
	d.put(&domain.Delivery{ID: newID[domain.DeliveryID](domain.PrefixDelivery), Organization: chat.Organization, Channel: chat.Channel, Member: member,
		Event: domain.HookChannelMessage, Payload: json.RawMessage(messageOfNews(domain.HookChannelMessage, d.at, message)),
		Status: domain.DeliveryPending, DueAt: &due, CreatedAt: d.at, UpdatedAt: d.at})
}

// outside says where a message of a Channel goes, or why it is not wanted any more.
func (e *Engine) outside(ctx context.Context, v domain.Delivery) (*Outgoing, string, error) {
	c, err := e.Store.Channel(ctx, v.Channel)
	if domain.IsCode(err, domain.CodeNotFound) {
		return nil, "The Channel is not there any more.", nil
	}
	if err != nil {
		return nil, "", err
	}
	maker, err := e.Store.Member(ctx, c.Member)
	if err != nil {
		return nil, "", err
	}
	return &Outgoing{Event: v.Event, Message: domain.HookMessage{ID: v.ID, Organization: c.Organization, Owner: string(c.ID),
		Sealed: c.Sealed, URL: c.URL, Payload: v.Payload}}, c.Talks(maker), nil
}

// disableChannel stops a Channel whose receiver wants no more.
func (e *Engine) disableChannel(ctx context.Context, d *draft, out *Outgoing) error {
	c, err := e.Store.Channel(ctx, out.row.Channel)
	if err != nil || !c.Enabled || c.DeletedAt != nil || c.URL != out.Message.URL {
		return gone(err)
	}
	c.Enabled, c.DisabledWhy, c.UpdatedAt = false, domain.TextDelivered(statusGone), d.at
	d.put(&c)
	return nil
}

// ChannelDeliveries lists what goes out through a Channel that the caller can see, newest
// first; of one status when it is named.
func (e *Engine) ChannelDeliveries(ctx context.Context, p domain.Principal, id domain.ChannelID, status domain.DeliveryStatus, page domain.Page) ([]domain.Delivery, error) {
	if _, err := e.Channel(ctx, p, id); err != nil {
		return nil, err
	}
	return e.Store.ChannelDeliveries(ctx, id, status, page)
}

// ResendToChannel sends a dead message of a Channel again, under the same ID.
func (e *Engine) ResendToChannel(ctx context.Context, p domain.Principal, channel domain.ChannelID, id domain.DeliveryID) (domain.Delivery, error) {
	if _, err := e.Channel(ctx, p, channel); err != nil {
		return domain.Delivery{}, err
	}
	return e.resend(ctx, id, func(v domain.Delivery) bool { return v.Channel == channel })
}

// sendTool is the tool of Chats of a Channel alone.
func sendTool() builtin {
	b := define("openbot_send", "Writes to another chat of this Channel. Your answer here goes to this chat by itself. Give a reason; somebody may have to agree.",
		`{"type":"object","properties":{"chat":{"type":"string","minLength":1,"maxLength":200},"text":{"type":"string","minLength":1,"maxLength":100000},`+
			`"reason":{"type":"string","minLength":1,"maxLength":4000}},"required":["chat","text","reason"],"additionalProperties":false}`, domain.CallOwn, nil)
	b.channel = true
	b.own = &ownTool{names: namesSent, carry: carrySent}
	return b
}

type sent struct{ Chat, Text string }

// readSent reads what is to be written elsewhere. A plain error is for the model.
func (e *Engine) readSent(ctx context.Context, chat domain.Chat, arguments json.RawMessage) (sent, error) {
	var in sent
	if err := json.Unmarshal(arguments, &in); err != nil {
		return in, err
	}
	in.Text = safeText(in.Text)
	switch {
	case chat.Channel == "":
		return in, fmt.Errorf("this Chat belongs to no Channel")
	case !domain.ValidOutside(in.Chat):
		return in, fmt.Errorf("chat must be the name of a chat of this Channel")
	case in.Chat == chat.Outside:
		return in, fmt.Errorf("this is the chat %s itself; your answer goes there by itself", in.Chat)
	}
	c, err := e.Store.Channel(ctx, chat.Channel)
	if err != nil {
		return in, err
	}
	if c.DeletedAt != nil || !c.Enabled {
		return in, fmt.Errorf("the Channel was deleted or disabled; nothing goes out")
	}
	return in, nil
}

func namesSent(ctx context.Context, e *Engine, w *stepWork, arguments json.RawMessage) (domain.Capability, error) {
	_, err := e.readSent(ctx, w.chat, arguments)
	return domain.Capability{Action: domain.ActionChannelsSend, Target: string(w.chat.Channel)}, err
}

// carrySent makes the one message, and notes it in the Chat of the other outside chat, so
// that the Bot knows there what it wrote.
func carrySent(ctx context.Context, e *Engine, d *draft, f *domain.CallFacts) (string, error) {
	in, err := e.readSent(ctx, f.Chat, f.Call.Arguments)
	if err != nil {
		return "", err
	}
	d.sendOutside(&f.Chat, f.Turn.Member, outsideMessage{Channel: f.Chat.Channel, Chat: in.Chat, Text: in.Text, Turn: f.Turn.ID})
	other, err := e.Store.ChannelChat(ctx, f.Chat.Channel, in.Chat)
	if domain.IsCode(err, domain.CodeNotFound) {
		return domain.TextSentOutside(in.Chat), nil
	}
	if err != nil {
		return "", err
	}
	err = d.inside(&other, func() error {
		other.TakeIn(f.Chat.Taint)
		d.item(domain.Item{Turn: other.LastTurn, Kind: domain.ItemNotice, From: domain.FromServer, Text: domain.TextFromElsewhere(f.Chat.Outside, in.Text)})
		return nil
	})
	return domain.TextSentOutside(in.Chat), err
}
