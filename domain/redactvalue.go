package domain

import (
	"slices"
	"strings"
)

// lineFrom gives the rest of the line after a mark, or of what is quoted together
// with the name.
func (p *prose) lineFrom(i int, quote byte) (from, to int) {
	i = p.valueStart(i)
	if opening := p.opening(i); opening != "" && (quote == 0 || opening[len(opening)-1] == quote) {
		return p.quoted(i, opening)
	}
	to = i
	if i < len(p.text) && (p.text[i] == '[' || p.text[i] == '{') {
		if to = p.bracketed(i); quote != 0 {
			return i, to
		}
	}
	for ; to < len(p.text) && p.text[to] != '\r' && p.text[to] != '\n' && (quote == 0 || p.text[to] != quote); to++ {
		if strings.HasPrefix(p.text[to:], `\n`) || strings.HasPrefix(p.text[to:], `\r\n`) {
			break
		}
	}
	return i, to
}

// valueStart skips what can stand between a mark and a value.
func (p *prose) valueStart(i int) int {
	for i < len(p.text) && strings.IndexByte("=>:", p.text[i]) >= 0 {
		i++
	}
	for n := 0; i < len(p.text) && n < 16; n++ {
		switch {
		case strings.IndexByte(" \t\r\n*", p.text[i]) >= 0:
			i++
		case strings.HasPrefix(p.text[i:], "\u00a0"):
			i += len("\u00a0")
		case p.encodedQuote(i) > 0:
			i += p.encodedQuote(i)
		default:
			return i
		}
	}
	return i
}

func (p *prose) encodedQuote(i int) int {
	if p.text[i] == '%' || p.text[i] == '&' {
		for _, quote := range encodedQuotes {
			if strings.HasPrefix(p.text[i:], quote) {
				return len(quote)
			}
		}
	}
	return 0
}

// blockEnd gives the end of the indented lines that follow i, as YAML writes a long
// text.
func (p *prose) blockEnd(i int) int {
	for i < len(p.text) && (p.text[i] == '\r' || p.text[i] == '\n') {
		line := i
		for line < len(p.text) && (p.text[line] == '\r' || p.text[line] == '\n') {
			line++
		}
		if line == len(p.text) || p.text[line] != ' ' && p.text[line] != '\t' {
			return i
		}
		for i = line; i < len(p.text) && p.text[i] != '\r' && p.text[i] != '\n'; {
			i++
		}
	}
	return i
}

// valueFrom gives the value that begins somewhere from i on: what stands in quotes, or
// a run without white space.
func (p *prose) valueFrom(i int) (from, to int) {
	direct := i
	i = p.valueStart(i)
	if opening := p.opening(i); opening != "" {
		after := i + len(opening)
		if i == direct && (after == len(p.text) || strings.IndexByte(",}] \n", p.text[after]) >= 0) {
			return i, i // it closes a text that ends in a mark
		}
		return p.quoted(i, opening)
	}
	if i < len(p.text) && (p.text[i] == '[' || p.text[i] == '{') {
		if to = p.bracketed(i); to == len(p.text) || strings.IndexByte(",}]) \t\r\n", p.text[to]) >= 0 {
			return i, to
		}
		return i, p.runEnd(to)
	}
	to = p.runEnd(i)
	if strings.Trim(p.text[i:to], "|>-+") == "" {
		return i, p.blockEnd(to)
	}
	// "token: Bearer x" and its like: the scheme is no secret, what follows is.
	if scheme := strings.ToLower(p.text[i:min(to, i+10)]); slices.Contains([]string{"bearer", "basic", "token", "digest", "apikey", "negotiate"}, scheme) {
		next := to
		for next < len(p.text) && p.text[next] == ' ' && next-to < 4 {
			next++
		}
		if next > to {
			to = p.runEnd(next)
		}
	}
	return i, to
}

// quoted gives what stands in the quotes that open at i. Quotes that never close end
// with their line.
func (p *prose) quoted(i int, opening string) (from, to int) {
	from = i + len(opening)
	for to = from; to < len(p.text); to++ {
		if p.text[to] == opening[len(opening)-1] || opening[0] == p.text[to] {
			if strings.HasPrefix(p.text[to:], opening) && p.closes(from, to, opening) {
				return from, to
			}
		}
	}
	if line := strings.IndexAny(p.text[from:], "\r\n"); line >= 0 {
		return from, from + line
	}
	return from, len(p.text)
}

// bracketed gives the end of the list or object that opens at i. One that never closes
// goes to the end of the text.
func (p *prose) bracketed(i int) int {
	depth, quoted := 0, false
	for ; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			quoted = !quoted && strings.IndexByte(p.text[i+1:], '"') >= 0
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(p.text)
}

// opening gives the quote at i, with the backslashes before it.
func (p *prose) opening(i int) string {
	end := i
	for end < len(p.text) && p.text[end] == '\\' {
		end++
	}
	if end < len(p.text) && strings.IndexByte("\"'`", p.text[end]) >= 0 {
		return p.text[i : end+1]
	}
	if strings.HasPrefix(p.text[i:], "“") {
		return "”"
	}
	return ""
}

// closes reports whether the quote at end is not itself escaped.
func (p *prose) closes(from, end int, opening string) bool {
	n := 0
	for end-n > from && p.text[end-n-1] == '\\' {
		n++
	}
	return len(opening) > 1 && n == 0 || len(opening) == 1 && n%2 == 0
}

// runEnd gives the end of a run without white space or quotes. In a query it ends
// before the next parameter.
func (p *prose) runEnd(i int) int {
	for ; i < len(p.text); i++ {
		switch c := p.text[i]; c {
		case ' ', '\t', '\r', '\n', '"', '\'', '`', '<':
			return i
		case '\\':
			if i+1 < len(p.text) && strings.IndexByte("\"'", p.text[i+1]) >= 0 {
				return i
			}
		case '&':
			for j := i + 1; j < len(p.text) && j-i < 60; j++ {
				if p.text[j] == '=' && j > i+1 || strings.HasPrefix(p.text[i:], "&amp;") {
					return i
				}
				if !isWord(p.text[j]) && strings.IndexByte("-.[]%", p.text[j]) < 0 {
					break
				}
			}
		}
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }
