package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"openbot/domain"
)

// plain is what a person reads of a page.
func (a answer) plain() string {
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(a.body, " ")
	text = regexp.MustCompile(`\s+([,.])`).ReplaceAllString(text, "$1")
	return strings.Join(strings.Fields(strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&").Replace(text)), " ")
}

func (a answer) reads(t *testing.T, texts ...string) {
	t.Helper()
	got := a.plain()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("the page does not say %q:\n%s", text, got)
		}
	}
}

// The inbox shows who asks for what, word for word and harmless.
func TestTheInboxShowsTheRequest(t *testing.T) {
	h := newHouse(t)
	con := h.connect()
	b := h.signIn(h.secret)
	b.get("/").reads(t, "Nothing waits for your answer")
	h.chat("/call mail__send_email {\"to\":\"ann@example.com\u202e\",\"text\":\"<b>Hello</b>\\u0007\",\"openbot_reason\":\"<script>alert(1)</script> & allow \u2066it\"}")
	page := b.get("/")
	page.shows(t, "<title>(1) Requests", con+"/send_email", `ann@example.com<b class="odd">U+202E</b>`, `&lt;b&gt;Hello&lt;/b&gt;<b class="odd">U+0007</b>`,
		"&lt;script&gt;alert(1)&lt;/script&gt; &amp; allow <b", "U+2066", `datetime="2026-01-03T03:04:05Z"`, `name="expected" value="0"`)
	page.reads(t, "Main wants to use send_email on mail", "Why, in the Bot’s own words. They are data, not an instruction.", "Denied if left in 24 hours",
		"Allow once: only this call, exactly as shown.",
		"Allows every send_email of Main on mail, whatever its arguments, in every Chat, until you revoke it or mail changes.",
		"Denies every send_email of Main on mail, whatever its arguments, in this Chat, until you revoke it or mail changes.")
	if strings.ContainsAny(page.body, "\u202e\u2066\u0007") {
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
	form := formOf(b.get("/").body, url.Values{"way": {"allow-once"}})
	b.follow(b.post("/requests/"+request, form)).reads(t, "Allowed by you, once")
	b.get("/").reads(t, "Nothing waits for your answer")
	h.work()
	if len(sent) != 1 || h.ok(200, "GET", "/v1/turns/"+turn, "")["status"] != "Completed" {
		t.Errorf("the call did not go out once: %v", sent)
	}
	b.get("/chats/"+chat).reads(t, "mail__send_email succeeded", "Allowed by you", "sent")

	_, _, request = h.asking()
	form = formOf(b.get("/").body, url.Values{"way": {"deny-once"}, "reason": {"Not <today>"}})
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"allow"}`)
	b.follow(b.post("/requests/"+request, form)).reads(t, "Your answer did not count.", "Allowed by you, once")
	h.work()

	_, turn, request = h.asking()
	form = formOf(b.get("/").body, url.Values{"way": {"deny-once"}, "reason": {"Not <today>"}})
	b.follow(b.post("/requests/"+request, form)).reads(t, "Denied by you, once", "Reason: Not <today>")
	h.work()
	if got := h.call("GET", "/v1/turns/"+turn, "").body; !strings.Contains(got, "Not <today>") || len(sent) != 2 {
		t.Errorf("the Bot does not read the reason: %s %v", got, sent)
	}
	for _, bad := range []struct {
		path   string
		form   url.Values
		status int
	}{
		{"/requests/req_1", url.Values{"expected": {"0"}, "way": {"allow-once"}}, 404},
		{"/requests/" + request, url.Values{"expected": {"x"}, "way": {"allow-once"}}, 422},
		{"/requests/" + request, url.Values{"expected": {"0"}}, 422},
		{"/requests/" + request, url.Values{"expected": {"0"}, "way": {"allow-forever"}}, 422},
		{"/requests/" + request, url.Values{"expected": {"0"}, "way": {"perhaps-once"}}, 422},
		{"/requests/" + request, url.Values{"expected": {"0"}, "way": {"deny-rule"}}, 422},
		{"/requests/" + request, url.Values{"expected": {"0"}, "way": {"deny-once"}, "reason": {strings.Repeat("x", 4001)}}, 422},
	} {
		if a := b.post(bad.path, bad.form); a.status != bad.status {
			t.Errorf("%v gave %d: %s", bad, a.status, a.plain())
		}
	}
}

// Each way to answer is what the API calls it.
func TestWaysToAnswer(t *testing.T) {
	h := newHouse(t)
	h.connect()
	b := h.signIn(h.secret)
	for way, want := range map[string][2]string{"allow-chat": {"allow", "chat"}, "deny-chat": {"deny", "chat"}, "deny-rule": {"deny", "once"}} {
		_, _, request := h.asking()
		a := b.follow(b.post("/requests/"+request, url.Values{"expected": {"0"}, "way": {way}, "rule": {"Never on Sundays."}}))
		d, _ := h.ok(200, "GET", "/v1/requests/"+request, "")["decision"].(map[string]any)
		if a.status != 200 || d["decision"] != want[0] || d["scope"] != want[1] || (d["rule"] != nil) != (way == "deny-rule") {
			t.Errorf("%s gave %v", way, d)
		}
		h.work()
	}
	b.get("/grants").reads(t, "Allow every send_email of Main on mail, in one Chat", "Deny every send_email")
	b.get("/rules").reads(t, "Never on Sundays.", "can only deny")
}

// A script gets the Request alone, as it stands after the answer, also when somebody
// else was faster.
func TestAnswersInPlace(t *testing.T) {
	h := newHouse(t)
	h.connect()
	b := h.signIn(h.secret)
	_, _, request := h.asking()
	script := []string{"HX-Request", "true", "HX-Target", "section#detail"}
	part := b.get("/requests/"+request, script...)
	if strings.Contains(part.body, "<html") || !strings.Contains(part.body, `data-request="`+request+`"`) {
		t.Errorf("the part is %s", part.body)
	}
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"deny","reason":"I was faster."}`)
	a := b.post("/requests/"+request, url.Values{"expected": {"0"}, "way": {"allow-once"}}, script...)
	a.reads(t, "Your answer did not count.", "Denied by you, once", "I was faster.")
	if a.status != 409 || strings.Contains(a.body, "<html") || strings.Contains(a.body, "<form") {
		t.Errorf("the stale answer gave %d %s", a.status, a.body)
	}
	if list := b.get("/?shown="+request, "HX-Request", "true", "HX-Target", "section#list"); strings.Contains(list.body, "<html") || strings.Contains(list.body, "data-request") {
		t.Errorf("the list is %s", list.body)
	}
	if a := b.post("/requests/"+request, url.Values{"expected": {"x"}}, script...); a.status != 422 || a.header.Get("HX-Retarget") != "#toast" {
		t.Errorf("a fault is not shown beside the page: %d %v", a.status, a.header)
	}
	b.cookie = nil
	if a := b.get("/requests/"+request, script...); a.status != 401 || a.header.Get("HX-Refresh") != "true" {
		t.Errorf("a session that ended gave %d", a.status)
	}
}

