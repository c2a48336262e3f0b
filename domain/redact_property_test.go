package domain_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"openbot/domain"
)

// secretKinds draw one secret each, and the part of it that must be gone.
var secretKinds = map[string]func(t *rapid.T) (secret, hidden string){
	"key": func(t *rapid.T) (string, string) {
		prefix := rapid.SampledFrom([]string{"ghp_", "github_pat_", "glpat-", "xoxb-", "sk_live_", "obt_", "shpat_", "glsa_"}).Draw(t, "prefix")
		key := prefix + rapid.StringMatching(`[A-Za-z0-9]{36}`).Draw(t, "key")
		return key, key
	},
	"jwt": func(t *rapid.T) (string, string) {
		jwt := rapid.StringMatching(`eyJ[A-Za-z0-9_-]{20}\.eyJ[A-Za-z0-9_-]{20,60}\.[A-Za-z0-9_-]{30,60}`).Draw(t, "jwt")
		return jwt, jwt
	},
	"pem": func(t *rapid.T) (string, string) {
		kind := rapid.SampledFrom([]string{"", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "}).Draw(t, "kind")
		body := rapid.StringMatching(`[A-Za-z0-9+/]{30,60}`).Draw(t, "body")
		return "-----BEGIN " + kind + "PRIVATE KEY-----\n" + body + "\n-----END " + kind + "PRIVATE KEY-----", body
	},
	"address": func(t *rapid.T) (string, string) {
		password := rapid.StringMatching(`[A-Za-z0-9!$^*()~.-]{8,20}`).Draw(t, "password")
		return "postgres://bob:" + password + "@db.example/app", ":" + password + "@"
	},
	"card": func(t *rapid.T) (string, string) {
		card := []byte("4" + rapid.StringMatching(`[0-9]{14}`).Draw(t, "card"))
		sum := 0
		for i, d := range card {
			n := int(d - '0')
			if i%2 == 0 {
				if n *= 2; n > 9 {
					n -= 9
				}
			}
			sum += n
		}
		card = append(card, byte('0'+(10-sum%10)%10))
		between := rapid.SampledFrom([]string{"", " ", "-"}).Draw(t, "between")
		shown := strings.Join([]string{string(card[:4]), string(card[4:8]), string(card[8:12]), string(card[12:])}, between)
		return shown, shown
	},
	"iban": func(t *rapid.T) (string, string) {
		account := rapid.StringMatching(`[0-9]{18}`).Draw(t, "account")
		rest := 0
		for _, d := range account + "131400" { // DE00
			rest = (rest*10 + int(d-'0')) % 97
		}
		iban := fmt.Sprintf("DE%02d%s", 98-rest, account)
		if rapid.Bool().Draw(t, "grouped") {
			var groups []string
			for i := 0; i < len(iban); i += 4 {
				groups = append(groups, iban[i:min(i+4, len(iban))])
			}
			iban = strings.Join(groups, " ")
		}
		return iban, iban
	},
	"bearer": func(t *rapid.T) (string, string) {
		token := rapid.StringMatching(`[a-z]{6}[0-9][A-Za-z0-9._~-]{8,30}[a-z]`).Draw(t, "token")
		return rapid.SampledFrom([]string{"Bearer ", "bearer ", "BEARER  "}).Draw(t, "scheme") + token, token
	},
	"assignment": func(t *rapid.T) (string, string) {
		value := rapid.StringMatching(`[A-Za-z0-9!$^()~.-]{8,20}`).Draw(t, "value")
		name := rapid.SampledFrom([]string{"password", "api_key", "apiKey", "client-secret", "ACCESS_TOKEN", "dbPassword"}).Draw(t, "name")
		return name + rapid.SampledFrom([]string{"=", ": ", " = ", `="`, ": '"}).Draw(t, "mark") + value, value
	},
	"mail": func(t *rapid.T) (string, string) {
		mail := rapid.StringMatching(`[a-z][a-z0-9.+_-]{3,12}[a-z]@[a-z]{3,9}\.example`).Draw(t, "mail")
		return mail, mail
	},
	"phone": func(t *rapid.T) (string, string) {
		phone := rapid.StringMatching(`\+[1-9][0-9]{1,2} [0-9]{3} [0-9]{4,6}`).Draw(t, "phone")
		return phone, phone
	},
}

// harmless draws words that no rule takes for something.
func harmless() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "Hello Bob,", "see", "the invoice", "2026-09-18T08:00:00.000Z", "7c1e2d3f-4a5b-4c6d-8e9f-0a1b2c3d4e5f",
			"con_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d", "1758182400000", "EUR 1,299.99", "https://example.test/a/b?page=2", "/usr/local/bin", "[redacted]",
			"12:30", "a=b", "{\"a\": 1}", "don't", "“quoted”", "日本語", "\n\n", "\t", "50%", "A & B", "<b>bold</b>", "C:\\temp", "1 2 3"}),
		rapid.StringMatching(`[a-z ,.]{0,30}`))
}

