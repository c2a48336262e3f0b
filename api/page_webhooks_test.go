package api_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"openbot/domain"
)

const webhookSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// A person says where and when to be told, changes it and takes it away, without a script;
// a signing secret is shown once, and no page shows an address that is a secret.
func TestWebhooksOnPages(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	page := b.get("/webhooks")
	page.reads(t, "Nobody is told outside of this inbox", "Be told", "E-mail, Slack and ntfy need the address of this inbox for their links: the server’s operator sets OPENBOT_PUBLIC_URL.")
	page.shows(t, `<option value="email" disabled>`, `<option value="standard" selected>`)
	form := formOf(page.body, url.Values{"format": {"standard"}, "url": {"https://hooks.example/in?key=sesame"}, "event": {"request.pending", "delegation.ended"}})
	made := b.post("/webhooks", form)
	secret := regexp.MustCompile(`<code id="secret">(whsec_[^<]+)</code>`).FindStringSubmatch(made.body)
	if secret == nil {
		t.Fatalf("the secret is not shown: %s", made.plain())
	}
	made.reads(t, "https://hooks.example/in is told from now on.", "Signed messages to a program: a Request waits for an answer, given work ended")
	again := b.follow(b.post("/webhooks", form))
	list := h.call("GET", "/v1/webhooks", "").list(t)
	if strings.Contains(again.body, secret[1]) || len(list) != 1 {
		t.Errorf("the same form made another, or shows the secret again: %v", list)
	}
	if strings.Contains(again.body, "sesame") {
		t.Error("the list shows a secret of the address")
	}
	id := text(list[0]["id"])
	page = b.get("/webhooks/" + id)
	page.reads(t, "Told by Signed messages to a program", "Of your work", "No message was made yet.", "New signing secret", "Take it away?")
	if strings.Contains(page.body, "sesame") || strings.Contains(page.body, secret[1]) {
		t.Error("the page shows a secret")
	}

	// Saving what is there changes nothing; what is said is changed.
	before := h.ok(200, "GET", "/v1/webhooks/"+id, "")
	form = fieldsOf(page.body)
	b.follow(b.post("/webhooks/"+id, form)).reads(t, "Saved.")
	after := h.ok(200, "GET", "/v1/webhooks/"+id, "")
	if fmt.Sprint(after["events"], after["url"], after["enabled"], after["organization"]) != fmt.Sprint(before["events"], before["url"], before["enabled"], before["organization"]) {
		t.Errorf("saving what is there gave %v, before it was %v", after, before)
	}
	form.Set("url", "https://hooks.example/other")
	form["event"] = []string{"request.decided"}
	form.Set("organization", "true")
	form.Set("secret", webhookSecret)
	form.Del("enabled")
	b.follow(b.post("/webhooks/"+id, form)).reads(t, "https://hooks.example/other", "off", "a Request was answered or cancelled", "the work of the whole organization")
	for name, value := range map[string]string{"url": "ftp://x", "event": "turn.status", "secret": "short"} {
		wrong := fieldsOf(b.get("/webhooks/" + id).body)
		wrong.Set(name, value)
		if a := b.post("/webhooks/"+id, wrong); a.status != 422 {
			t.Errorf("%s=%q gave %d", name, value, a.status)
		}
	}
	none := fieldsOf(b.get("/webhooks/" + id).body)
	none.Del("event")
	if a := b.post("/webhooks/"+id, none); a.status != 422 {
		t.Errorf("no event gave %d", a.status)
	}
	b.follow(b.post("/webhooks/"+id+"/delete", nil)).reads(t, "Nobody is told outside of this inbox")
	if a := b.get("/webhooks/" + id); a.status != 404 {
		t.Errorf("a deleted one gave %d", a.status)
	}
}

// People are told by e-mail, Slack and ntfy where the server is set up for it: a plain
// address is one, and what lets others write to a place is never shown.
func TestPeopleAreToldByWhatIsSetUp(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	h.engine.PublicURL = "https://inbox.example"
	b.get("/webhooks").reads(t, "E-mail needs a mail server: the server’s operator sets OPENBOT_SMTP_URL and OPENBOT_MAIL_FROM.")
	h.engine.MailDomain = "example.com"
	page := b.get("/webhooks")
	page.shows(t, `<option value="email" selected>`)
	if strings.Contains(page.plain(), "operator sets") {
		t.Error("the page says that something is missing")
	}
	for format, address := range map[string]string{"email": " ann@example.com ", "slack": "https://hooks.slack.example/services/T0/sesame", "ntfy": "https://ntfy.example/my-topic?auth=sesame"} {
		a := b.post("/webhooks", formOf(b.get("/webhooks").body, url.Values{"format": {format}, "url": {address}, "event": {"request.pending"}}))
		b.follow(a)
	}
	page = b.get("/webhooks")
	page.reads(t, "ann@example.com", "E-mail: a Request waits for an answer", "hooks.slack.example", "my-topic on ntfy.example")
	if strings.Contains(page.body, "sesame") {
		t.Error("the page shows a secret of an address")
	}
	for _, w := range h.call("GET", "/v1/webhooks", "").list(t) {
		page := b.get("/webhooks/" + text(w["id"]))
		if strings.Contains(page.body, "sesame") || strings.Contains(page.body, `name="secret"`) {
			t.Errorf("the page of %v shows a secret, or asks for one", w["format"])
		}
		if w["format"] == "email" {
			form := fieldsOf(page.body)
			form.Set("url", "bob@example.com")
			b.follow(b.post("/webhooks/"+text(w["id"]), form)).reads(t, "bob@example.com")
		}
	}
	if a := b.post("/webhooks", formOf(page.body, url.Values{"format": {"email"}, "url": {"no address"}, "event": {"request.pending"}, "key": {"k2"}})); a.status != 422 {
		t.Errorf("no address gave %d", a.status)
	}
}

