package domain

import (
	"encoding/base64"
	"strings"
)

// keyForm is how the keys of one kind begin and what follows.
type keyForm struct {
	prefix string
	rest   int    // the fewest characters after the prefix
	more   string // characters beside letters, digits, "-" and "_"
	exact  bool   // exactly rest letters and digits follow
	word   bool   // the prefix is too short to be found within a word
}

// keyForms are keys and tokens that say what they are.
var keyForms = []keyForm{
	{prefix: "sk-", rest: 16, word: true}, {prefix: "sk_live_", rest: 8}, {prefix: "sk_test_", rest: 8}, {prefix: "rk_live_", rest: 8}, {prefix: "rk_test_", rest: 8},
	{prefix: "whsec_", rest: 16, more: "+/="}, {prefix: "obt_", rest: 20},
	{prefix: "ghp_", rest: 16}, {prefix: "gho_", rest: 16}, {prefix: "ghu_", rest: 16}, {prefix: "ghs_", rest: 16, more: "."}, {prefix: "ghr_", rest: 16}, {prefix: "github_pat_", rest: 16},
	{prefix: "glpat-", rest: 16, more: "."}, {prefix: "gldt-", rest: 16}, {prefix: "glrt-", rest: 16, more: "."}, {prefix: "glptt-", rest: 16}, {prefix: "glcbt-", rest: 16}, {prefix: "glsoat-", rest: 16}, {prefix: "gloas-", rest: 16}, {prefix: "glft-", rest: 16}, {prefix: "glagent-", rest: 16},
	{prefix: "xoxb-", rest: 8}, {prefix: "xoxp-", rest: 8}, {prefix: "xoxa-", rest: 8}, {prefix: "xoxr-", rest: 8}, {prefix: "xoxs-", rest: 8}, {prefix: "xoxc-", rest: 8}, {prefix: "xoxd-", rest: 8, more: "%/+="}, {prefix: "xoxe-", rest: 8}, {prefix: "xoxe.", rest: 8, more: "."}, {prefix: "xapp-", rest: 8},
	{prefix: "hooks.slack.com/services/", rest: 8, more: "/"}, {prefix: "discord.com/api/webhooks/", rest: 8, more: "/"}, {prefix: "discordapp.com/api/webhooks/", rest: 8, more: "/"},
	{prefix: "AKIA", rest: 16, exact: true, word: true}, {prefix: "ASIA", rest: 16, exact: true, word: true}, {prefix: "ABIA", rest: 16, exact: true, word: true}, {prefix: "ACCA", rest: 16, exact: true, word: true},
	{prefix: "AIza", rest: 30}, {prefix: "ya29.", rest: 16, more: "."}, {prefix: "GOCSPX-", rest: 16}, {prefix: "1//0", rest: 24, word: true},
	{prefix: "SG.", rest: 40, more: ".", word: true}, {prefix: "npm_", rest: 30}, {prefix: "pypi-", rest: 40}, {prefix: "hf_", rest: 24, word: true},
	{prefix: "dop_v1_", rest: 20}, {prefix: "doo_v1_", rest: 20}, {prefix: "dor_v1_", rest: 20}, {prefix: "dckr_pat_", rest: 16}, {prefix: "dckr_oat_", rest: 16},
	{prefix: "shpat_", rest: 16}, {prefix: "shpca_", rest: 16}, {prefix: "shppa_", rest: 16}, {prefix: "shpss_", rest: 16},
	{prefix: "lin_api_", rest: 16}, {prefix: "ntn_", rest: 30, word: true}, {prefix: "secret_", rest: 40, word: true}, {prefix: "dapi", rest: 32, exact: true, word: true},
	{prefix: "key-", rest: 32, exact: true, word: true}, {prefix: "SK", rest: 32, exact: true, word: true}, {prefix: "hvs.", rest: 16, word: true}, {prefix: "hvb.", rest: 16, word: true},
	{prefix: "AGE-SECRET-KEY-1", rest: 20}, {prefix: "ATATT3", rest: 16, more: "="}, {prefix: "ATCTT3", rest: 16, more: "="}, {prefix: "sq0atp-", rest: 16}, {prefix: "sq0csp-", rest: 16},
	{prefix: "sntrys_", rest: 16, more: "+/="}, {prefix: "sntryu_", rest: 16}, {prefix: "glsa_", rest: 16}, {prefix: "glc_", rest: 20, more: "+/=", word: true}, {prefix: "PMAK-", rest: 20}, {prefix: "pat_", rest: 30, word: true},
	// A private key in its armour, in base64.
	{prefix: "LS0tLS1CRUdJTiBQUklW", rest: 16, more: "+/="}, {prefix: "LS0tLS1CRUdJTiBSU0Eg", rest: 16, more: "+/="}, {prefix: "LS0tLS1CRUdJTiBFQyBQ", rest: 16, more: "+/="},
	{prefix: "LS0tLS1CRUdJTiBPUEVO", rest: 16, more: "+/="}, {prefix: "LS0tLS1CRUdJTiBFTkNS", rest: 16, more: "+/="},
	// A JSON Web Token, or other JSON in base64.
	{prefix: "eyJ", rest: 17, more: ".+/="},
}