// around draws a text that holds another, apart from what stands beside it.
func around(t *rapid.T, inner string) string {
	before := strings.Join(rapid.SliceOfN(harmless(), 0, 4).Draw(t, "before"), " ")
	after := strings.Join(rapid.SliceOfN(harmless(), 0, 4).Draw(t, "after"), " ")
	return before + " " + inner + " " + after
}

// within draws JSON that holds a text, in lists, in objects, and in texts that are JSON.
func within(t *rapid.T, inner string) string {
	value := any(inner)
	for range rapid.IntRange(0, 5).Draw(t, "levels") {
		switch rapid.IntRange(0, 3).Draw(t, "level") {
		case 0:
			value = []any{1, value, nil, "x"}
		case 1:
			value = map[string]any{"subject": value, "n": 1.5, "empty": map[string]any{}}
		case 2:
			raw, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			value = string(raw)
		default:
			if text, ok := value.(string); ok {
				value = around(t, text)
			}
		}
	}
	raw, err := json.Marshal(map[string]any{"in": value})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A secret comes through nowhere: not in text, not in JSON, not in JSON in a text; and
// what came out comes out again.
func TestNoSecretComesThrough(t *testing.T) {
	reached, checks := map[string]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		kind := rapid.SampledFrom(slices.Sorted(maps.Keys(secretKinds))).Draw(t, "kind")
		secret, hidden := secretKinds[kind](t)
		reached[kind]++
		text := around(t, secret)
		if got := strictly.Text(text); strings.Contains(got, hidden) {
			t.Fatalf("%q became %q", text, got)
		} else if again := strictly.Text(got); again != got {
			t.Fatalf("%q became %q and then %q", text, got, again)
		}
		raw := within(t, text)
		before := []byte(raw)
		got := strictly.JSON(before)
		if string(before) != raw {
			t.Fatal("the input was changed")
		}
		if strings.Contains(flattened(t, got), hidden) {
			t.Fatalf("%s became %s", raw, got)
		}
		if again := strictly.JSON(got); string(again) != string(got) {
			t.Fatalf("%s became %s and then %s", raw, got, again)
		}
	})
	reachedAll(t, reached, checks, slices.Sorted(maps.Keys(secretKinds))...)
}

// flattened takes every layer of quotes off, so that a secret is found however often
// it was written as a text.
func flattened(t *rapid.T, raw []byte) string {
	if !json.Valid(raw) {
		t.Fatalf("%s is no JSON", raw)
	}
	return strings.NewReplacer(`\`, "").Replace(string(raw))
}

// What holds no secret is not touched, byte by byte.
func TestHarmlessTextsStayAsTheyAre(t *testing.T) {
	words := rapid.SampledFrom([]string{"Hello Bob,", "2026-09-18T08:00:00.000Z", "7c1e2d3f-4a5b-4c6d-8e9f-0a1b2c3d4e5f", "1758182400000", "EUR 1,299.99",
		"https://example.test/a/b?page=2", "/usr/local/bin", "12:30", "the secret of bread", "tokens", "max_tokens: 500", "an account of it", "order no. 1234567", "(see below)",
		"it's", "\"quoted\"", "日本語", "50%", "a -> b", "x := 1", "<b>bold</b>", "&amp;", "C:\\temp", "key: value", "name=Bob", "--verbose", "git@host.example:a/b"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(words, 0, 6).Draw(t, "words"), " ")
		if got := plainly.Text(text); got != text {
			t.Fatalf("%q became %q", text, got)
		}
		raw := within(t, text)
		if got := plainly.JSON([]byte(raw)); string(got) != raw {
			t.Fatalf("%s became %s", raw, got)
		}
	})
}

// A value under a secret name is gone wherever the object stands and however the name
// is spelled.
func TestNothingComesThroughUnderASecretName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom(append(domain.DefaultSettings().Redaction.Keys, "passphrase", "private_key", "credentials")).Draw(t, "key")
		parts := strings.Split(key, "_")
		if rapid.Bool().Draw(t, "more") {
			parts = append([]string{rapid.SampledFrom([]string{"x", "user", "new", "db2"}).Draw(t, "first")}, parts...)
		}
		name := ""
		switch rapid.IntRange(0, 3).Draw(t, "spelling") {
		case 0:
			name = strings.Join(parts, rapid.SampledFrom([]string{"_", "-", ".", " "}).Draw(t, "between"))
		case 1:
			name = strings.ToUpper(strings.Join(parts, "_"))
		default:
			for i, p := range parts {
				if i > 0 {
					p = strings.ToUpper(p[:1]) + p[1:]
				}
				name += p
			}
		}
		value := rapid.StringMatching(`[a-z]{8}`).Draw(t, "value")
		var held any = value
		switch rapid.IntRange(0, 2).Draw(t, "held") {
		case 0:
			held = []any{value}
		case 1:
			held = map[string]any{"a": []any{value, 1}}
		}
		inner, err := json.Marshal(map[string]any{name: held, "z": 1})
		if err != nil {
			t.Fatal(err)
		}
		raw := within(t, string(inner))
		if got := plainly.JSON([]byte(raw)); strings.Contains(string(got), value) {
			t.Fatalf("%s became %s", raw, got)
		}
	})
}
