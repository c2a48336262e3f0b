// Package web owns the pages that the server shows in a browser: their templates,
// their one style sheet and how untrusted text is made safe to look at. It needs no
// script, no build step and no other server, and never decides, reads or writes
// anything: it is given what to show.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io"
)

//go:embed template
var files embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{"visible": Visible, "args": card}).ParseFS(files, "template/*.html"))

// style is the one style sheet of all pages.
var style = func() []byte {
	b, err := files.ReadFile("template/style.css")
	if err != nil {
		panic("the style sheet is not embedded: " + err.Error())
	}
	return b
}()

// StylePath is where the pages expect their style sheet. It names the content, so
// that a browser may keep it for ever.
var StylePath = func() string {
	sum := sha256.Sum256(style)
	return "/style-" + hex.EncodeToString(sum[:8]) + ".css"
}()

// Style gives the style sheet.
func Style() []byte { return style }

// Policy is the Content-Security-Policy of the pages: their own style sheet and
// forms, and nothing else.
const Policy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// page is what every template gets.
type page struct {
	Title string
	Style string
	Data  any
}

func show(w io.Writer, name, title string, data any) error {
	return pages.ExecuteTemplate(w, name, page{Title: title, Style: StylePath, Data: data})
}

// Login is the page that asks for a token.
type Login struct {
	Fault string // why the last try failed, or ""
}

// Write writes the page.
func (v Login) Write(w io.Writer) error { return show(w, "login.html", "Sign in", v) }

// Fault is a page for what went wrong.
type Fault struct {
	Title  string
	Detail string
}

// Write writes the page.
func (v Fault) Write(w io.Writer) error { return show(w, "fault.html", v.Title, v) }
