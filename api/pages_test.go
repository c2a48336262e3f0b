package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"openbot/api"
)

// browser is a person with a cookie and no script.
type browser struct {
	h      *house
	cookie *http.Cookie
	token  string // of forms, as a page gave it
}

func (b *browser) get(path string, headers ...string) answer {
	b.h.t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return b.send(r)
}

func (b *browser) post(path string, form url.Values, headers ...string) answer {
	b.h.t.Helper()
	sent := url.Values{"form_token": {b.token}}
	for name, values := range form {
		sent[name] = values
	}
	r := httptest.NewRequest("POST", path, strings.NewReader(sent.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return b.send(r)
}

var (
	scriptTag  = regexp.MustCompile(`<script\b[^>]*>`)
	goodScript = regexp.MustCompile(`^<script src="/static/[a-z0-9.-]+\.js" integrity="sha256-[A-Za-z0-9+/=&#;]+" nonce="([A-Z2-7]{20,})" defer>$`)
	inTag      = regexp.MustCompile(`<[a-z][^>]*\s(on[a-z]+|style)=`)
	fieldValue = regexp.MustCompile(`\svalue="[^"]*"`)
	formToken  = regexp.MustCompile(`name="form_token" value="([A-Za-z0-9_-]+)"`)
)

func (b *browser) send(r *http.Request) answer {
	b.h.t.Helper()
	r.RemoteAddr = "203.0.113.7:4000"
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	a := b.h.send(r)
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		b.cookie = c
	}
	if got := a.header.Get("Content-Type"); strings.HasPrefix(got, "text/html") {
		b.h.safePage(a)
	}
	if m := formToken.FindStringSubmatch(a.body); m != nil {
		b.token = m[1]
	}
	return a
}

// safePage looks for what the policy of a page must not let happen, and for markup
// that would need a looser one.
func (h *house) safePage(a answer) {
	h.t.Helper()
	policy := a.header.Get("Content-Security-Policy")
	nonce := "'none'"
	tags := tagsOf(a.body)
	for _, tag := range scriptTag.FindAllString(tags, -1) {
		m := goodScript.FindStringSubmatch(tag)
		if m == nil {
			h.t.Errorf("a script that is not ours: %s", tag)
			continue
		}
		nonce = "'nonce-" + m[1] + "'"
	}
	if !strings.HasPrefix(policy, "default-src 'none'; script-src "+nonce+"; style-src 'self';") || strings.Contains(policy, "unsafe") {
		h.t.Errorf("the page is not safe: %s", policy)
	}
	if found := inTag.FindString(fieldValue.ReplaceAllString(tags, "")); found != "" {
		h.t.Errorf("the page needs a looser policy for %s", found)
	}
}

// tagsOf leaves out the text between the tags of a page, which can be long.
func tagsOf(body string) string {
	var b strings.Builder
	for {
		_, from, found := strings.Cut(body, "<")
		if !found {
			return b.String()
		}
		var tag string
		tag, body, _ = strings.Cut(from, ">")
		b.WriteString("<" + tag + ">")
	}
}

// signIn is a browser with the session of a token.
func (h *house) signIn(secret string) *browser {
	h.t.Helper()
	b := &browser{h: h}
	if a := b.post("/login", url.Values{"token": {secret}}); a.status != 303 || a.header.Get("Location") != "/" {
		h.t.Fatalf("the login gave %d %s", a.status, a.body)
	}
	b.get("/")
	return b
}

// follow goes where an answer sends the browser.
func (b *browser) follow(a answer) answer {
	b.h.t.Helper()
	if a.status != 303 {
		b.h.t.Fatalf("got %d, not 303: %s", a.status, a.body)
	}
	to, _, _ := strings.Cut(a.header.Get("Location"), "#")
	return b.get(to)
}

func (a answer) shows(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page does not show %q:\n%s", text, a.body)
		}
	}
}

var field = regexp.MustCompile(`name="(expected|key)" value="([^"]*)"`)

// formOf reads the hidden fields of a page.
func formOf(body string, into url.Values) url.Values {
	for _, m := range field.FindAllStringSubmatch(body, -1) {
		if !into.Has(m[1]) {
			into.Set(m[1], m[2])
		}
	}
	return into
}

func TestSignIn(t *testing.T) {
	h := newHouse(t)
	b := &browser{h: h}
	if a := b.get("/"); a.status != 401 || !strings.Contains(a.body, "Your token") {
		t.Errorf("without a session: %d %s", a.status, a.body)
	}
	b.post("/login", url.Values{"token": {"wrong-wrong-wrong-wrong"}}).shows(t, "wrong, expired or revoked")
	if b.cookie != nil {
		t.Error("a wrong token got a session")
	}
	b = h.signIn(h.secret)
	c := b.cookie
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || strings.Contains(c.Value, h.secret) {
		t.Errorf("the cookie is %+v", c)
	}
	if a := b.get("/"); a.status != 200 {
		t.Errorf("with a session: %d", a.status)
	}
	secure := &browser{h: h}
	secure.post("/login", url.Values{"token": {h.secret}}, "X-Forwarded-Proto", "https")
	if !secure.cookie.Secure {
		t.Error("behind TLS the cookie is not Secure")
	}
	if a := b.post("/logout", nil); a.status != 303 || b.cookie.MaxAge >= 0 {
		t.Errorf("the logout gave %d %+v", a.status, b.cookie)
	}
	for range 40 {
		b.post("/login", url.Values{"token": {"wrong-wrong-wrong-wrong"}})
	}
	if a := b.post("/login", url.Values{"token": {"wrong-wrong-wrong-wrong"}}); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("wrong tokens are not limited: %d", a.status)
	}
	h.signIn(h.secret) // never pays for them
}

// A session is good for its own server, until its end, while its token lives, and
// never for /v1.
func TestSessionsEnd(t *testing.T) {
	h := newHouse(t)
	id, secret := h.token(`["read"]`)
	b := h.signIn(secret)
	if a := b.get("/v1/me"); a.status != 401 {
		t.Errorf("/v1 took the cookie: %d", a.status)
	}
	other := newHouse(t, func(o *api.Options) { o.SessionKey = []byte("another session key of 16 bytes") })
	if a := (&browser{h: other, cookie: b.cookie}).get("/"); a.status != 401 {
		t.Errorf("another server took the session: %d", a.status)
	}
	changed := *b.cookie
	changed.Value = changed.Value[:len(changed.Value)-2] + "AA"
	for _, value := range []string{changed.Value, "", "x", h.secret} {
		changed.Value = value
		if a := (&browser{h: h, cookie: &changed}).get("/"); a.status != 401 {
			t.Errorf("%q was taken for a session", value)
		}
	}
	h.ok(204, "DELETE", "/v1/tokens/"+id, "")
	if a := b.get("/"); a.status != 401 {
		t.Errorf("the session outlives its token: %d", a.status)
	}
}

func TestFormsOfOtherSites(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	h.connect()
	_, _, request := h.asking()
	_, other := h.token(`["admin","*"]`)
	h.signIn(other)
	before := h.snapshot()
	form := url.Values{"id": {request}, "expected": {"0"}, "expected-" + request: {"0"}, "way": {"allow-once"}, "text": {"x"}, "key": {"k"}, "token": {h.secret},
		"name": {"n"}, "scopes": {"write"}, "decision": {"allow"}}
	for _, path := range []string{"/login", "/logout", "/requests/" + request, "/requests/answers", "/chats", "/bots", "/apps", "/grants", "/rules", "/rules/preview",
		"/settings", "/tokens", "/tokens/link", "/members", "/triggers", "/work/dlg_0/cancel"} {
		for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example"}} {
			if a := b.post(path, form, headers...); a.status != 403 || len(a.header["Set-Cookie"]) > 0 {
				t.Errorf("%s took a form of another site (%v): %d", path, headers, a.status)
			}
		}
		// Another site can make the browser send the cookie, and cannot read the form's token.
		for _, token := range []string{"", "x", b.token + "x", h.signIn(other).token} {
			wrong := url.Values{"form_token": {token}}
			for name, values := range form {
				wrong[name] = values
			}
			if path == "/login" {
				continue // there is no session yet
			}
			if a := b.post(path, wrong); a.status != 403 || len(a.header["Set-Cookie"]) > 0 {
				t.Errorf("%s took a form with the token %q: %d", path, token, a.status)
			}
		}
	}
	if h.snapshot() != before {
		t.Error("something changed")
	}
}

