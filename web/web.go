// Package web owns the pages that the server shows in a browser: their templates,
// style sheet and scripts, and how untrusted text is made safe to look at. It needs
// no build step and no other server, and never decides, reads or writes anything: it
// is given what to show. Every page answers without its scripts too.
package web

import (
	"strings"
)

// Policy is the Content-Security-Policy of a page: its own style sheet, forms and
// scripts that carry its nonce, and nothing else.
func Policy(nonce string) string {
	scripts := "'none'"
	if nonce != "" {
		scripts = "'nonce-" + nonce + "'"
	}
	return "default-src 'none'; script-src " + scripts + "; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// Shell is what stands around the content of every page of a person who is signed in.
type Shell struct {
	Nonce        string // of the scripts of this answer
	FormToken    string // goes with every form
	Here         string // which entry of the menu this page is
	Member       string
	Organization string
	MayAct       bool // has the role write
	MayAdmin     bool
	MayMonitor   bool
	Waiting      int  // Requests that wait for this person
	MoreWait     bool // more than that
	Position     int64
}

// page is what every template gets.
type page struct {
	Shell
	Title  string
	Style  Asset
	Icon   Asset
	Script Asset
	Data   any
}

// View is something that can be shown: a page, or a part of one.
type View struct {
	name  string
	title string
	data  any
}

// IsPart reports whether it stands in a page that is shown already.
func (v View) IsPart() bool { return !strings.HasSuffix(v.name, ".html") }

// IsNone reports whether there is nothing to show: the answer was given already.
func (v View) IsNone() bool { return v.name == "" }

// within is a part of a page with the shell that it stands in.
type within struct {
	Shell
	Data any
}

func inside(shell Shell, data any) within { return within{shell, data} }

// Login is the page that asks for a token.
type Login struct {
	Fault string // why the last try failed, or ""
	Link  string // the one-time link that was followed, or ""
}

// View makes the page.
func (v Login) View() View { return View{"login.html", "Sign in", v} }

// Fault is a page for what went wrong.
type Fault struct {
	Title  string
	Detail string
	Errors []FaultAt
	Sent   bool // a form was sent, which the browser still has
}

// FaultAt is one thing that does not fit in a form.
type FaultAt struct {
	Place   string
	Message string
}

// View makes the page.
func (v Fault) View() View { return View{"fault.html", v.Title, v} }

// Part makes what stands in a page that is shown already.
func (v Fault) Part() View { return View{"fault", v.Title, v} }

// entry is one entry of the menu.
type entry struct {
	Key, Path, Name string
	Admin           bool
}

// group is some entries of the menu.
type group struct {
	Name    string
	Entries []entry
}

var menuGroups = []group{
	{"Now", []entry{{"requests", "/", "Requests", false}, {"chats", "/chats", "Chats", false}, {"work", "/work", "Work", false}, {"triggers", "/triggers", "Triggers", false}}},
	{"Who may what", []entry{{"bots", "/bots", "Bots", false}, {"apps", "/apps", "Apps", false}, {"grants", "/grants", "Grants", false}, {"rules", "/rules", "Rules", false}}},
	{"Looking back", []entry{{"history", "/history", "History", false}, {"usage", "/usage", "Usage", false}, {"audit", "/audit", "Audit", true}}},
	{"Organization", []entry{{"webhooks", "/webhooks", "Notifications", false}, {"settings", "/settings", "Settings", true}, {"tokens", "/tokens", "Tokens", true}}},
}

// menu gives the entries that a person may follow.
func menu(shell Shell) []group {
	var out []group
	for _, g := range menuGroups {
		shown := group{Name: g.Name}
		for _, e := range g.Entries {
			if !e.Admin || shell.MayAdmin {
				shown.Entries = append(shown.Entries, e)
			}
		}
		if len(shown.Entries) > 0 {
			out = append(out, shown)
		}
	}
	return out
}
