package api_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

const oddTask = "<script>alert(1)</script>\u202egnp.exe"

// The tree of work is opened layer by layer, says how much of each limit was used, and
// which limit paused it.
func TestWorkOnPages(t *testing.T) {
	h := newHouse(t)
	h.connect()
	b := h.signIn(h.secret)
	b.get("/work").reads(t, "No Bot gave work to another yet.")
	inner := delegating(t, "/call mail__send_email {\"to\":\"ann@example.com\"}\n"+oddTask)
	top, _ := h.given(inner+"\n/call openbot_list_bots\n/then\n/say never", "limits", `{"timeMs":60000,"steps":1,"budgetMicros":9}`, "reason", `"<b>quick</b>"`)
	work := h.ok(200, "GET", "/v1/delegations/"+top, "")
	chat, task := text(work["parent"].(map[string]any)["chat"]), text(work["chat"])
	h.clock.advance(time.Hour)

	page := b.get("/work")
	page.reads(t, "Given by A Chat", "paused Main", "1 of 1 used Limit reached", "$0 of $0.000009 used", "of 60 s used", "Paused: it reached its limit of steps.", "Open its Request", "<b>quick</b>")
	page.shows(t, `<progress max="1" value="1" aria-label="Steps: 1 of 1 used" class="full">`)
	if strings.Contains(page.plain(), "Paused with work above it") {
		t.Error("the layer below is shown before it is opened")
	}
	open := regexp.MustCompile(`href="(/work\?open=` + top + `)#` + top + `"`).FindStringSubmatch(page.body)
	if open == nil {
		t.Fatalf("there is no way to the layer below: %s", page.body)
	}
	below := text(h.call("GET", "/v1/chats/"+task+"/delegations", "").list(t)[0]["id"])
	page = b.get(open[1])
	page.reads(t, "Paused with work above it, of Main, which reached its limit of steps. Show that work", "Hide the work below")
	page.shows(t, `<a href="/work?chat=`+chat+`#`+top+`">Show that work</a>`, `<li id="`+below+`">`, "&lt;script&gt;alert(1)&lt;/script&gt;<b class=\"odd\">U+202E</b>")
	if strings.Contains(page.body, "\u202e") {
		t.Error("a character that turns text around stands in the page")
	}
	b.get("/work?chat="+chat).reads(t, "All work", "Given by A Chat", "paused Main")
	b.get("/work?chat="+chat+"&open="+top+"&open="+below+"&open=x").reads(t, "It gave no work away.")
	b.get("/work?chat="+chat+"&below="+top).reads(t, "This Chat gave no work.")
	if part := b.get("/work", "HX-Request", "true", "HX-Target", "div#work"); strings.Contains(part.body, "<html") || !strings.Contains(part.body, top) {
		t.Errorf("the part is %s", part.body)
	}
	b.get("/chats/"+chat).reads(t, "Work that it gave", "paused Main", "All that it gave: 1 piece of work")
	b.get("/chats/"+task).reads(t, "The work of this Chat", "1 of 1 used", "Work that it gave", "Paused with work above it")
	if strings.Contains(b.get("/chats/"+task).plain(), "It waits for a decision.") {
		t.Error("paused work is shown as waiting for what it asked before")
	}

	// The Request shows the limit and what was used, and takes instructions.
	request := text(h.call("GET", "/v1/requests?action=delegations.continue", "").list(t)[0]["id"])
	page = b.get("/requests/" + request)
	page.reads(t, "Main wants to go on past its limit", "The work, as it stands now", "1 of 1 used", "The limits, and what was used when it asked", "usage.steps",
		"Instructions or reason", "Allow once: the work goes on, and its limits are counted anew.", "Stop and ask: the work is stopped")
	b.post("/requests/"+request, formOf(page.body, url.Values{"way": {"allow-once"}, "reason": {"Use the <short> list."}}))
	h.work()
	if got := h.call("GET", "/v1/chats/"+task+"/items", "").body; !strings.Contains(got, `Use the \u003cshort\u003e list.`) && !strings.Contains(got, "Use the <short> list.") {
		t.Errorf("the work does not read the instructions: %s", got)
	}
	b.get("/work").reads(t, "1 of 1 used, 2 in all")

	// Work that goes on says what it waits for.
	page = b.get("/chats/" + text(h.ok(200, "GET", "/v1/delegations/"+below, "")["chat"]))
	page.reads(t, "running Main", "It waits for a decision. Open its Request")

	// A person instructs it, and stops it with all below.
	b.post("/chats/"+task+"/messages", formOf(b.get("/work").body, url.Values{"text": {"Hurry."}}))
	if got := h.call("GET", "/v1/chats/"+task+"/items", "").body; !strings.Contains(got, "Hurry.") {
		t.Errorf("the work does not get the message: %s", got)
	}
	page = b.get(open[1])
	page.reads(t, "Stop this work and all work below it?")
	stopped := b.post("/work/"+top+"/cancel", formOf(page.body, url.Values{"open": {top}}))
	if got := stopped.header.Get("Location"); got != "/work?open="+top+"#"+top {
		t.Errorf("the cancel leads to %s", got)
	}
	h.work()
	if got := h.ok(200, "GET", "/v1/delegations/"+below, "")["status"]; got != "cancelled" {
		t.Errorf("the work below is %v", got)
	}
	page = b.follow(stopped)
	page.reads(t, "cancelled Main", "A person stopped it.", "Give it more to do")
	if strings.Contains(page.plain(), "Stop it") {
		t.Error("ended work can be stopped")
	}
	for path, want := range map[string]int{"/work/" + top + "/cancel": 409, "/work/dlg_1/cancel": 404} {
		if a := b.post(path, url.Values{"key": {"k"}}); a.status != want {
			t.Errorf("%s gave %d", path, a.status)
		}
	}
	if a := b.post("/work/"+top+"/cancel", nil); a.status != 422 {
		t.Errorf("a cancel without a key gave %d", a.status)
	}
	if a := b.get("/work?chat=chat_00000000000000000000000000000000"); a.status != 404 {
		t.Errorf("a Chat that is not there gave %d", a.status)
	}
}