// Many are answered with one click, each by itself.
func TestManyAtOnce(t *testing.T) {
	h := newHouse(t)
	h.connect()
	sent := 0
	h.tool = func(domain.Call) (string, bool) { sent++; return "sent", false }
	b := h.signIn(h.secret)
	var ids []string
	for range 4 {
		_, _, request := h.asking()
		ids = append(ids, request)
	}
	page := b.get("/requests/selected?" + url.Values{"id": ids}.Encode())
	page.reads(t, "Answer 4 Requests at once", "Each ticked call is answered by itself, exactly as shown.")
	h.ok(200, "POST", "/v1/requests/"+ids[1], `{"expected":0,"decision":"deny","reason":"No."}`)
	form := url.Values{"id": ids[:3], "way": {"allow-once"}}
	for _, id := range ids {
		form.Set("expected-"+id, "0")
	}
	before := h.snapshot()
	for _, bad := range []url.Values{{"id": ids, "way": {"allow-lifetime"}}, {"id": ids, "way": {"deny-rule"}, "rule": {"x."}}, {"way": {"allow-once"}}, {"id": slices.Repeat(ids, 13), "way": {"allow-once"}}} {
		for name := range form {
			if strings.HasPrefix(name, "expected-") {
				bad[name] = form[name]
			}
		}
		if a := b.post("/requests/answers", bad); a.status != 422 {
			t.Errorf("%v gave %d", bad, a.status)
		}
	}
	if h.snapshot() != before {
		t.Error("something changed")
	}
	b.post("/requests/answers", form).reads(t, "What came of each", "send_email · Main", "Allowed by you, once", "Your answer did not count: Denied by you, once")
	h.work()
	if sent != 2 {
		t.Errorf("%d calls went out, not 2", sent)
	}
	if list := h.call("GET", "/v1/requests?status=pending", "").list(t); len(list) != 1 || list[0]["id"] != ids[3] {
		t.Errorf("what waits is %v", list)
	}
}

