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
	"openbot/domain"
)

// browser is a person with a cookie and no script.
type browser struct {
	h      *house
	cookie *http.Cookie
}

func (b *browser) get(path string) answer {
	b.h.t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	return b.send(r)
}

func (b *browser) post(path string, form url.Values, headers ...string) answer {
	b.h.t.Helper()
	r := httptest.NewRequest("POST", path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return b.send(r)
}

func (b *browser) send(r *http.Request) answer {
	r.RemoteAddr = "203.0.113.7:4000"
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	a := b.h.send(r)
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		b.cookie = c
	}
	if got := a.header.Get("Content-Type"); strings.HasPrefix(got, "text/html") {
		policy := a.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; style-src 'self'") || strings.Contains(policy, "unsafe") || strings.Contains(a.body, "<script") {
			b.h.t.Errorf("the page is not safe: %s", policy)
		}
	}
	return a
}

// signIn is a browser with the session of a token.
func (h *house) signIn(secret string) *browser {
	h.t.Helper()
	b := &browser{h: h}
	if a := b.post("/login", url.Values{"token": {secret}}); a.status != 303 || a.header.Get("Location") != "/" {
		h.t.Fatalf("the login gave %d %s", a.status, a.body)
	}
	return b
}

// follow goes where an answer sends the browser.
func (b *browser) follow(a answer) answer {
	b.h.t.Helper()
	if a.status != 303 {
		b.h.t.Fatalf("got %d, not 303: %s", a.status, a.body)
	}
	return b.get(a.header.Get("Location"))
}

func (a answer) shows(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page does not show %q:\n%s", text, a.body)
		}
	}
}

var field = regexp.MustCompile(`name="(request|expected|key|chat)" value="([^"]*)"`)

// formOf reads the hidden fields of the first form for a Request.
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
	before := h.snapshot()
	form := url.Values{"request": {request}, "expected": {"0"}, "decision": {"allow"}, "text": {"x"}, "key": {"k"}, "token": {h.secret}}
	for _, path := range []string{"/login", "/logout", "/answer", "/chat"} {
		for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example"}} {
			if a := b.post(path, form, headers...); a.status != 403 || len(a.header["Set-Cookie"]) > 0 {
				t.Errorf("%s took a form of another site (%v): %d", path, headers, a.status)
			}
		}
		if a := b.get(path); a.status != 405 {
			t.Errorf("GET %s gave %d", path, a.status)
		}
	}
	if h.snapshot() != before {
		t.Error("something changed")
	}
}

// The inbox shows who asks for what, word for word and harmless.
func TestTheInboxShowsTheRequest(t *testing.T) {
	h := newHouse(t)
	con := h.connect()
	b := h.signIn(h.secret)
	b.get("/").shows(t, "Nothing waits for your answer.")
	h.chat("/call mail__send_email {\"to\":\"ann@example.com\u202e\",\"text\":\"<b>Hello</b>\\u0007\",\"openbot_reason\":\"<script>alert(1)</script> & allow \u2066it\"}")
	page := b.get("/")
	page.shows(t, "<title>(1) Inbox", "Main asks to use <code>send_email</code> of mail", con+"/send_email",
		"ann@example.com<span class=\"hidden-char\" title=\"a character that cannot be seen\">U+202E</span>", `&lt;b&gt;Hello&lt;/b&gt;\u0007`,
		"The Bot’s own words. They are data, not an instruction.", "&lt;script&gt;alert(1)&lt;/script&gt; &amp; allow <span", "U+2066",
		"2026-01-03 03:04:05 UTC (in 24 hours)", "Allow once", "Deny", `name="expected" value="0"`)
	if strings.ContainsAny(page.body, "\u202e\u2066") {
		t.Error("a character that turns text around stands in the page")
	}
}

func TestAnswersFromThePage(t *testing.T) {
	h := newHouse(t)
	h.connect()
	var sent []string
	h.tool = func(c domain.Call) (string, bool) { sent = append(sent, string(c.Arguments)); return "sent", false }
	b := h.signIn(h.secret)
	chat, turn, request := h.asking()
	form := formOf(b.get("/?chat="+chat).body, url.Values{"decision": {"allow"}})
	if form.Get("request") != request || form.Get("chat") != chat {
		t.Fatalf("the form is %v", form)
	}
	b.follow(b.post("/answer", form)).shows(t, "Done: allowed by you", "Nothing waits for your answer.")
	h.work()
	if len(sent) != 1 || h.ok(200, "GET", "/v1/turns/"+turn, "")["status"] != "Completed" {
		t.Errorf("the call did not go out once: %v", sent)
	}
	b.get("/?chat="+chat).shows(t, "mail__send_email: sent")

	_, _, request = h.asking()
	form = formOf(b.get("/").body, url.Values{"decision": {"deny"}, "reason": {"Not <today>"}})
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"allow"}`)
	b.follow(b.post("/answer", form)).shows(t, "Your answer did not count. What is so now: allowed by you")
	h.work()

	_, turn, _ = h.asking()
	form = formOf(b.get("/").body, url.Values{"decision": {"deny"}, "reason": {"Not <today>"}})
	b.follow(b.post("/answer", form)).shows(t, "Done: denied by you", "Reason: Not &lt;today&gt;")
	h.work()
	if got := h.call("GET", "/v1/turns/"+turn, "").body; !strings.Contains(got, "Not <today>") || len(sent) != 2 {
		t.Errorf("the Bot does not read the reason: %s %v", got, sent)
	}
	for _, bad := range []url.Values{{}, {"request": {"req_1"}, "expected": {"0"}, "decision": {"allow"}}, {"request": {request}, "expected": {"x"}}} {
		if a := b.post("/answer", bad); a.status != 404 {
			t.Errorf("%v gave %d", bad, a.status)
		}
	}
}

// A call of which nothing came back is asked about in words that fit it.
func TestAnUnknownOutcomeOnThePage(t *testing.T) {
	h := newHouse(t)
	h.connect()
	h.tool = func(domain.Call) (string, bool) { return "", false }
	_, _, request := h.asking()
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"allow"}`)
	h.work()
	list := h.call("GET", "/v1/requests?status=pending", "").list(t)
	if len(list) != 1 || list[0]["unknown"].(map[string]any)["sentAt"] != float64(h.clock.now().UnixMilli()) {
		t.Fatalf("there is no question: %v", list)
	}
	h.signIn(h.secret).get("/").shows(t, "may or may not have run", "Send again", "Do not send")
}

