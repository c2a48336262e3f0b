package domain

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Channel binds a group chat outside to a Bot. Messages come in by the API, each with its
// author; answers go out as messages signed as Standard Webhooks says.
type Channel struct {
	ID           ChannelID
	Organization OrganizationID
	Member       MemberID // who made it; its Chats are this Member's
	Name         string
	Bot          BotID
	URL          string
	Sealed       []byte              // the signing secret, encrypted for this organization and Channel
	Actors       map[string]MemberID // who an outside author is; whoever is not named is no Member
	Enabled      bool
	DisabledWhy  string // why the server disabled it, or ""
	DeletedAt    *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// Bounds of a Channel. Lengths are in bytes.
const (
	MaxChannelName = 200
	MaxOutsideName = 200 // of an author and of a chat
	MaxActors      = 2000
	// MainOutside is the outside chat of a message that names none.
	MainOutside = "main"
)

// HookChannelMessage is what a Channel sends: an answer of a Turn, or what its Bot wrote to
// another chat.
const HookChannelMessage = "channel.message"

// Talks says why nothing goes out through the Channel any more; "" when it does. maker is
// the Member that made it, as it stands now.
func (c Channel) Talks(maker Member) (why string) {
	switch {
	case c.DeletedAt != nil:
		return "The Channel was deleted."
	case !c.Enabled:
		return "The Channel is disabled."
	case maker.DisabledAt != nil:
		return "The Member that made the Channel is disabled."
	}
	return ""
}

// ValidOutside reports whether a text can be the name of an author or a chat outside.
func ValidOutside(name string) bool {
	return name != "" && len(name) <= MaxOutsideName && utf8.ValidString(name) && strings.TrimSpace(name) == name &&
		!strings.ContainsFunc(name, func(r rune) bool {
			const joiner = '\u200d' // of emoji
			return unicode.IsControl(r) || r == utf8.RuneError || r != joiner && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
		})
}

// outsidePrefix begins the author of what somebody outside wrote, so that no name can be
// taken for an ID or for the server.
const outsidePrefix = "author:"

// FromOutside is an outside author as it stands in an inbox and in the history.
func FromOutside(author string) string { return outsidePrefix + author }

// OutsideAuthor takes the name of an outside author out of such a text.
func OutsideAuthor(from string) (name string, ok bool) { return strings.CutPrefix(from, outsidePrefix) }

// Author says whose input this is: that of the Member behind it, or that of an outside
// author who is no Member. In a Chat of a Channel no two of them share a Turn.
func (in Input) Author() string {
	if len(in.Authority) > 0 && in.Authority[0].Member != "" {
		return string(in.Authority[0].Member)
	}
	return in.From
}

// ForOneTurn divides what waits in an inbox into what the next Turn takes and what waits on,
// both in order. In a Chat of a Channel a Turn takes the input of the author whose input is
// the oldest; in any other it takes all.
func (c Chat) ForOneTurn(waiting []Input) (taken, left []Input) {
	if c.Channel == "" || len(waiting) == 0 {
		return waiting, nil
	}
	return Of(waiting[0].Author(), waiting)
}

// Of divides input into that of one author and the rest, both in order.
func Of(author string, all []Input) (theirs, rest []Input) {
	for _, in := range all {
		if in.Author() == author {
			theirs = append(theirs, in)
		} else {
			rest = append(rest, in)
		}
	}
	return theirs, rest
}

// Reads gives the input of an inbox that a Turn of the Chat may read.
func (c Chat) Reads(t Turn, inbox []Input) []Input {
	if c.Channel == "" {
		return inbox
	}
	theirs, _ := Of(t.Author, inbox)
	return theirs
}

// TextChannelMessage is what the model reads of a message in a Channel.
func TextChannelMessage(author, text string) string {
	return "Message of " + inLine(author) + " in the group chat:\n" + text
}

// TextSentOutside is what openbot_send tells the model.
func TextSentOutside(chat string) string {
	return "Done: the message goes out to the chat " + inLine(chat) + "."
}

// TextFromElsewhere is the notice in a Chat of a Channel that its Bot wrote to it from
// another.
func TextFromElsewhere(chat, text string) string {
	return "[OpenBot] In the chat " + inLine(chat) + " of this Channel you wrote this to here:\n" + text
}
