package evidence_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"openbot/domain"
	"openbot/domain/evidence"
)

func newKey(t *testing.T, id domain.SigningKeyID, seed byte) *evidence.Key {
	t.Helper()
	key, err := evidence.NewKey(id, bytes.Repeat([]byte{seed}, evidence.SeedSize))
	must(t, err)
	return key
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func publicOf(t *testing.T, all ...*evidence.Key) evidence.Keys {
	t.Helper()
	keys := evidence.Keys{}
	for _, k := range all {
		must(t, keys.Add(k.ID(), k.Public()))
	}
	return keys
}

var receipt = domain.Receipt{Organization: "org_1", Request: "req_1", Revision: 3, Decision: "allow", Scope: "once", By: domain.Person("mem_1"),
	Capability: domain.Capability{Action: "apps.call", Target: "con_7/send_email"}, Bot: "bot_1", Call: "call_1",
	ArgumentsSHA256: strings.Repeat("ab", 32), Connection: "con_7", ConnectionRevision: 2, AtMs: 1767323045000}

func TestAReceiptSaysWhatWasSigned(t *testing.T) {
	key := newKey(t, "key_1", 1)
	text, err := key.SignReceipt(receipt)
	must(t, err)
	signed, err := evidence.Open(text, publicOf(t, newKey(t, "key_0", 9), key))
	must(t, err)
	if signed.Head != nil || signed.Key != "key_1" || *signed.Receipt != receipt {
		t.Errorf("got %+v", signed)
	}
	again, err := key.SignReceipt(receipt)
	must(t, err)
	if again != text {
		t.Error("the same decision has two receipts")
	}
}

// Each byte of a receipt is replaced by every other byte that a JWS may hold, and by a
// few that it may not.
func TestAReceiptWithOneByteChangedDoesNotVerify(t *testing.T) {
	key := newKey(t, "key_1", 1)
	text, err := key.SignReceipt(receipt)
	must(t, err)
	keys := publicOf(t, key, newKey(t, "key_2", 2))
	others := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.= \n{\x00"
	tried := 0
	for i := range text {
		// All of them at the end, where letters share bits that no signature fills.
		from := others
		if i < len(text)-3 && i%20 != 0 {
			from = "Aa_.\n"
		}
		for _, c := range []byte(from) {
			if text[i] == c {
				continue
			}
			tried++
			if signed, err := evidence.Open(text[:i]+string(c)+text[i+1:], keys); err == nil {
				t.Fatalf("byte %d as %q verifies: %+v", i, c, signed)
			}
		}
	}
	for i := range text { // one byte less, one byte more
		if _, err := evidence.Open(text[:i]+text[i+1:], keys); err == nil {
			t.Errorf("it verifies without byte %d", i)
		}
	}
	for _, more := range []string{text + "A", "A" + text, text + ".", text + "\n", " " + text, text + "." + text} {
		if _, err := evidence.Open(more, keys); err == nil {
			t.Errorf("%q verifies", more)
		}
	}
	if tried < 2500 {
		t.Errorf("only %d changes were tried", tried)
	}
}

// What others could put together is refused: no signature, another algorithm, a key
// inside the receipt, another kind of text under the right key.
func TestForgedReceiptsDoNotVerify(t *testing.T) {
	key, other := newKey(t, "key_1", 1), newKey(t, "key_1", 2)
	keys := publicOf(t, key)
	text, err := key.SignReceipt(receipt)
	must(t, err)
	parts := strings.Split(text, ".")
	encode := base64.RawURLEncoding.EncodeToString
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	sign := func(header string, payload []byte) string {
		input := encode([]byte(header)) + "." + encode(payload)
		return input + "." + encode(ed25519.Sign(private, []byte(input)))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	ofOther, err := other.SignReceipt(receipt)
	must(t, err)
	head, err := key.SignHead(domain.AuditHeadClaims{Organization: "org_1", Count: 3, Hash: "h", AtMs: 4})
	must(t, err)
	headParts := strings.Split(head, ".")

	if _, err := evidence.Open(sign(`{"alg":"EdDSA","kid":"key_1","typ":"openbot-receipt+jws"}`, payload), keys); err != nil {
		t.Fatalf("the test signs wrongly: %v", err)
	}
	for name, c := range map[string]struct{ text, why string }{
		"of another key under the same kid": {ofOther, "signature does not fit"},
		"of no key":                         {parts[0] + "." + parts[1] + ".", "signature does not fit"},
		"without an algorithm":              {encode([]byte(`{"alg":"none","kid":"key_1"}`)) + "." + parts[1] + ".", "JWS"},
		"with HMAC of the public key":       {encode([]byte(`{"alg":"HS256","kid":"key_1","typ":"openbot-receipt+jws"}`)) + "." + parts[1] + "." + parts[2], "JWS"},
		"of a kid that is not there":        {sign(`{"alg":"EdDSA","kid":"key_9","typ":"openbot-receipt+jws"}`, payload), "not among the keys"},
		"without a kid":                     {sign(`{"alg":"EdDSA","typ":"openbot-receipt+jws"}`, payload), "not among the keys"},
		"of another type":                   {sign(`{"alg":"EdDSA","kid":"key_1","typ":"JWT"}`, payload), "neither a receipt"},
		"with a critical extension":         {sign(`{"alg":"EdDSA","kid":"key_1","typ":"openbot-receipt+jws","crit":["x"],"x":1}`, payload), "signature does not fit"},
		"with a field that nobody knows":    {sign(`{"alg":"EdDSA","kid":"key_1","typ":"openbot-receipt+jws"}`, []byte(`{"decision":"allow","unless":"it rains"}`)), "does not know"},
		"a head under the type of receipts": {headParts[0] + "." + parts[1] + "." + parts[2], "signature does not fit"},
		"nothing":                           {"", "JWS"},
		"too much":                          {strings.Repeat("A", 1<<17), "too long"},
	} {
		if _, err := evidence.Open(c.text, keys); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s gives %v, want %q", name, err, c.why)
		}
	}
	signed, err := evidence.Open(head, keys)
	must(t, err)
	if signed.Receipt != nil || signed.Head.Count != 3 {
		t.Errorf("the head reads as %+v", signed)
	}
}

func TestKeySetsOfOthers(t *testing.T) {
	key := newKey(t, "key_1", 1)
	own := fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":"key_1","alg":"EdDSA","use":"sig","x":%q}`, key.Public())
	keys, err := evidence.ReadKeys([]byte(`{"keys":[{"kty":"RSA","kid":"rsa","n":"AQAB","e":"AQAB"},` + own + `]}`))
	must(t, err)
	if len(keys) != 1 || keys["key_1"] == nil {
		t.Errorf("got %v", keys)
	}
	for _, set := range []string{``, `[]`, `{"keys":[]}`, `<html>`, `{"keys":[{"kty":"RSA","kid":"rsa","n":"AQAB","e":"AQAB"}]}`,
		strings.Replace(`{"keys":[`+own+`]}`, `"kid":"key_1",`, "", 1)} {
		if keys, err := evidence.ReadKeys([]byte(set)); err == nil {
			t.Errorf("%s gives %v", set, keys)
		}
	}
	// A set that holds a private key must not make us print or keep it.
	if err := (evidence.Keys{}).Add("key_2", "AAAA"); err == nil {
		t.Error("a short key is taken")
	}
	raw, err := json.Marshal(receipt)
	must(t, err)
	if strings.Contains(string(raw), "null") {
		t.Errorf("a receipt has an empty field: %s", raw)
	}
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