// Pages load nothing from elsewhere.
func TestPagesNeedNobody(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	outside := regexp.MustCompile(`(src|href|action)="(https?:|//)|@import|url\(`)
	asset := regexp.MustCompile(`(?:src|href)="(/static/[^"]*)"`)
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, path := range []string{"/", "/docs", "/chats", "/settings"} {
		page := b.get(path)
		if found := outside.FindString(page.body); found != "" {
			t.Errorf("%s loads %s", path, found)
		}
		for _, m := range asset.FindAllStringSubmatch(page.body, -1) {
			a := b.get(m[1])
			if a.status != 200 || a.header.Get("Content-Type") != types[m[1][strings.LastIndex(m[1], "."):]] || a.header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
				t.Errorf("%s: %d %s", m[1], a.status, a.header)
			}
			if strings.HasSuffix(m[1], ".css") && outside.MatchString(a.body) {
				t.Errorf("the style sheet loads %s", outside.FindString(a.body))
			}
			if packed := b.get(m[1], "Accept-Encoding", "br, gzip"); packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) >= len(a.body) && len(a.body) > 1000 {
				t.Errorf("%s is not compressed", m[1])
			}
		}
	}
}

// The queue's pages: admins act, readers look, others stay out.
func TestMonitoring(t *testing.T) {
	h := newHouse(t, func(o *api.Options) {
		o.Monitoring = func(_ string, readOnly bool) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/monitoring/panic" {
					panic("hush")
				}
				fmt.Fprintf(w, "%s read-only %v", r.URL.Path, readOnly)
			})
		}
	})
	_, reader := h.token(`["read"]`)
	_, nobody := h.token(`["*"]`)
	if a := h.call("GET", "/monitoring/api/queues", ""); a.body != "/monitoring/api/queues read-only false" {
		t.Errorf("an admin gets %d %s", a.status, a.body)
	}
	if a := h.as(reader, "GET", "/monitoring/", ""); a.body != "/monitoring/ read-only true" {
		t.Errorf("a reader gets %d %s", a.status, a.body)
	}
	if a := h.signIn(reader).get("/monitoring/"); a.body != "/monitoring/ read-only true" {
		t.Errorf("a reader with a session gets %d %s", a.status, a.body)
	}
	h.refused(h.as(nobody, "GET", "/monitoring/", ""), 403, "Forbidden")
	h.refused(h.as("", "GET", "/monitoring/", ""), 401, "Unauthenticated")
	if a := h.signIn(h.secret).post("/monitoring/api/queues/default:pause", nil, "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("another site may pause a queue: %d", a.status)
	}
	if a := h.as("", "GET", "/monitoring", ""); a.header.Get("Location") != "/monitoring/" {
		t.Errorf("/monitoring gave %d", a.status)
	}
	if p := h.refused(h.call("GET", "/monitoring/panic", ""), 500, "Internal"); strings.Contains(fmt.Sprint(p), "hush") {
		t.Errorf("a panic is shown: %v", p)
	}
	h.refused(newHouse(t).call("GET", "/monitoring/", ""), 404, "RouteNotFound")
}

// With the queue away the server is ready and says so.
func TestTheQueueAway(t *testing.T) {
	h := newHouse(t, func(o *api.Options) { o.QueueReady = func(context.Context) error { return errors.New("away") } })
	if got := h.ok(200, "GET", "/readyz", ""); got["queue"] != "degraded" || got["status"] != "ready" {
		t.Errorf("got %v", got)
	}
}

// Metrics name routes, never addresses.
func TestMetrics(t *testing.T) {
	h := newHouse(t)
	h.call("GET", "/v1/chats/chat_secret", "")
	h.call("GET", "/no/such/place", "")
	h.call("BREW", "/no/such/place", "")
	got := h.call("GET", "/metrics", "").body
	for _, want := range []string{
		`openbot_http_requests_total{method="GET",route="/v1/chats/{chat}",status="404"} 1`,
		`openbot_http_requests_total{method="GET",route="unmatched",status="404"} 1`,
		`openbot_http_requests_total{method="other",route="unmatched",status="404"} 1`,
		`openbot_http_request_duration_seconds_count{method="GET",route="/v1/chats/{chat}"} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	for _, secret := range []string{"chat_secret", "such", "BREW"} {
		if strings.Contains(got, secret) {
			t.Errorf("the metrics hold %s", secret)
		}
	}
}
