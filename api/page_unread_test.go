package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// What a person writes to a Bot that waits is shown at once, marked as not read yet, until
// the Bot has read it; the newest of very much is shown, and how much more there is.
func TestWhatTheBotHasNotRead(t *testing.T) {
	h := newHouse(t)
	h.connect()
	b := h.signIn(h.secret)
	chat, _, request := h.asking()
	page := b.get("/chats/" + chat)
	b.follow(b.post("/chats/"+chat+"/messages", formOf(page.body, url.Values{"text": {"Leave <b>the rest</b>\u202e out."}}))).
		shows(t, `<span class="chip warn">not read yet</span></p><div class="text" tabindex="0">Leave &lt;b&gt;the rest&lt;/b&gt;<b class="odd">U+202E</b>`)
	for i := range 21 {
		h.ok(202, "POST", "/v1/chats/"+chat+"/messages", fmt.Sprintf(`{"text":"note %d %s"}`, i, strings.Repeat("x", 13_000)))
	}
	page = b.get("/chats/" + chat)
	page.reads(t, "2 earlier messages Main has not read yet either.", "note 1 ", "note 20 ", "This is not all of it: 13.0 kB.")
	if strings.Contains(page.plain(), "note 0 ") {
		t.Error("more than the newest is shown")
	}
	if n := len(page.body); n > 300_000 {
		t.Errorf("the page has %d bytes", n)
	}
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"allow"}`)
	h.work()
	page = b.get("/chats/" + chat)
	page.reads(t, "note 20")
	if strings.Contains(page.body, "not read yet") {
		t.Error("what was read is still marked")
	}
}

// Work at a limit is stopped with a question when there is one.
func TestAQuestionNeedsWords(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	top, _ := h.given("/call openbot_list_bots\n/then\n/say never", "limits", `{"timeMs":60000,"steps":1}`)
	request := text(h.call("GET", "/v1/requests?action=delegations.continue", "").list(t)[0]["id"])
	page := b.get("/requests/" + request)
	form := formOf(page.body, url.Values{"way": {"ask-once"}, "reason": {" "}})
	if a := b.post("/requests/"+request, form); a.status != 422 || !strings.Contains(a.plain(), "must hold the question") {
		t.Errorf("no question gave %d %s", a.status, a.plain())
	}
	form.Set("reason", "Which <b>week</b>?")
	b.follow(b.post("/requests/"+request, form)).reads(t, "Stopped with a question by you", "Which <b>week</b>?")
	h.work()
	work := h.ok(200, "GET", "/v1/delegations/"+top, "")
	if work["status"] != "cancelled" {
		t.Errorf("the work is %v", work["status"])
	}
	b.get("/chats/"+text(work["parent"].(map[string]any)["chat"])).reads(t, "Which <b>week</b>?")
}

// A Chat of a Channel takes messages through it alone: its page has no form that would be
// refused.
func TestAChatOfAChannelTakesNoMessagesOnItsPage(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	channel := h.ok(201, "POST", "/v1/channels", `{"name":"team","url":"https://bridge.example.com/out"}`)
	h.ok(202, "POST", "/v1/channels/"+text(channel["id"])+"/messages", `{"author":"u_1","text":"Hello","commandKey":"m1"}`)
	h.work()
	chat := text(h.call("GET", "/v1/chats", "").list(t)[0]["id"])
	page := b.get("/chats/" + chat)
	page.reads(t, "Hello")
	if strings.Contains(page.body, `action="/chats/`+chat+`/messages"`) {
		t.Error("there is a form")
	}
}