// Who may only look is shown no buttons, and its forms are refused.
func TestReadersCannotAnswerFromThePage(t *testing.T) {
	h := newHouse(t)
	h.connect()
	_, _, request := h.asking()
	_, secret := h.token(`["read"]`)
	b := h.signIn(secret)
	page := b.get("/")
	page.shows(t, "may look but not answer", "send_email")
	if strings.Contains(page.body, "Allow once") {
		t.Error("a reader is shown the button")
	}
	before := h.snapshot()
	for path, form := range map[string]url.Values{"/answer": {"request": {request}, "expected": {"0"}, "decision": {"allow"}}, "/chat": {"text": {"x"}, "key": {"k"}}} {
		if a := b.post(path, form); a.status != 403 {
			t.Errorf("%s gave %d", path, a.status)
		}
	}
	if h.snapshot() != before {
		t.Error("something changed")
	}
	_, nobody := h.token(`["*"]`)
	if a := (&browser{h: h}).post("/login", url.Values{"token": {nobody}}); a.status != 403 || len(a.header["Set-Cookie"]) > 0 {
		t.Errorf("a token without a role signed in: %d", a.status)
	}
}

// The box talks to the Main Bot, and a form that is sent twice counts once.
func TestTheChatBox(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	form := formOf(b.get("/").body, url.Values{"text": {"Hello <Bot>"}})
	first := b.post("/chat", form)
	again := b.post("/chat", form)
	if first.header.Get("Location") != again.header.Get("Location") {
		t.Errorf("the form made two Chats: %s, %s", first.header.Get("Location"), again.header.Get("Location"))
	}
	h.work()
	page := b.follow(first)
	page.shows(t, "You said: Hello &lt;Bot&gt;")
	form = formOf(page.body, url.Values{"text": {"/fail no luck"}})
	b.post("/chat", form)
	b.post("/chat", form)
	h.work()
	b.follow(first).shows(t, "The Turn failed: no luck")
	chats := h.call("GET", "/v1/chats", "").list(t)
	if len(chats) != 1 || len(h.call("GET", "/v1/chats/"+text(chats[0]["id"])+"/turns", "").list(t)) != 2 {
		t.Errorf("there are other Chats or Turns: %v", chats)
	}
	for _, bad := range []url.Values{{"key": {"k"}}, {"text": {"x"}}, {"text": {"x"}, "key": {"a b"}}, {"text": {"a\x00b"}, "key": {"k"}}, {"text": {"\xff"}, "key": {"k"}}} {
		if a := b.post("/chat", bad); a.status != 422 {
			t.Errorf("%v gave %d", bad, a.status)
		}
	}
	if a := b.post("/chat", url.Values{"text": {"x"}, "key": {"k"}, "chat": {"chat_1"}}); a.status != 404 {
		t.Errorf("a Chat that is not there gave %d", a.status)
	}
	if a := b.post("/chat", url.Values{"text": {strings.Repeat("x", 1<<20)}}); a.status != 400 {
		t.Errorf("a form of more than 1 MiB gave %d", a.status)
	}
}

// Pages load nothing from elsewhere.
func TestPagesNeedNobody(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	outside := regexp.MustCompile(`(src|href|action)="(https?:|//)|@import|url\(`)
	for _, path := range []string{"/", "/docs"} {
		page := b.get(path)
		if found := outside.FindString(page.body); found != "" {
			t.Errorf("%s loads %s", path, found)
		}
		sheet := regexp.MustCompile(`href="(/style[^"]*)"`).FindStringSubmatch(page.body)
		css := b.get(sheet[1])
		if css.status != 200 || css.header.Get("Content-Type") != "text/css; charset=utf-8" || outside.MatchString(css.body) {
			t.Errorf("the style sheet of %s: %d %s", path, css.status, css.header.Get("Content-Type"))
		}
	}
}

// The queue's pages: admins act, readers look, others stay out.
func TestMonitoring(t *testing.T) {
	h := newHouse(t, func(o *api.Options) {
		o.Monitoring = func(readOnly bool) http.Handler {
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
