package domain

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// nameFields and valueFields are how lists of headers, variables and parameters hold
// a name beside its value.
var (
	nameFields  = []string{"name", "key", "header", "field", "param", "parameter", "variable"}
	valueFields = []string{"value", "values", "val", "content", "data"}
)

// document masks within a text that is valid JSON, and changes nothing else of it.
func (r *Redactor) document(text string, depth int) string {
	w := jsonWalk{r: r, text: text}
	w.value(0, depth)
	return spliced(text, w.splices)
}

// jsonWalk goes through valid JSON and notes what must give way.
type jsonWalk struct {
	r       *Redactor
	text    string
	splices []splice
}

func (w *jsonWalk) mask(from, to int) {
	w.splices = append(w.splices, splice{from, to, `"` + Redacted + `"`})
}

// value reads the value at i and gives its end.
func (w *jsonWalk) value(i, depth int) int {
	i = w.space(i)
	if depth >= maxRedactDepth && w.text[i] != '"' {
		end := w.end(i)
		if c := w.text[i]; c == '{' || c == '[' {
			w.mask(i, end)
		}
		return end
	}
	switch w.text[i] {
	case '{':
		return w.object(i, depth)
	case '[':
		return w.list(i, depth)
	case '"':
		end := w.end(i)
		was := unquote(w.text[i:end])
		if is := w.r.text(was, depth+1); is != was {
			w.splices = append(w.splices, splice{i, end, quote(is)})
		}
		return end
	default:
		end := w.end(i)
		if number := w.text[i:end]; w.r.secretNumber(number) {
			w.mask(i, end)
		}
		return end
	}
}

// member is one member of an object: its name, and the places of its parts.
type member struct {
	name      string
	at, after int // of the name with its quotes
	from, to  int // of the value
}

func (w *jsonWalk) object(i, depth int) int {
	first := len(w.splices)
	var members []member
	for i = w.space(i + 1); w.text[i] != '}'; {
		m := member{at: i, after: w.end(i)}
		m.name = unquote(w.text[m.at:m.after])
		m.from = w.space(w.space(m.after) + 1) // after the colon
		if w.r.secret(m.name, w.text[m.from:]) {
			m.to = w.end(m.from)
			w.mask(m.from, m.to)
		} else {
			m.to = w.value(m.from, depth+1)
		}
		members = append(members, m)
		i = w.next(m.to)
	}
	w.pairs(members, first)
	w.renamed(members, depth, first)
	return i + 1
}

// secret reports whether a value must be masked whole for its name. The value stands
// at the beginning of what is left of the text.
func (r *Redactor) secret(name, rest string) bool {
	f := r.names.in(name)
	if f == foundNothing && r.phone {
		f = phoneNames.in(name)
	}
	return f == foundName && hides(rest) || f == foundMany && hides(rest) && !isDigit(rest[0]) && rest[0] != '-'
}

// hides reports whether something can be hidden in a value: not in null, a truth value
// or an empty text.
func hides(rest string) bool {
	return strings.IndexByte("ntf", rest[0]) < 0 && !strings.HasPrefix(rest, `""`) && !strings.HasPrefix(rest, `"`+Redacted+`"`)
}

// pairs masks what stands beside a secret name in an object that holds both.
func (w *jsonWalk) pairs(members []member, first int) {
	secret := func(m member) bool {
		if !slices.Contains(nameFields, strings.ToLower(m.name)) || w.text[m.from] != '"' {
			return false
		}
		name := unquote(w.text[m.from:m.to])
		return !strings.ContainsAny(name, " \n") && w.r.names.in(name) == foundName
	}
	if !slices.ContainsFunc(members, secret) {
		return
	}
	var places []member
	for _, m := range members {
		if slices.Contains(valueFields, strings.ToLower(m.name)) && hides(w.text[m.from:]) {
			places = append(places, m)
		}
	}
	w.replace(first, places)
}

// replace masks values in which parts may be masked already; splices from first on may
// lie in them.
func (w *jsonWalk) replace(first int, places []member) {
	next := 0
	kept := slices.DeleteFunc(w.splices[first:], func(s splice) bool {
		for next < len(places) && places[next].to <= s.from {
			next++
		}
		return next < len(places) && s.from >= places[next].from
	})
	w.splices = w.splices[:first+len(kept)]
	for _, m := range places {
		w.mask(m.from, m.to)
	}
	w.sort(first)
}