// formsBy finds the forms by their first byte.
var formsBy = func() (by [256][]keyForm) {
	for _, f := range keyForms {
		by[f.prefix[0]] = append(by[f.prefix[0]], f)
	}
	return by
}()

// shapes masks what shows by its form that it is secret.
func (p *prose) shapes() {
	p.privateKeys()
	p.addresses()
	for i := 0; i < len(p.text); {
		i = max(i+1, p.shapeAt(i))
	}
	if p.r.mail {
		p.mails()
	}
}

// shapeAt masks what begins at i and gives its end, or 0.
func (p *prose) shapeAt(i int) int {
	c := p.text[i]
	begins := p.begins(i)
	for _, f := range formsBy[c] {
		if begins || !f.word {
			if end := p.key(i, f); end > 0 {
				p.mask(i, end)
				return end
			}
		}
	}
	switch {
	case (c == 'b' || c == 'B') && begins:
		return p.scheme(i)
	case isDigit(c) && (i == 0 || !isDigit(p.text[i-1])) || (c == '+' || c == '(') && p.r.phone:
		if end := p.number(i); end > 0 {
			return end
		}
	}
	end := 0
	if begins {
		end = max(p.iban(i), p.cloudSecret(i))
	}
	p.mask(i, end)
	return end
}

// begins reports whether a word begins at i. What stands escaped before it is no part
// of it.
func (p *prose) begins(i int) bool {
	switch {
	case i == 0 || !isWord(p.text[i-1]) && p.text[i-1] != '-':
		return true
	case i >= 3 && p.text[i-3] == '%' && isHex(p.text[i-2]) && isHex(p.text[i-1]):
		return true
	case i >= 2 && p.text[i-2] == '\\':
		return true
	case p.text[i-1] == '-' || p.text[i-1] == '_':
		return i == 1 || !isWord(p.text[i-2])
	}
	return false
}

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// key gives the end of a key of this form at i, or 0.
func (p *prose) key(i int, f keyForm) int {
	if !strings.HasPrefix(p.text[i:], f.prefix) {
		return 0
	}
	start := i + len(f.prefix)
	end, digit := start, false
	for end < len(p.text) && (isWord(p.text[end]) || p.text[end] == '-' || strings.IndexByte(f.more, p.text[end]) >= 0) {
		digit = digit || isDigit(p.text[end])
		end++
		if f.exact && end-start > f.rest {
			return 0
		}
	}
	for end > start && p.text[end-1] == '.' {
		end-- // of a sentence
	}
	if end-start < f.rest || f.exact && strings.ContainsAny(p.text[start:end], "-_") || f.word && !f.exact && !digit {
		return 0
	}
	return end
}

// scheme masks what follows Bearer, and what follows Basic when it holds a name and a
// password.
func (p *prose) scheme(i int) int {
	for _, scheme := range []string{"bearer", "basic"} {
		end := i + len(scheme)
		if end >= len(p.text) || !strings.EqualFold(p.text[i:end], scheme) {
			continue
		}
		from := end
		for from < len(p.text) && from-end < 8 && (strings.IndexByte(" \t+:=\"", p.text[from]) >= 0 || strings.HasPrefix(p.text[from:], "%20")) {
			if p.text[from] == '%' {
				from += 2
			}
			from++
		}
		to := from
		for to < len(p.text) && (isWord(p.text[to]) || strings.IndexByte("-._~+/=", p.text[to]) >= 0) {
			to++
		}
		value := strings.TrimRight(p.text[from:to], ".")
		if from == end || scheme == "bearer" && !tokenLike(value) || scheme == "basic" && !pairLike(value) {
			return 0
		}
		p.mask(from, from+len(value))
		return to
	}
	return 0
}

// tokenLike tells a token from a word of prose.
func tokenLike(value string) bool {
	return len(value) >= 20 || len(value) >= 6 && strings.ContainsAny(value, "0123456789-._~+/=")
}

