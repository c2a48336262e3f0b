package domain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// number masks the number of a card, of an account that the words before it name, and
// a telephone number where the settings say so. It gives the end, or 0.
func (p *prose) number(i int) int {
	if end := p.card(i); end > 0 {
		p.mask(i, end)
		return end
	}
	if end := p.botToken(i); end > 0 {
		p.mask(i, end)
		return end
	}
	if end := p.account(i); end > 0 {
		p.mask(i, end)
		return end
	}
	if p.r.phone {
		if end := p.telephone(i); end > 0 {
			p.mask(i, end)
			return end
		}
	}
	return 0
}

// digits reads digits from i on, with at most one separator between two of them, and
// calls visit at the end of each group with what was read.
func (p *prose) digits(i, most int, separators string, visit func(digits []byte, end int)) {
	var read [40]byte
	n := 0
	for i < len(p.text) && n < most {
		if !isDigit(p.text[i]) {
			size := separator(p.text[i:], separators)
			if size == 0 || i+size >= len(p.text) || !isDigit(p.text[i+size]) {
				return
			}
			i += size
			continue
		}
		read[n] = p.text[i]
		n++
		i++
		if i == len(p.text) || !isDigit(p.text[i]) {
			visit(read[:n], i)
		}
	}
}

// separator gives the length of a separator at the beginning of a text, or 0.
func separator(text, separators string) int {
	if strings.IndexByte(separators, text[0]) >= 0 {
		return 1
	}
	for _, wide := range []string{"\u00a0", "\u202f", "\u2009", "\u2010", "\u2011", "\u2013", "%20"} {
		if strings.HasPrefix(text, wide) {
			return len(wide)
		}
	}
	return 0
}

// card gives the end of the number of a payment card at i, or 0: in one piece, or in
// groups of which the first has four digits or more and none is long.
func (p *prose) card(i int) int {
	end, before, fits := 0, 0, true
	p.digits(i, 19, " -.+", func(digits []byte, at int) {
		group := len(digits) - before
		fits = fits && group <= 8 && (before > 0 || group >= 4)
		before = len(digits)
		if (fits || at-i == len(digits)) && isCard(digits) {
			end = at
		}
	})
	return end
}

// isCard reports whether digits have the beginning and the length of a brand and the
// right last digit (ISO/IEC 7812-1, Luhn). The beginning keeps times and other long
// numbers from being taken for cards.
func isCard(digits []byte) bool {
	n := len(digits)
	if n < 13 {
		return false
	}
	two, four := decimal(digits[:2]), decimal(digits[:4])
	fits := false
	switch {
	case digits[0] == '4':
		fits = n == 13 || n == 16 || n == 18 || n == 19
	case two >= 51 && two <= 55 || four >= 2221 && four <= 2720:
		fits = n == 16
	case two == 34 || two == 37:
		fits = n == 15
	case two == 36 || two == 38 || two == 39 || four >= 3000 && four <= 3059:
		fits = n >= 14
	case two == 35, two == 60, two == 64, two == 65, two == 62, two == 81, two == 82:
		fits = n >= 16
	case two == 50 || two >= 56 && two <= 69:
		fits = true
	case four >= 2200 && four <= 2204 || four == 9792:
		fits = n >= 16
	}
	return fits && luhn(digits)
}

func decimal(digits []byte) int {
	n := 0
	for _, d := range digits {
		n = n*10 + int(d-'0')
	}
	return n
}

func luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// botToken gives the end of a token of Telegram: digits, a colon and 35 characters.
func (p *prose) botToken(i int) int {
	colon := i
	for colon < len(p.text) && isDigit(p.text[colon]) && colon-i <= 10 {
		colon++
	}
	if colon-i < 8 || colon >= len(p.text) || p.text[colon] != ':' {
		return 0
	}
	end := colon + 1
	for end < len(p.text) && (isWord(p.text[end]) || p.text[end] == '-') && end-colon <= 36 {
		end++
	}
	if end-colon-1 != 35 {
		return 0
	}
	return end
}

