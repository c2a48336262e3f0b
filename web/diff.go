package web

// Change is how a value differs from that of the call before.
type Change struct {
	Kind   string // same, changed, added or removed
	Before string // the beginning that is the same, of a changed one
	Old    string
	New    string
	After  string // the end that is the same
}

// contextOf is how much of what is the same is shown around a change, in bytes.
const contextOf = 120

// maxChange is how much of a changed value is shown beside the other, in bytes.
const maxChange = 2000

// Compare notes on each field how it differs from the call before, and adds what is
// not there any more.
func Compare(now, before []Field) []Field {
	old := make(map[string]Field, len(before))
	for _, f := range before {
		old[f.Path] = f
	}
	out := make([]Field, 0, len(now))
	for _, f := range now {
		was, there := old[f.Path]
		delete(old, f.Path)
		switch {
		case !there:
			f.Change = &Change{Kind: "added"}
		case f.Text == was.Text && f.Kind == was.Kind && f.Size == was.Size:
			f.Change = &Change{Kind: "same"}
		default:
			c := between(was.Text, f.Text)
			f.Change = &c
		}
		out = append(out, f)
	}
	for _, f := range before {
		if _, gone := old[f.Path]; gone {
			f.Change = &Change{Kind: "removed"}
			f.Fold = false
			f.Text = cut(f.Text, maxChange)
			out = append(out, f)
		}
	}
	return out
}

// between finds the part in which two texts differ, on borders of characters.
func between(old, now string) Change {
	head := 0
	for head < len(old) && head < len(now) && old[head] == now[head] {
		head++
	}
	for head > 0 && (head < len(old) && old[head]&0xC0 == 0x80 || head < len(now) && now[head]&0xC0 == 0x80) {
		head--
	}
	tail := 0
	for tail < len(old)-head && tail < len(now)-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	for tail > 0 && now[len(now)-tail]&0xC0 == 0x80 {
		tail--
	}
	head, tail = wholeWords(old, now, head, tail)
	c := Change{Kind: "changed", Before: now[:head], After: now[len(now)-tail:],
		Old: shorten(old[head : len(old)-tail]), New: shorten(now[head : len(now)-tail])}
	if len(c.Before) > contextOf {
		from := len(c.Before) - contextOf
		for from < len(c.Before) && c.Before[from]&0xC0 == 0x80 {
			from++
		}
		c.Before = "… " + c.Before[from:]
	}
	if len(c.After) > contextOf {
		c.After = cut(c.After, contextOf) + " …"
	}
	return c
}

// maxWord is the longest beginning or end of a word that a change takes in, in bytes: a
// key or a digest is shown by the part that differs.
const maxWord = 40

// wholeWords moves the borders of a change out to those of words: 47 that became 48 reads
// as that, not as a 4 with a 7 or an 8.
func wholeWords(old, now string, head, tail int) (int, int) {
	inWord := func(b byte) bool {
		return b >= 0x80 || b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
	}
	starts, ends := head, tail
	for starts > 0 && inWord(now[starts-1]) {
		starts--
	}
	for ends > 0 && inWord(now[len(now)-ends]) {
		ends--
	}
	cutsWord := func(at int) bool {
		return at < len(old)-tail && inWord(old[at]) || at < len(now)-tail && inWord(now[at])
	}
	if head-starts <= maxWord && cutsWord(head) {
		head = starts
	}
	lastIn := func(text string) bool { return len(text)-tail > head && inWord(text[len(text)-tail-1]) }
	if tail-ends <= maxWord && (lastIn(old) || lastIn(now)) {
		tail = ends
	}
	return head, tail
}

func shorten(text string) string {
	if len(text) <= maxChange {
		return text
	}
	return cut(text, maxChange) + " … (" + Bytes(len(text)) + " in all)"
}