// Work of another Member is on no page, and nobody else stops it.
func TestWorkOfOthersOnPages(t *testing.T) {
	h := newHouse(t)
	h.connect()
	id, _ := h.given(`/call mail__send_email {"to":"ann@example.com"}`)
	chat := text(h.ok(200, "GET", "/v1/delegations/"+id, "")["parent"].(map[string]any)["chat"])
	_, secret := h.stranger(`["admin","*"]`, `["admin","*"]`)
	b := h.signIn(secret)
	b.get("/work").reads(t, "No Bot gave work to another yet.")
	for _, path := range []string{"/work?chat=" + chat, "/chats/" + chat} {
		if a := b.get(path); a.status != 404 {
			t.Errorf("%s gave %d", path, a.status)
		}
	}
	if a := b.post("/work/"+id+"/cancel", url.Values{"key": {"k"}}); a.status != 404 {
		t.Errorf("the cancel gave %d", a.status)
	}
	_, reader := h.token(`["read"]`)
	r := h.signIn(reader)
	if page := r.get("/work"); !strings.Contains(page.body, id) || strings.Contains(page.plain(), "Stop it") {
		t.Errorf("a reader sees %s", page.plain())
	}
	if a := r.post("/work/"+id+"/cancel", url.Values{"key": {"k"}}); a.status != 403 {
		t.Errorf("a reader stops work: %d", a.status)
	}
}

// What a Bot wants to give is shown whole before it may, with its limits.
func TestARequestToGiveWorkOnItsPage(t *testing.T) {
	h := newHouse(t)
	bot := text(h.ok(201, "POST", "/v1/bots", `{"name":"Writer","role":"Writes.","instructions":"","shared":true}`)["id"])
	h.given("/say written\n"+oddTask, "bot", `"`+bot+`"`, "reason", `"It writes."`, "limits", `{"timeMs":7200000,"steps":12,"budgetMicros":2500000}`)
	request := text(h.call("GET", "/v1/requests?action=bots.delegate", "").list(t)[0]["id"])
	b := h.signIn(h.secret)
	page := b.get("/requests/" + request)
	page.reads(t, "Main wants to give work to Writer", "authorizing Writer", "/say written", "0 s of 2 hours used", "0 of 12 used", "$0 of $2.50 used", "Allow once: this work starts, within its limits")
	page.shows(t, "&lt;script&gt;alert(1)&lt;/script&gt;<b class=\"odd\">U+202E</b>")
	if strings.Contains(page.plain(), "would be sent") {
		t.Error("work that would start is said to be sent")
	}
	b.get("/requests/selected?id="+request).reads(t, "Allow once: this work starts, within its limits", "Deny: the work does not start.")
	b.get("/work").reads(t, "authorizing Writer", "It waits for the decision whether it may be given. Open its Request")
	b.post("/requests/"+request, formOf(page.body, url.Values{"way": {"deny-once"}, "reason": {"Write it yourself."}}))
	h.work()
	b.get("/work").reads(t, "failed Writer", "Write it yourself.")
}
