package domain

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// prose masks within a text that is no JSON, once.
func (r *Redactor) prose(text string) string {
	p := prose{r: r, text: text}
	p.names()
	p.shapes()
	return p.masked()
}

// prose collects the places of one text that must be masked. Every rule looks at the
// text as it is and only adds places, so that no rule can hide something from another.
// What a rule looks at beside a place is bounded, and a place is never looked at again
// by the rule that masked it: the work grows with the text, not faster.
type prose struct {
	r     *Redactor
	text  string
	spans []splice
}

func (p *prose) mask(from, to int) {
	if from < to {
		p.spans = append(p.spans, splice{from: from, to: to, with: Redacted})
	}
}

func (p *prose) masked() string {
	if len(p.spans) == 0 {
		return p.text
	}
	slices.SortFunc(p.spans, func(a, b splice) int { return a.from - b.from })
	merged := p.spans[:1]
	for _, s := range p.spans[1:] {
		if last := &merged[len(merged)-1]; s.from <= last.to {
			last.to = max(last.to, s.to)
		} else {
			merged = append(merged, s)
		}
	}
	return spliced(p.text, merged)
}

// marks stand between a name and its value.
var marks = []string{"=", ":", "|", "：", "＝", "%3D", "%3d", "%3A", "%3a"}

// encodedQuotes are quotes as addresses and markup write them.
var encodedQuotes = []string{"%22", "%27", "&quot;", "&#34;", "&#39;", "&apos;"}

// names masks what is given under a secret name: "password: x", "?token=x&",
// "<secret>x</secret>", "--api-key x", "the password is x1".
func (p *prose) names() {
	done := 0 // what lies before it is masked by this rule already
	for i := 0; i < len(p.text); i++ {
		if i < done {
			i = done
			if i >= len(p.text) {
				return
			}
		}
		var from, to int
		switch c := p.text[i]; c {
		case '=', ':', '|', '%', 0xEF:
			if mark := p.mark(i); mark > 0 {
				from, to = p.assigned(i, i+mark)
			}
		case '>':
			from, to = p.element(i)
		case ' ':
			from, to = p.said(i)
		case '-':
			from, to = p.flag(i)
		case '"', '\'', '`':
			if i > 0 && isSpace(p.text[i-1]) {
				from, to = p.assigned(i, i)
			}
		}
		if from < to {
			p.mask(from, to)
			done = to
		}
	}
}

func (p *prose) mark(i int) int {
	for _, mark := range marks {
		if strings.HasPrefix(p.text[i:], mark) {
			return len(mark)
		}
	}
	return 0
}

// assigned gives the value after a mark, when a secret name stands before it. The
// value begins somewhere from after on; without a mark it must be in quotes.
func (p *prose) assigned(at, after int) (from, to int) {
	if strings.HasPrefix(p.text[after:], "//") {
		return 0, 0 // the name of a scheme
	}
	name, before, quote := p.nameBefore(at)
	if name == "" {
		return 0, 0
	}
	f := p.r.names.in(name)
	if f != foundName && before != "" {
		f = max(f, p.r.names.ending(before+" "+name))
	}
	if f == foundNothing && inQuery(p.text, at, name) {
		f = foundName
	}
	if f == foundNothing || f == foundMany && at == after {
		return 0, 0
	}
	if wholeLine(name) {
		from, to = p.lineFrom(after, quote)
	} else {
		from, to = p.valueFrom(after)
	}
	value := p.text[from:to]
	if value == "" || value == Redacted || slices.Contains([]string{"null", "true", "false", "none", "nil", "undefined"}, value) ||
		f == foundMany && strings.Trim(value, "0123456789.,") == "" {
		return 0, 0
	}
	return from, to
}

// inQuery reports whether the name of a query parameter holds the signature of an
// address that opens what it points to.
func inQuery(text string, at int, name string) bool {
	start := at - len(name)
	if start < 1 || text[start:at] != name || text[start-1] != '?' && text[start-1] != '&' {
		return false
	}
	words := wordsOf(name)
	return len(words) > 0 && (words[len(words)-1] == "signature" || words[len(words)-1] == "sig")
}

// wholeLine reports whether the value under a name goes to the end of its line.
func wholeLine(name string) bool {
	words := wordsOf(name)
	return slices.ContainsFunc(words, func(word string) bool {
		switch word {
		case "authorization", "cookie", "cookies", "passphrase", "phrase", "mnemonic":
			return true
		}
		return false
	})
}

