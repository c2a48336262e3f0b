package api_test

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"openbot/api"
)

// Wrong tokens are counted against their address; a good one never pays for them.
func TestWrongTokensAreLimited(t *testing.T) {
	h := newHouse(t)
	const wrong = "obt_wrong-wrong-wrong-wrong"
	for range 30 {
		h.refused(h.as(wrong, "GET", "/v1/me", ""), 401, "Unauthenticated")
	}
	limited := h.as(wrong, "GET", "/v1/me", "")
	h.refused(limited, 429, "RateLimited")
	if got := limited.header.Get("Retry-After"); got != "7" {
		t.Errorf("Retry-After is %q", got)
	}
	if got := limited.header.Get("WWW-Authenticate"); got != "" {
		t.Errorf("WWW-Authenticate is %q", got)
	}
	h.ok(200, "GET", "/v1/me", "")                                   // the same address with a good token
	h.refused(h.as("", "GET", "/v1/me", ""), 401, "Unauthenticated") // no token is no guess

	from := func(address string) answer {
		r := httptest.NewRequest("GET", "/v1/me", nil)
		r.RemoteAddr = address
		r.Header.Set("Authorization", "Bearer "+wrong)
		r.Header.Set("X-Forwarded-For", "198.51.100.1") // nobody is trusted to say so
		return h.send(r)
	}
	h.refused(from("203.0.113.7:9"), 429, "RateLimited")
	h.refused(from("203.0.113.8:9"), 401, "Unauthenticated")
	for range 30 {
		from("[2001:db8:1:2::1]:9")
	}
	h.refused(from("[2001:db8:1:2::ffff]:9"), 429, "RateLimited") // the same /64
	h.refused(from("[2001:db8:1:3::1]:9"), 401, "Unauthenticated")
}

// X-Forwarded-For counts from a trusted proxy alone.
func TestTrustedProxies(t *testing.T) {
	h := newHouse(t, func(o *api.Options) { o.TrustedProxies = []string{"10.0.0.0/8"}; o.FailedAuthLimit = 1 })
	from := func(client string) answer {
		r := httptest.NewRequest("GET", "/v1/me", nil)
		r.RemoteAddr = "10.1.2.3:9"
		r.Header.Set("Authorization", "Bearer obt_wrong-wrong-wrong-wrong")
		r.Header.Set("X-Forwarded-For", client)
		return h.send(r)
	}
	h.refused(from("198.51.100.1"), 401, "")
	h.refused(from("198.51.100.1"), 429, "")
	h.refused(from("198.51.100.2"), 401, "")
	if _, err := api.New(api.Options{Engine: h.engine, TrustedProxies: []string{"no address"}}); err == nil {
		t.Error("a proxy that is no address was taken")
	}
}

// The settings of the organization limit wrong tokens and, when asked to, calls of
// one token.
func TestLimitsOfTheSettings(t *testing.T) {
	h := newHouse(t)
	h.ok(200, "PATCH", "/v1/settings", `{"rateLimits":{"failedAuthPerAddress":2,"v1PerKey":3}}`)
	h.refused(h.as("obt_wrong-wrong-wrong-wrong", "GET", "/v1/me", ""), 401, "")
	h.refused(h.as("obt_wrong-wrong-wrong-wrong", "GET", "/v1/me", ""), 401, "")
	h.refused(h.as("obt_wrong-wrong-wrong-wrong", "GET", "/v1/me", ""), 429, "RateLimited")
	for range 3 {
		h.ok(200, "GET", "/v1/me", "")
	}
	limited := h.call("GET", "/v1/me", "")
	h.refused(limited, 429, "RateLimited")
	if limited.header.Get("Retry-After") != "7" {
		t.Errorf("Retry-After is %q", limited.header.Get("Retry-After"))
	}
	h.limiter.reset() // another minute
	h.ok(200, "PATCH", "/v1/settings", `{"rateLimits":{}}`)
	for range 10 {
		h.ok(200, "GET", "/v1/me", "")
	}
}

func TestSchemes(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct {
		header string
		status int
	}{{"bearer " + firstSecret, 200}, {"BEARER  " + firstSecret, 200}, {firstSecret, 401}, {"Basic " + firstSecret, 401}, {"Bearer", 401}, {"Bearer ", 401}} {
		if a := h.as("", "GET", "/v1/me", "", "Authorization", c.header); a.status != c.status {
			t.Errorf("%q gave %d", c.header, a.status)
		}
	}
}

// With the database away every call says 503, and no token counts as wrong.
func TestTheDatabaseAway(t *testing.T) {
	h := newHouse(t)
	must(t, h.store.Close())
	for range 3 {
		for _, o := range h.contract.operations {
			if o.role == "" {
				continue
			}
			a := h.call(o.method, o.at(belongings{}), bodies[o.id])
			tag := ""
			if strings.Contains(o.path, "/delegations") || strings.Contains(o.path, "/executions") {
				tag = "DelegationStorageUnavailable"
			}
			h.refused(a, 503, tag)
			if a.header.Get("Retry-After") == "" {
				t.Errorf("%s says not when to try again", o.id)
			}
		}
	}
	h.refused(h.call("GET", "/readyz", ""), 503, "Unavailable")
	if a := h.call("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("the process is gone: %d", a.status)
	}
	if len(h.limiter.seen) != 0 {
		t.Errorf("failures were counted: %v", h.limiter.seen)
	}
}

// The log has one line for each request, and nothing that is secret.
func TestTheLogKeepsSecrets(t *testing.T) {
	var log bytes.Buffer
	h := newHouse(t, func(o *api.Options) { o.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	log.Reset()
	a := h.call("POST", "/v1/chats", `{"title":"private title"}`, "X-Request-Id", "my-id_1", "Idempotency-Key", "private-key")
	if got := a.header.Get("X-Request-Id"); got != "my-id_1" {
		t.Errorf("X-Request-Id is %q", got)
	}
	h.call("GET", "/v1/requests?status=private", "")
	h.as("private-token-private-token", "GET", "/v1/me", "")
	h.call("GET", "/private/path", "")
	lines := log.String()
	if n := strings.Count(lines, "\n"); n != 4 {
		t.Errorf("%d lines for four requests:\n%s", n, lines)
	}
	for _, secret := range []string{"private", firstSecret} {
		if strings.Contains(lines, secret) {
			t.Errorf("the log holds %q:\n%s", secret, lines)
		}
	}
	for _, want := range []string{`"httpRequest":"my-id_1"`, `"route":"/v1/chats"`, `"status":201`, `"route":"unmatched"`, `"method":"POST"`} {
		if !strings.Contains(lines, want) {
			t.Errorf("the log lacks %s:\n%s", want, lines)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	h := newHouse(t)
	seen := map[string]bool{}
	for _, id := range []string{"", "a b", strings.Repeat("x", 65), "a\"b", "é", "x;y"} {
		got := h.call("GET", "/healthz", "", "X-Request-Id", id).header.Get("X-Request-Id")
		if got == id || got == "" || seen[got] {
			t.Errorf("for %q the ID is %q", id, got)
		}
		seen[got] = true
	}
}
