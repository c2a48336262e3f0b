package web

import (
	"bytes"
	"embed"
	"html/template"
	"io"
	"regexp"
	"sync"
)

//go:embed template
var files embed.FS

// Site writes views for browsers that see the server under one path. It is safe for
// use by many goroutines.
type Site struct{ pages *template.Template }

// NewSite makes the Site of a path, as "/openbot", without a slash at its end; "" when
// nothing stands before the server's own paths. The path must be made of letters,
// digits, slashes and ".-_~" alone.
func NewSite(root string) *Site {
	if root == "" {
		return plain()
	}
	return parse(root)
}

// Most servers, and all but a few tests, need this one.
var plain = sync.OnceValue(func() *Site { return parse("") })

// places are the attributes that hold an address of the server, in every template: a
// path of its own, or one that was given to the template.
var places = regexp.MustCompile(`( (?:href|src|action|formaction|hx-get|hx-post|hx-sse:connect|data-root)=")(/|\{\{)`)

// parse puts the root before the addresses in the templates themselves, so that no page
// can forget it.
func parse(root string) *Site {
	pages := template.New("").Funcs(template.FuncMap{
		"visible": Visible, "line": VisibleLine, "words": Words, "odd": Oddities, "within": inside, "bytes": Bytes, "menu": menu, "plural": Plural, "span": span,
	})
	entries, err := files.ReadDir("template")
	if err != nil {
		panic("the templates are not embedded: " + err.Error())
	}
	for _, entry := range entries {
		text, err := files.ReadFile("template/" + entry.Name())
		if err != nil {
			panic("a template is not embedded: " + err.Error())
		}
		template.Must(pages.New(entry.Name()).Parse(places.ReplaceAllString(string(text), "${1}"+root+"${2}")))
	}
	return &Site{pages: pages}
}

// Write writes a view, in the shell of the person who looks.
func (s *Site) Write(w io.Writer, v View, shell Shell) error {
	return s.pages.ExecuteTemplate(w, v.name, page{Shell: shell, Title: plainTitle(v.title), Style: style, Icon: icon, Script: script, Data: v.data})
}

// Bytes gives a view as it is written.
func (s *Site) Bytes(v View, shell Shell) ([]byte, error) {
	var b bytes.Buffer
	err := s.Write(&b, v, shell)
	return b.Bytes(), err
}
