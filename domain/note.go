package domain

import (
	"encoding/json"
	"strings"
	"unicode"
)

// Note is a message that a person reads. It says that something waits and where it is
// answered; the arguments of a call are never part of it.
type Note struct {
	Title string // one line, plain
	Lines []string
	Link  string // absolute, below the public address of the server
}

// noteFooter ends every Note: a mail or a chat is no place to decide in.
const noteFooter = "It is answered in the inbox alone, and shown there whole."

// Longest texts in a Note, in characters. Whoever wants to read more reads the inbox.
const (
	MaxNoteName = 60
	MaxNoteText = 280
)

// PlainLine makes one short line of a text that others wrote: no line breaks, nothing
// that changes the direction of the text or cannot be seen, and no address that a mail
// or chat program would turn into a link. max is in characters.
func PlainLine(text string, max int) string {
	var b strings.Builder
	n, space := 0, true // true: leading spaces go
	for _, r := range strings.ToValidUTF8(text, "�") {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			if !space {
				b.WriteByte(' ')
				n++
			}
			space = true
			continue
		}
		if unicode.Is(unicode.C, r) || unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
			r = '�'
		}
		space = false
		if n >= max {
			return unlinked(strings.TrimRight(b.String(), " ")) + "…"
		}
		b.WriteRune(r)
		n++
	}
	return unlinked(strings.TrimRight(b.String(), " "))
}

// linkMarks are what programs take for the beginning of an address.
var linkMarks = strings.NewReplacer("://", ": //", "www.", "www .", "WWW.", "WWW .")

func unlinked(text string) string { return linkMarks.Replace(text) }

// Quoted marks a text as the words of somebody else.
func Quoted(text string) string { return "“" + text + "”" }

// Text is the Note as plain text, its link on a line of its own.
func (n Note) Text() string {
	return strings.Join(n.Lines, "\n") + "\n\n" + n.Link + "\n\n" + noteFooter + "\n"
}

// slackEscape is what Slack wants to be escaped in every text. It also takes the meaning
// from <!channel> and <@U…>.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type slackBlock struct {
	Type string    `json:"type"`
	Text slackText `json:"text"`
}

// Slack is the Note as an incoming webhook of Slack takes it. What others wrote stands in
// a block of plain text, in which no markup means anything.
func (n Note) Slack() json.RawMessage {
	body, err := json.Marshal(struct {
		Text        string       `json:"text"`
		Markdown    bool         `json:"mrkdwn"`
		UnfurlLinks bool         `json:"unfurl_links"`
		UnfurlMedia bool         `json:"unfurl_media"`
		Blocks      []slackBlock `json:"blocks"`
	}{Text: slackEscape.Replace(n.Title), Blocks: []slackBlock{
		{"section", slackText{"plain_text", slackEscape.Replace(n.Title + "\n" + strings.Join(n.Lines, "\n"))}},
		{"section", slackText{"mrkdwn", "<" + slackEscape.Replace(n.Link) + "|Open it in the inbox>. " + noteFooter}},
	}})
	if err != nil {
		return json.RawMessage("{}") // texts always marshal
	}
	return body
}

// Ntfy is the Note as an ntfy server takes it at its root.
func (n Note) Ntfy(topic string) json.RawMessage {
	body, err := json.Marshal(struct {
		Topic   string `json:"topic"`
		Title   string `json:"title"`
		Message string `json:"message"`
		Click   string `json:"click"`
	}{topic, n.Title, strings.Join(n.Lines, "\n") + "\n" + noteFooter, n.Link})
	if err != nil {
		return json.RawMessage("{}") // texts always marshal
	}
	return body
}

// Mail is one e-mail as it goes out.
type Mail struct {
	ID      DeliveryID // the Message-ID of every try follows from it
	To      string
	Subject string
	Text    string
}