func (w *jsonWalk) sort(first int) {
	slices.SortFunc(w.splices[first:], func(a, b splice) int { return a.from - b.from })
}

// renamed masks within the names of an object. Two that become the same are told
// apart by a number.
func (w *jsonWalk) renamed(members []member, depth, first int) {
	type change struct {
		member
		is string
	}
	var changes []change
	taken := map[string]int{}
	for _, m := range members {
		if is := w.r.text(m.name, depth+1); is != m.name {
			changes = append(changes, change{m, is})
		} else {
			taken[m.name] = 1
		}
	}
	for _, c := range changes {
		is := c.is
		for taken[is] > 0 {
			taken[c.is]++
			is = c.is + " " + strconv.Itoa(taken[c.is])
		}
		taken[is] = 1
		w.splices = append(w.splices, splice{c.at, c.after, quote(is)})
	}
	if len(changes) > 0 {
		w.sort(first)
	}
}

func (w *jsonWalk) list(i, depth int) int {
	var elements []member
	first, before := len(w.splices), ""
	for i = w.space(i + 1); w.text[i] != ']'; {
		m := member{from: i, name: before}
		flag := strings.TrimLeft(before, "-")
		if flag != before && !strings.ContainsAny(flag, "= ") && plain(w.text[i]) && w.r.secret(flag, w.text[i:]) {
			m.to = w.end(i) // ["--password", "…"]
			w.mask(m.from, m.to)
		} else {
			m.to = w.value(i, depth+1)
		}
		before = ""
		if w.text[m.from] == '"' {
			before = unquote(w.text[m.from:m.to])
		}
		elements = append(elements, m)
		i = w.next(m.to)
	}
	if len(elements) == 2 {
		// ["Authorization", "…"]
		last := elements[1]
		if name := last.name; name != "" && !strings.ContainsAny(name, " \n") && plain(w.text[last.from]) && w.r.secret(name, w.text[last.from:]) {
			w.replace(first, elements[1:])
		}
	}
	return i + 1
}

func plain(c byte) bool { return c != '{' && c != '[' }

// next gives the place of what follows a member or an element that ended at i: the
// next one, or the end of what holds it.
func (w *jsonWalk) next(i int) int {
	if i = w.space(i); w.text[i] == ',' {
		i = w.space(i + 1)
	}
	return i
}

// space gives the first place from i on that is no white space.
func (w *jsonWalk) space(i int) int {
	for i < len(w.text) && strings.IndexByte(" \t\r\n", w.text[i]) >= 0 {
		i++
	}
	return i
}

// end gives the end of the value at i, which is known to be valid.
func (w *jsonWalk) end(i int) int {
	switch w.text[i] {
	case '"':
		for i++; w.text[i] != '"'; i++ {
			if w.text[i] == '\\' {
				i++
			}
		}
		return i + 1
	case '{', '[':
		for depth := 0; ; i++ {
			switch w.text[i] {
			case '"':
				i = w.end(i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	default:
		for i < len(w.text) && strings.IndexByte(" \t\r\n,]}", w.text[i]) < 0 {
			i++
		}
		return i
	}
}

// secretNumber reports whether a JSON number is the number of a card, however it is
// written.
func (r *Redactor) secretNumber(number string) bool {
	if len(number) < 6 || len(number) > 40 {
		return false
	}
	if strings.ContainsAny(number, ".eE") {
		if e := strings.IndexAny(number, "eE"); e >= 0 && len(number)-e > 4 {
			return false // far beyond the digits of any card
		}
		exact, ok := new(big.Rat).SetString(number)
		if !ok || !exact.IsInt() {
			return false
		}
		number = exact.Num().String()
	}
	return r.prose(number) != number
}

// unquote reads a JSON text.
func unquote(raw string) string {
	if !strings.Contains(raw, `\`) {
		return raw[1 : len(raw)-1]
	}
	var text string
	if json.Unmarshal([]byte(raw), &text) != nil {
		return Redacted // it was valid before
	}
	return text
}

// quote writes a JSON text. Characters of HTML stay as they are.
func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return `"` + Redacted + `"`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