// accountWords name an account when a number follows them, phoneWords a telephone;
// countWords may stand between.
var (
	accountWords = setOf("account", "acct", "acc", "a/c", "iban", "konto", "kontonummer", "kontonr", "compte", "cuenta", "conto", "routing", "aba", "sort", "sortcode", "blz")
	phoneWords   = setOf("phone", "telephone", "tel", "mobile", "cell", "fax", "call", "sms", "whatsapp")
	countWords   = setOf("number", "no", "num", "nr", "nummer", "is", "at", "code")
)

func setOf(words ...string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}

// account gives the end of a number of six or more digits that the words before it
// call that of an account, or 0.
func (p *prose) account(i int) int {
	end := 0
	p.digits(i, 34, " -", func(digits []byte, at int) {
		if end = 0; len(digits) >= 6 && (at == len(p.text) || !isWord(p.text[at])) && !isDate(p.text[i:at]) {
			end = at
		}
	})
	if end == 0 || !p.named(i, accountWords) {
		return 0
	}
	return end
}

// isDate reports whether digits are written as the date of a calendar.
func isDate(text string) bool { return len(text) == 10 && text[4] == '-' && text[7] == '-' }

// named reports whether one of the words stands right before i.
func (p *prose) named(i int, words map[string]bool) bool {
	end := i
	for range 3 {
		for end > 0 && i-end < 30 && strings.IndexByte(" \t#:=.\"'*", p.text[end-1]) >= 0 {
			end--
		}
		start := end
		for start > 0 && end-start < 14 && (isLetter(p.text[start-1]) || p.text[start-1] == '/') {
			start--
		}
		word := strings.ToLower(p.text[start:end])
		if words[word] {
			return true
		}
		if !countWords[word] {
			return false
		}
		end = start
	}
	return false
}

// iban gives the end of an IBAN (ISO 13616) at i, or 0: a country, two check digits
// and the account, in groups or not.
func (p *prose) iban(i int) int {
	const shortest, longest = 15, 34
	t := p.text
	if i+4 > len(t) || !isLetter(t[i]) || !isLetter(t[i+1]) || !isDigit(t[i+2]) || !isDigit(t[i+3]) {
		return 0
	}
	tail := ibanValue(ibanValue(ibanValue(ibanValue(0, t[i]), t[i+1]), t[i+2]), t[i+3])
	rest, n, numbers, end := 0, 4, 2, 0
	for at := i + 4; at < len(t) && n < longest; {
		if !isLetter(t[at]) && !isDigit(t[at]) {
			size := separator(t[at:], " -+")
			if size == 0 || at+size >= len(t) || !isLetter(t[at+size]) && !isDigit(t[at+size]) {
				break
			}
			at += size
			continue
		}
		rest = ibanValue(rest, t[at])
		n++
		if isDigit(t[at]) {
			numbers++
		}
		at++
		over := at == len(t) || !isLetter(t[at]) && !isDigit(t[at])
		// The country and the check digits move behind the rest: two letters are four
		// digits, so the rest moves by six. Words that happen to fit have few digits.
		if over && n >= shortest && numbers >= 10 && (rest*(1_000_000%97)+tail)%97 == 1 {
			end = at
		}
	}
	return end
}

// ibanValue appends a character to a number of which the rest by 97 is known.
func ibanValue(rest int, c byte) int {
	switch {
	case isDigit(c):
		return (rest*10 + int(c-'0')) % 97
	case c >= 'a':
		c -= 'a' - 'A'
	}
	return (rest*100 + int(c-'A') + 10) % 97
}