// nameBefore gives the name that ends before i, quotes and brackets around it left
// out, up to two words before it, and the quote that stands before it, or 0.
func (p *prose) nameBefore(i int) (name, before string, quote byte) {
	for closers := 0; i > 0 && closers < 8 && strings.IndexByte(" \t\"'`*\\)]", p.text[i-1]) >= 0; i-- {
		if p.text[i-1] != '\\' {
			closers++ // a text in a text in a text has many backslashes
		}
	}
	for _, quote := range encodedQuotes {
		if strings.HasSuffix(p.text[:i], quote) {
			i -= len(quote)
		}
	}
	start := p.wordStart(i, 100)
	name = p.text[start:i]
	at := start
	for range 2 {
		if at < 2 || p.text[at-1] != ' ' && p.text[at-1] != '\t' {
			break
		}
		word := p.wordStart(at-1, 40)
		if word == at-1 {
			break
		}
		at = word
	}
	if at < start {
		before = p.text[at : start-1]
	}
	if start > 0 && strings.IndexByte("\"'`", p.text[start-1]) >= 0 {
		quote = p.text[start-1]
	}
	return name, before, quote
}

// wordStart gives where the name begins that ends at i, at most some bytes before.
func (p *prose) wordStart(i, most int) int {
	start := i
	for start > 0 && i-start < most {
		r, size := utf8.DecodeLastRuneInString(p.text[:start])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' && r != '.' {
			break
		}
		start -= size
	}
	return start
}

// element gives the text of an element of markup whose name is secret.
func (p *prose) element(i int) (from, to int) {
	tag := p.text[max(0, i-100):i]
	tag = tag[strings.LastIndexByte(tag, '<')+1:]
	name := tag
	if space := strings.IndexAny(tag, " \t\r\n"); space >= 0 {
		name = tag[:space]
	}
	if name == "" || len(tag) >= min(i, 100) || strings.ContainsAny(name, "/>") || p.r.names.in(name) != foundName {
		return 0, 0
	}
	end := strings.IndexByte(p.text[i+1:], '<')
	if end < 0 {
		end = len(p.text) - i - 1
	}
	if value := strings.TrimSpace(p.text[i+1 : i+1+end]); value == "" || value == Redacted {
		return 0, 0
	}
	return i + 1, i + 1 + end
}

// said gives the value in "the password is x1": words alone are taken for prose.
func (p *prose) said(i int) (from, to int) {
	if i >= len("password") && strings.HasSuffix(p.text[:i], "password") {
		if _, before, _ := p.nameBefore(i); strings.HasPrefix(before, "login ") {
			return p.valueFrom(i) // of a .netrc: login bob password x
		}
	}
	if !strings.HasPrefix(p.text[i:], " is ") {
		return 0, 0
	}
	name, before, _ := p.nameBefore(i)
	if name == "" || p.r.names.in(name) != foundName && p.r.names.ending(before+" "+name) != foundName {
		return 0, 0
	}
	from, to = p.valueFrom(i + len(" is"))
	value := strings.TrimRight(p.text[from:to], ".,;!?")
	if len(value) < 4 || value == Redacted || !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return 0, 0
	}
	return from, to
}

// flag gives the value after a flag of a command whose name is secret, and the
// password in "-u name:password".
func (p *prose) flag(i int) (from, to int) {
	if i > 0 && !isSpace(p.text[i-1]) && strings.IndexByte("\"'`(,", p.text[i-1]) < 0 {
		return 0, 0
	}
	start := i
	for start < len(p.text) && p.text[start] == '-' && start-i < 2 {
		start++
	}
	end := start
	for end < len(p.text) && (isWord(p.text[end]) || p.text[end] == '-') && end-start < 100 {
		end++
	}
	name := p.text[start:end]
	if end >= len(p.text) || p.text[end] != ' ' || name == "" {
		return 0, 0
	}
	pair := name == "u" || name == "user" || name == "proxy-user"
	if !pair && p.r.names.in(name) != foundName {
		return 0, 0
	}
	from, to = p.valueFrom(end)
	if pair {
		colon := strings.IndexByte(p.text[from:to], ':')
		from += colon + 1
		if colon < 0 {
			return 0, 0
		}
	}
	if p.text[from:to] == "" || p.text[from:to] == Redacted || p.text[from] == '-' {
		return 0, 0
	}
	return from, to
}