// What became of each message is shown, with the way to what it tells of; a dead one is sent
// again.
func TestMessagesOnPages(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	id := text(h.ok(201, "POST", "/v1/webhooks", `{"url":"https://hooks.example/in","events":["request.pending","delegation.paused"]}`)["id"])
	h.receives = func(domain.HookMessage) int { return 500 }
	h.connect()
	_, _, request := h.asking()
	top, _ := h.given("/call openbot_list_bots\n/then\n/say never", "limits", `{"timeMs":60000,"steps":1}`)
	page := b.get("/webhooks/" + id)
	page.reads(t, "a Request waits for an answer", "given work reached a limit", "pending after 1 try", "HTTP status 500", "next try")
	page.shows(t, `<a href="/requests/`+request+`">`, `<a href="/work/`+top+`">`)
	dead := h.deadLetter(id, "")
	page = b.get("/webhooks/" + id + "?status=dead")
	page.reads(t, "dead after 7 tries", "Send again")
	b.get("/webhooks/"+id+"?status=delivered").reads(t, "No message is delivered.")
	b.get("/webhooks/"+id+"?status=odd").reads(t, "dead after 7 tries")
	resend := "/webhooks/" + id + "/deliveries/" + dead + "/resend"
	for range 2 { // the second time by a slow hand: it shows what came of the first
		b.follow(b.post(resend, nil)).reads(t, "pending")
	}
	if got := h.call("GET", "/v1/webhooks/"+id+"/deliveries?status=dead", "").list(t); len(got) != 0 {
		t.Errorf("it is not sent again: %v", got)
	}
	for range 55 {
		h.deadLetter(id, "")
		h.clock.advance(time.Second)
	}
	page = b.get("/webhooks/" + id + "?status=dead")
	next := regexp.MustCompile(`<a rel="next" href="([^"]+)"`).FindStringSubmatch(page.body)
	if next == nil {
		t.Fatal("there is no next page")
	}
	b.get(strings.ReplaceAll(next[1], "&amp;", "&")).reads(t, "dead after 7 tries")

	// The link of a message to people leads to the work.
	a := b.get("/work/" + top)
	b.follow(a).reads(t, "limit of steps")
	for _, path := range []string{"/work/dlg_1", "/work/dlg_00000000000000000000000000000000"} {
		if a := b.get(path); a.status != 404 {
			t.Errorf("%s gave %d", path, a.status)
		}
	}
}

// Nobody sees, changes or hears through what is another's; an admin's of the organization is
// for admins, and says who made it.
func TestWebhooksOfOthersOnPages(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	mine := text(h.ok(201, "POST", "/v1/webhooks", `{"url":"https://hooks.example/mine","events":["request.pending"]}`)["id"])
	whole := text(h.ok(201, "POST", "/v1/webhooks", `{"url":"https://hooks.example/all","events":["request.pending"],"organization":true}`)["id"])
	dead := h.deadLetter(mine, "")
	_, secret := h.stranger(`["write","*"]`, `["write"]`)
	o := h.signIn(secret)
	page := o.get("/webhooks")
	page.reads(t, "Nobody is told outside of this inbox")
	if strings.Contains(page.body, `name="organization"`) {
		t.Error("the whole organization is offered to somebody who is no admin")
	}
	for _, id := range []string{mine, whole} {
		if a := o.get("/webhooks/" + id); a.status != 404 {
			t.Errorf("the page of another's gave %d", a.status)
		}
		for _, path := range []string{"", "/delete", "/deliveries/" + dead + "/resend"} {
			if a := o.post("/webhooks/"+id+path, url.Values{"key": {"k"}, "event": {"request.pending"}}); a.status != 404 {
				t.Errorf("%s of another's gave %d", path, a.status)
			}
		}
	}
	form := formOf(page.body, url.Values{"format": {"standard"}, "url": {"https://hooks.example/hers"}, "event": {"request.pending"}, "organization": {"true"}})
	if a := o.post("/webhooks", form); a.status != 403 {
		t.Errorf("hearing of the whole organization gave %d", a.status)
	}
	_, other := h.stranger(`["admin","*"]`, `["admin"]`)
	h.signIn(other).get("/webhooks").reads(t, "https://hooks.example/all", "of the whole organization; made by another Member")
	_, reader := h.stranger(`["read"]`, `["read"]`)
	r := h.signIn(reader)
	if page := r.get("/webhooks"); strings.Contains(page.body, `action="/webhooks"`) {
		t.Error("a reader is offered to make one")
	}
	if a := r.post("/webhooks", form); a.status != 403 {
		t.Errorf("a reader's form gave %d", a.status)
	}
	if a := b.post("/webhooks", form, "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("a form of another site gave %d", a.status)
	}
	if a := (&browser{h: h, cookie: b.cookie, token: "x"}).post("/webhooks/"+mine+"/delete", nil); a.status != 403 {
		t.Errorf("a form without the token of the session gave %d", a.status)
	}
}