// pairLike reports whether base64 holds name:password.
func pairLike(value string) bool {
	if len(value) < 4 {
		return false
	}
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	return err == nil && strings.Contains(string(plain), ":")
}

// cloudSecret gives the end of a secret access key of AWS, or 0: forty characters of
// base64, alone, with digits and letters of both cases.
func (p *prose) cloudSecret(i int) int {
	const size = 40
	if i > 0 && strings.IndexByte("/+=.", p.text[i-1]) >= 0 {
		return 0
	}
	var lower, upper, digit bool
	end := i
	for ; end < len(p.text) && end-i <= size; end++ {
		c := p.text[end]
		if !isLetter(c) && !isDigit(c) && c != '/' && c != '+' {
			break
		}
		lower, upper, digit = lower || c >= 'a' && c <= 'z', upper || c >= 'A' && c <= 'Z', digit || isDigit(c)
	}
	if end-i != size || !lower || !upper || !digit {
		return 0
	}
	if end < len(p.text) && (strings.IndexByte("-_=", p.text[end]) >= 0 || p.text[end] == '.' && end+1 < len(p.text) && isWord(p.text[end+1])) {
		return 0
	}
	return end
}

const privateKey = "PRIVATE KEY"

// privateKeys masks private keys in their armour. One without an end goes to the end
// of the text.
func (p *prose) privateKeys() {
	if putty := strings.Index(p.text, "PuTTY-User-Key-File-"); putty >= 0 {
		p.mask(putty, len(p.text))
	}
	for i := 0; ; {
		at := strings.Index(p.text[i:], privateKey)
		if at < 0 {
			return
		}
		at += i
		i = at + len(privateKey)
		head := max(0, at-40)
		begin := strings.LastIndex(p.text[head:at], "BEGIN")
		if begin < 0 {
			continue
		}
		from := head + begin
		for from > 0 && (p.text[from-1] == '-' || from > 1 && p.text[from-1] == ' ' && p.text[from-2] == '-') {
			from--
		}
		i = p.armourEnd(i)
		p.mask(from, i)
	}
}

// armourEnd gives the end of the armour whose head ends at i.
func (p *prose) armourEnd(i int) int {
	for {
		at := strings.Index(p.text[i:], privateKey)
		if at < 0 {
			return len(p.text)
		}
		from := i + at
		i = from + len(privateKey)
		if !strings.Contains(p.text[max(0, from-40):from], "END") {
			continue
		}
		if strings.HasPrefix(p.text[i:], " BLOCK") {
			i += len(" BLOCK")
		}
		for i < len(p.text) && (p.text[i] == '-' || p.text[i] == ' ' && strings.HasPrefix(p.text[i+1:], "-")) {
			i++
		}
		return i
	}
}

// addresses masks the passwords in addresses: scheme://name:password@host. A password
// may hold what it should not, such as a slash.
func (p *prose) addresses() {
	runEnd, at := 0, -1
	for i := 0; ; {
		mark := strings.Index(p.text[i:], "://")
		if mark < 0 {
			return
		}
		from := i + mark + len("://")
		i = from
		if from >= runEnd {
			runEnd = from
			for runEnd < len(p.text) && strings.IndexByte(" \t\r\n\"'`<>", p.text[runEnd]) < 0 {
				runEnd++
			}
			at = from + strings.LastIndexByte(p.text[from:runEnd], '@')
			if at < from {
				at = -1
			}
		}
		if at < from || p.text[from] == '[' {
			continue // nobody is named, or an IPv6 address
		}
		host := from
		for host < runEnd && strings.IndexByte("/?#", p.text[host]) < 0 {
			host++
		}
		end := from + strings.LastIndexByte(p.text[from:host], '@')
		colon := strings.IndexByte(p.text[from:host], ':')
		if end < from { // no @ before the path
			port := ""
			if colon >= 0 {
				port = p.text[from+colon+1 : host]
			}
			if strings.Trim(port, "0123456789") == "" {
				continue // a host, with or without its port
			}
			end = at
		}
		name, password := p.text[from:end], ""
		if colon >= 0 && from+colon < end {
			name, password = p.text[from:from+colon], p.text[from+colon+1:end]
		}
		if password != "" && password != Redacted {
			p.mask(from+colon+1, end)
		}
		if len(name) >= 20 && strings.ContainsAny(name, "0123456789") {
			p.mask(from, from+len(name)) // a token in place of a name
		}
		i = max(i, end)
	}
}