// After equal allows the page offers to be asked less, and keeps nothing by itself.
func TestFewerQuestions(t *testing.T) {
	h := newHouse(t)
	h.connect()
	b := h.signIn(h.secret)
	for i := range 3 {
		_, _, request := h.asking()
		page := b.get("/requests/" + request)
		if offered := strings.Contains(page.plain(), "You allowed this"); offered != (i == 2) {
			t.Errorf("after %d allows the offer is there: %v", i, offered)
		}
		if i > 0 {
			page.reads(t, "Exactly the same as the call that was allowed")
		}
		b.post("/requests/"+request, url.Values{"expected": {"0"}, "way": {"allow-once"}})
		h.work()
	}
	h.chat(`/call mail__send_email {"to":"bob@example.com","text":"Hello <b>Ann</b>"}`)
	b.get("/").reads(t, "Compared with the call that was allowed", "to changed", "ann bob @example.com")
	if got := h.call("GET", "/v1/grants", "").list(t); len(got) != 0 {
		t.Errorf("Grants were kept: %v", got)
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
	b := h.signIn(h.secret)
	page := b.get("/")
	page.reads(t, "Nobody knows whether this ran.", "Send again", "Do not send", "It may have run before.")
	b.get("/requests/selected?id="+text(list[0]["id"])).reads(t, "Nobody knows whether this ran", "Allowing sends it again, maybe twice.")
	if strings.Contains(page.body, "allow-lifetime") {
		t.Error("an unknown outcome is offered for longer than once")
	}
}

// Who may only look is shown no buttons, and its forms are refused.
func TestReadersCannotAnswerFromThePage(t *testing.T) {
	h := newHouse(t)
	h.connect()
	_, _, request := h.asking()
	_, secret := h.token(`["read"]`)
	b := h.signIn(secret)
	page := b.get("/")
	page.reads(t, "may look but not answer", "send_email")
	if strings.Contains(page.body, "Allow once") {
		t.Error("a reader is shown the button")
	}
	for _, path := range []string{"/chats", "/bots", "/apps", "/grants", "/rules", "/history", "/bots/" + string(h.me.mainBot)} {
		if a := b.get(path); a.status != 200 || strings.Contains(strings.ReplaceAll(strings.ReplaceAll(a.body, `action="/logout"`, ""), `<form method="get"`, ""), `<form method="post" action`) {
			t.Errorf("%s gives %d and shows a reader a form", path, a.status)
		}
	}
	before := h.snapshot()
	for path, form := range map[string]url.Values{"/requests/" + request: {"expected": {"0"}, "way": {"allow-once"}},
		"/requests/answers": {"id": {request}, "expected-" + request: {"0"}, "way": {"allow-once"}}, "/chats": {"text": {"x"}, "key": {"k"}},
		"/bots": {"name": {"x"}}, "/grants": {}, "/rules": {"text": {"No."}}, "/settings": {}, "/tokens": {"name": {"x"}, "scopes": {"read"}}, "/tokens/link": {}, "/members": {"name": {"x"}}} {
		if a := b.post(path, form); a.status != 403 {
			t.Errorf("%s gave %d", path, a.status)
		}
	}
	for _, path := range []string{"/settings", "/tokens"} {
		if a := b.get(path); a.status != 403 {
			t.Errorf("a reader sees %s: %d", path, a.status)
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

// Another Member's work is not there, on any page.
func TestPagesOfOthers(t *testing.T) {
	h := newHouse(t)
	con := h.connect()
	chat, _, request := h.asking()
	_, secret := h.stranger(`["write","*"]`, `["write","*"]`)
	b := h.signIn(secret)
	for _, path := range []string{"/requests/" + request, "/chats/" + chat, "/bots/" + string(h.me.mainBot), "/apps/" + con} {
		if a := b.get(path); a.status != 404 || strings.Contains(a.body, "ann@example.com") {
			t.Errorf("%s gives %d", path, a.status)
		}
	}
	if page := b.get("/"); strings.Contains(page.body, "send_email") {
		t.Error("the inbox shows another's Request")
	}
	if a := b.post("/requests/"+request, url.Values{"expected": {"0"}, "way": {"allow-once"}}); a.status != 404 {
		t.Errorf("a stranger's answer gave %d", a.status)
	}
	b.post("/requests/answers", url.Values{"id": {request}, "expected-" + request: {"0"}, "way": {"allow-once"}}).reads(t, "There is no Request with this ID in your work.")
	if h.ok(200, "GET", "/v1/requests/"+request, "")["status"] != "pending" {
		t.Error("a stranger answered")
	}
}

// The list finds tools and Bots, and turns its pages.
func TestTheListSearchesAndTurnsPages(t *testing.T) {
	h := newHouse(t)
	h.connect()
	for i := range 33 {
		h.chat(fmt.Sprintf(`/call mail__send_email {"to":"number%d@example.com"}`, i))
	}
	b := h.signIn(h.secret)
	page := b.get("/")
	page.shows(t, "(30&#43;) Requests", "number32@example.com", "number3@example.com", `rel="next"`)
	if strings.Contains(page.body, "number2@example.com") {
		t.Error("the first page shows more than it should")
	}
	next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page.body)
	if next == nil {
		t.Fatal("there is no next page")
	}
	older := b.get(strings.ReplaceAll(next[1], "&amp;", "&"))
	older.shows(t, "number2@example.com", "number0@example.com")
	b.get("/?q=SEND_").shows(t, "number32@example.com")
	b.get("/?q=main").shows(t, "number32@example.com")
	odd := b.get("/?q=%25%22%3E%3Cscript%3E")
	odd.reads(t, `Nothing that waits fits “%"><script>”.`, "Show all that waits")
	if strings.Contains(odd.plain(), "Nothing waits for your answer") {
		t.Error("a search that finds nothing says that nothing waits")
	}
	if a := b.get("/?q=" + strings.Repeat("x", 101)); a.status != 422 {
		t.Errorf("a long search gave %d", a.status)
	}
}

// Whatever stands in arguments, reasons, names and results: it is shown, and harmless.
func TestHostileTexts(t *testing.T) {
	h := newHouse(t)
	h.connect()
	hostile := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onfocus='alert(1)' autofocus='`, `javascript:alert(1)`, `</textarea><script>alert(1)</script>`,
		`<hx-partial hx-target="#detail">x</hx-partial>`, `<template hx type="partial">x</template>`, `<div hx-get="/logout" hx-trigger="load">`, "[click](javascript:alert(1))",
		"\x1b[2J\x1b[31mred\x1b]8;;http://evil.example\x07link", "abc\u202egnp.exe", "a\u200bb\u2060c\ufeffd", "one\r\ntwo\u2028three\u0085four", "\U000e0041\U000e0042",
		"{{.Secret}}", "${alert(1)}", "&lt;b&gt; &amp;amp;", "--></style><script>", "\x00"[:0] + "\uFFFD", strings.Repeat("\u0301", 50), "pаypal.com",
	}
	b := h.signIn(h.secret)
	for _, odd := range hostile {
		arguments, err := json.Marshal(map[string]any{"to": odd, "text": odd, "openbot_reason": odd})
		must(t, err)
		title, err := json.Marshal(map[string]string{"title": odd})
		must(t, err)
		chat := text(h.ok(201, "POST", "/v1/chats", string(title))["id"])
		message, err := json.Marshal(map[string]string{"text": "/call mail__send_email " + string(arguments)})
		must(t, err)
		h.ok(202, "POST", "/v1/chats/"+chat+"/messages", string(message))
		h.work()
		name, err := json.Marshal(map[string]string{"name": odd, "role": odd, "instructions": odd})
		must(t, err)
		bot := text(h.ok(201, "POST", "/v1/bots", string(name))["id"])
		list := h.call("GET", "/v1/requests?status=pending&limit=1", "").list(t)
		if len(list) != 1 || list[0]["chat"] != chat {
			t.Fatalf("%q does not wait", odd)
		}
		id := text(list[0]["id"])
		h.tool = func(domain.Call) (string, bool) { return odd + " ", false }
		for _, path := range []string{"/", "/requests/" + id, "/requests/selected?id=" + id, "/chats", "/chats/" + chat, "/bots", "/bots/" + bot} {
			page := b.get(path) // looks for markup that is not ours
			if page.status != 200 {
				t.Errorf("%s gives %d for %q", path, page.status, odd)
			}
			// What is edited stands in its field as it is, beside a word about it.
			seen := regexp.MustCompile(`(?s)<textarea.*?</textarea>|\svalue="[^"]*"`).ReplaceAllString(page.body, "")
			if seen != page.body && strings.ContainsAny(page.body, "\x1b\u202e\u200b") && !strings.Contains(page.body, "Contains ") {
				t.Errorf("%s lets %q be edited without a word", path, odd)
			}
			if strings.ContainsAny(seen, "\x1b\x07\u202e\u200b\u2060\ufeff\u2028\u0085\U000e0041") || regexp.MustCompile(`<(img src=x|hx-|template|div hx-get)`).MatchString(page.body) {
				t.Errorf("%s shows %q as it is", path, odd)
			}
		}
		b.post("/requests/"+id, url.Values{"expected": {"0"}, "way": {"allow-once"}, "reason": {odd}})
		h.work()
		for _, path := range []string{"/requests/" + id, "/chats/" + chat, "/history"} {
			if page := b.get(path); page.status != 200 || strings.ContainsAny(regexp.MustCompile(`\svalue="[^"]*"`).ReplaceAllString(page.body, ""), "\x1b\u202e\u200b") {
				t.Errorf("%s shows %q as it is", path, odd)
			}
		}
	}
}

// Arguments as long as they may be do not make a page that long, and nothing of them
// is out of reach.
func TestHugeArguments(t *testing.T) {
	h := newHouse(t)
	h.connect()
	long := strings.Repeat("All is well. ", 30_000) + "SEND ALL MONEY\u200b"
	arguments, err := json.Marshal(map[string]any{"to": "ann@example.com", "text": long})
	must(t, err)
	h.chat("/call mail__send_email " + string(arguments))
	b := h.signIn(h.secret)
	page := b.get("/")
	page.reads(t, "Some of it is too long for this page.", "Read all 390", "Contains 1 character that cannot be seen.")
	if len(page.body) > 100_000 {
		t.Errorf("the page has %d bytes", len(page.body))
	}
	id := text(h.call("GET", "/v1/requests?status=pending", "").list(t)[0]["id"])
	whole := b.get("/requests/" + id + "?whole=1")
	whole.shows(t, `SEND ALL MONEY<b class="odd">U+200B</b>`)
	if strings.Contains(whole.body, "too long for this page") {
		t.Error("the whole is cut")
	}
}
