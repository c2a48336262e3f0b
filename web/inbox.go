package web

import (
	"io"
	"strconv"
)

// Inbox is the page of a person: the Requests that wait for it, and a Chat to try
// the server with.
type Inbox struct {
	Member       string
	Organization string
	MayAnswer    bool // the token may act; else the page is for looking
	MayMonitor   bool
	Notice       *Notice
	Requests     []Request
	More         bool // more Requests wait than are shown
	Chat         Chat
}

// Notice says what became of the last action.
type Notice struct {
	Kind  string // good, bad or plain
	Title string
	Text  string
}

// Request is one question, as the person needs to see it before answering. Every
// text of a Bot or an App is shown as what it is: words of others.
type Request struct {
	ID        string
	Expected  int64 // the revision that is shown
	Bot       string
	BotID     string
	Action    string
	Target    string
	App       string // the name of the Connection, or ""
	Tool      string
	Arguments string // exact, laid out over lines
	Program   string // the program that makes the call, or ""
	Place     string // of the call in the program, in words
	Reason    string
	Tags      string   // with the line of the tag policy, in words
	Resource  string   // derived by the server, or ""
	Taint     []string // where content from outside came from
	Held      string   // the tag because of which the taint makes it a question, or ""
	Verdict   string   // of the automatic reviewer, or ""
	Note      string
	Asked     Moment
	Expires   Moment
	UnknownAt *Moment // the call went out then, and nobody knows whether it ran
}

// Moment is a time for a person and for a program.
type Moment struct {
	ISO  string
	Text string
}

// Chat is the box to talk to the Main Bot.
type Chat struct {
	ID     string
	Key    string // makes sending a form twice harmless
	Status string
	Busy   bool
	Lines  []Line
}

// Line is one entry of a Chat.
type Line struct {
	Who  string
	Kind string // message, answer, tool or notice
	Text string
}

// Write writes the page.
func (v Inbox) Write(w io.Writer) error {
	title := "Inbox"
	if n := len(v.Requests); n > 0 {
		title = "(" + strconv.Itoa(n) + ") Inbox"
	}
	return show(w, "inbox.html", title, v)
}

// card gives the template of one Request what it needs of the page around it.
func card(r Request, page Inbox) any {
	return struct {
		Request   Request
		MayAnswer bool
		Chat      string
	}{r, page.MayAnswer, page.Chat.ID}
}