// telephone gives the end of a telephone number at i, or 0. Numbers without a sign of
// what they are, such as dates and counts, are none.
func (p *prose) telephone(i int) int {
	start, plus, bracket := i, p.text[i] == '+', p.text[i] == '('
	if plus || bracket {
		start++
	}
	if i > 0 && (isWord(p.text[i-1]) || strings.IndexByte(".-/+(", p.text[i-1]) >= 0 && !plus) {
		return 0
	}
	called := p.named(i, phoneWords)
	groups := make([]int, 0, 15)
	n, end, at, last := 0, 0, start, start
	for at < len(p.text) && n < 15 {
		if isDigit(p.text[at]) {
			n++
			at++
			if at == len(p.text) || !isDigit(p.text[at]) {
				groups, last = append(groups, at-last), at
				if (at == len(p.text) || !isWord(p.text[at])) && phoneLike(p.text[start:at], groups, n, plus, bracket, called) {
					end = at
				}
			}
			continue
		}
		gap := 0
		for at+gap < len(p.text) && gap < 3 && strings.IndexByte(" -./()", p.text[at+gap]) >= 0 {
			gap++
		}
		if gap == 0 {
			gap = separator(p.text[at:], "")
		}
		if gap == 0 || at+gap >= len(p.text) || !isDigit(p.text[at+gap]) {
			break
		}
		at += gap
		last = at
	}
	return end
}

// phoneLike reports whether groups of n digits make a telephone number.
func phoneLike(text string, groups []int, n int, plus, bracket, called bool) bool {
	switch {
	case n < 7 || n > 15:
		return false
	case plus, called:
		return n >= 7
	case bracket:
		return n >= 9 && len(groups) >= 2
	case len(groups) == 3 && groups[0] == 3 && groups[1] == 3 && groups[2] == 4,
		len(groups) == 4 && groups[0] == 1 && groups[1] == 3 && groups[2] == 3 && groups[3] == 4:
		return true
	case text[0] == '0' && groups[0] == 2:
		return len(groups) == 5 && n == 10 // 01 23 45 67 89, and no date
	case text[0] == '0':
		return n >= 9 && (groups[0] >= 3 && len(groups) <= 4)
	}
	return false
}

// mails masks mail addresses.
func (p *prose) mails() {
	for i := 0; i < len(p.text); i++ {
		size := 0
		switch {
		case p.text[i] == '@':
			size = 1
		case strings.HasPrefix(p.text[i:], "%40"), strings.HasPrefix(p.text[i:], "＠"):
			size = 3
		default:
			continue
		}
		from, to := p.mailStart(i), p.mailEnd(i+size)
		if from < i && to > i+size {
			p.mask(from, to)
			i = to - 1
		}
	}
}

// mailStart gives where the part of a mail address before the @ begins.
func (p *prose) mailStart(i int) int {
	if i > 0 && p.text[i-1] == '"' {
		if open := strings.LastIndexByte(p.text[max(0, i-66):i-1], '"'); open >= 0 {
			return max(0, i-66) + open
		}
	}
	start := i
	for start > 0 && i-start < 320 {
		r, size := utf8.DecodeLastRuneInString(p.text[:start])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._%+-!#$&*~'", r) {
			break
		}
		start -= size
	}
	for start < i && strings.IndexByte(".'", p.text[start]) >= 0 {
		start++
	}
	return start
}

// mailEnd gives the end of the host of a mail address that begins at i.
func (p *prose) mailEnd(i int) int {
	if i < len(p.text) && p.text[i] == '[' {
		if end := strings.IndexByte(p.text[i:min(len(p.text), i+60)], ']'); end > 0 {
			return i + end + 1
		}
	}
	end, labels := i, 0
	for end < len(p.text) && end-i < 255 {
		start := end
		letters := false
		for end < len(p.text) {
			r, size := utf8.DecodeRuneInString(p.text[end:])
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' {
				break
			}
			letters = letters || unicode.IsLetter(r)
			end += size
		}
		if end == start {
			if labels > 0 {
				end-- // the dot of a sentence
			}
			break
		}
		labels++
		if end >= len(p.text) || p.text[end] != '.' {
			if !letters {
				return i // a version such as name@1.2.3
			}
			break
		}
		end++
	}
	return end
}
