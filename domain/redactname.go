package domain

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// alwaysSecret are names that hold nothing but secrets or numbers of accounts. Those
// of the settings are added to them; the settings cannot take one of these away.
var alwaysSecret = []string{
	"password", "passwd", "pwd", "passphrase", "passcode", "secret", "credential", "authorization", "bearer", "jwt", "otp",
	"cookie", "session id", "api key", "access key", "private key", "account key", "shared key", "master key", "signing key",
	"encryption key", "ssh key", "connection string", "mnemonic", "seed phrase", "recovery phrase", "recovery code", "backup code",
	"account number", "account no", "acct number", "acct no", "iban", "routing number", "sort code",
	"card number", "card no", "cvv", "cvc",
}

// lastWords mean a secret at the end of a name alone: dbPass, but not passThrough.
var lastWords = []string{"pass", "pw", "auth"}

// countingWords end names that count or bound what the rest of the name says.
var countingWords = []string{"count", "limit", "length", "size", "min", "max", "ttl", "version", "budget", "usage", "total", "used"}

// phoneNames hold telephone numbers in any form.
var phoneNames = namesOf([]string{"phone", "telephone", "tel", "mobile", "cell", "fax", "msisdn"})

// minSuffix is how long a name must be to be found at the end of a longer word, as in
// accesstoken: a short one ends too many harmless words.
const minSuffix = 5

// maxName is the longest name that is looked at, in bytes. What a longer one holds is
// masked.
const maxName = 500

// secretNames finds names whatever their spelling: apiKey, API-KEY, api_key and
// openaiApiKey all hold "api key".
type secretNames struct {
	joined  map[string]bool         // the words of each name, joined
	bare    map[string]bool         // names without a letter or digit, as they stand
	endings map[int]map[string]bool // those long enough, by their length in bytes
	longest int                     // the most words that a name has
	last    bool                    // lastWords count as well
}

func newSecretNames(more []string) secretNames {
	n := namesOf(append(slices.Clone(alwaysSecret), more...))
	n.last = true
	return n
}

func namesOf(names []string) secretNames {
	n := secretNames{joined: map[string]bool{}, bare: map[string]bool{}, endings: map[int]map[string]bool{}}
	for _, name := range names {
		words := wordsOf(name)
		joined := strings.Join(words, "")
		if joined == "" {
			n.bare[name] = true
			continue
		}
		n.joined[joined] = true
		n.longest = max(n.longest, len(words))
		if size := len(joined); size >= minSuffix || joined == "pwd" {
			if n.endings[size] == nil {
				n.endings[size] = map[string]bool{}
			}
			n.endings[size][joined] = true
		}
	}
	return n
}

// found says how a name was recognised.
type found int

const (
	foundNothing found = iota
	// foundMany is the plural of a name, or one that counts: a bare number under it is
	// shown.
	foundMany
	foundName
)

// in looks for a name among the words of a key.
func (n secretNames) in(key string) found {
	if len(key) > maxName || n.bare[key] {
		return foundName
	}
	words := wordsOf(key)
	f := foundNothing
	for i := 0; i < len(words) && f != foundName; i++ {
		f = max(f, n.endOf(words[i]))
		joined := ""
		for j := i; j < len(words) && j-i <= n.longest; j++ {
			joined += words[j]
			f = max(f, n.whole(joined))
		}
	}
	if last := len(words) - 1; n.last && last >= 0 && slices.Contains(lastWords, words[last]) {
		return foundName
	}
	if len(words) > 1 && slices.Contains(countingWords, words[len(words)-1]) {
		return min(f, foundMany)
	}
	return f
}

// endOf looks for a name at the end of a longer word.
func (n secretNames) endOf(word string) found {
	f := foundNothing
	for size, names := range n.endings {
		if len(word) > size && names[word[len(word)-size:]] {
			return foundName
		}
		if len(word) > size+1 && word[len(word)-1] == 's' && names[word[len(word)-1-size:len(word)-1]] {
			f = foundMany
		}
	}
	return f
}

// ending looks for a name of several words that ends a phrase, such as "the api key".
func (n secretNames) ending(phrase string) found {
	words := wordsOf(phrase)
	joined, best := "", foundNothing
	for i := len(words) - 1; i >= 0 && len(words)-i <= n.longest; i-- {
		joined = words[i] + joined
		best = max(best, n.whole(joined))
	}
	return best
}

func (n secretNames) whole(joined string) found {
	if n.joined[joined] {
		return foundName
	}
	if many, ok := strings.CutSuffix(joined, "s"); ok && n.joined[many] {
		return foundMany
	}
	return foundNothing
}

// wordsOf splits a name into its words in lower case: at everything that is neither a
// letter nor a digit, where a capital begins a word, and between letters and digits.
func wordsOf(name string) []string {
	var words []string
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(name[start:end]))
		}
		start = end
	}
	var before rune
	for at, size := 0, 0; at < len(name); at += size {
		var r rune
		r, size = utf8.DecodeRuneInString(name[at:])
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			cut(at)
			start = at + size
		case at == start:
		case unicode.IsDigit(r) != unicode.IsDigit(before):
			cut(at)
		case unicode.IsUpper(r) && !unicode.IsUpper(before):
			cut(at)
		case unicode.IsUpper(r):
			// The last of several capitals begins the next word: API|Key.
			if next, _ := utf8.DecodeRuneInString(name[at+size:]); unicode.IsLower(next) {
				cut(at)
			}
		}
		before = r
	}
	cut(len(name))
	return words
}
