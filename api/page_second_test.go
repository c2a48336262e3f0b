package api_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"openbot/domain"
)

// The second Member finds in the inbox what the person left open, whole and with the words
// for each answer, and answers it there; before its time it is not there.
func TestTheSecondMemberAnswersInTheInbox(t *testing.T) {
	h := newHouse(t)
	h.connect()
	member, secret := h.stranger(`["write","*"]`, `["write","*"]`)
	b := h.signIn(secret)
	h.ok(200, "PATCH", "/v1/settings", `{"escalation":{"afterMs":60000,"member":"`+member+`"}}`)
	_, turn, request := h.asking()
	b.get("/").reads(t, "Nothing waits for your answer")
	if a := b.get("/requests/" + request); a.status != 404 {
		t.Errorf("it is shown too early: %d", a.status)
	}
	h.clock.advance(time.Minute)
	must(t, h.engine.FollowUpRequest(t.Context(), domain.RequestID(request)))
	page := b.get("/requests/" + request)
	page.reads(t, "wants to use send_email on mail", "Allow once: only this call, exactly as shown.", "left it open")
	b.get("/").reads(t, "wants to use send_email on mail")
	form := formOf(page.body, url.Values{"way": {"allow-once"}})
	b.follow(b.post("/requests/"+request, form)).reads(t, "Allowed by you, once")
	h.work()
	if h.ok(200, "GET", "/v1/turns/"+turn, "")["status"] != "Completed" {
		t.Error("the work did not go on")
	}
	h.signIn(h.secret).get("/requests/"+request).reads(t, "Allowed by")
}

// A Request that waits for two Members leaves the open lists of both as it is answered,
// whoever answers it and also when its work is stopped; nobody else hears of it.
func TestAnAnswerLeavesBothInboxesLive(t *testing.T) {
	for name, end := range map[string]func(h *house, person, second *browser, chat, request string){
		"the person answers": func(h *house, person, _ *browser, _, request string) {
			form := formOf(person.get("/requests/"+request).body, url.Values{"way": {"deny-once"}})
			person.follow(person.post("/requests/"+request, form)).reads(h.t, "Denied by you")
		},
		"the second answers": func(h *house, _, second *browser, _, request string) {
			form := formOf(second.get("/requests/"+request).body, url.Values{"way": {"allow-once"}})
			second.follow(second.post("/requests/"+request, form)).reads(h.t, "Allowed by you")
		},
		"its work is stopped": func(h *house, person, _ *browser, chat, _ string) {
			person.follow(person.post("/chats/"+chat+"/interrupt", nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.connect()
			member, secret := h.stranger(`["write","*"]`, `["write","*"]`)
			person, second := h.signIn(h.secret), h.signIn(secret)
			h.ok(200, "PATCH", "/v1/settings", `{"escalation":{"afterMs":60000,"member":"`+member+`"}}`)
			chat, _, request := h.asking()
			h.clock.advance(time.Minute)
			server := httptest.NewServer(h.handler)
			t.Cleanup(server.Close)
			pages := map[string]*browser{"person": person, "second": second}
			streams := map[string]*reader{}
			for who, b := range pages {
				stream := h.open(server, "/live", "Cookie", b.cookie.String())
				late := time.AfterFunc(10*time.Second, func() { _ = stream.response.Body.Close() }) // what does not come ends the test
				t.Cleanup(func() { late.Stop() })
				streams[who] = stream
			}
			must(t, h.engine.FollowUpRequest(t.Context(), domain.RequestID(request)))
			if e := streams["second"].next(); e == nil || e.kind != "request.pending" || e.data["subject"] != request || e.data["secondMember"] != member {
				t.Fatalf("the second Member sees it come as %+v", e)
			}
			end(h, person, second, chat, request)
			for who, stream := range streams {
				e := stream.next()
				for e != nil && e.kind != "request.decided" {
					e = stream.next()
				}
				if e == nil || e.data["subject"] != request || e.data["status"] == "pending" {
					t.Errorf("the %s sees it go as %+v", who, e)
				}
				pages[who].get("/").reads(t, "Nothing waits for your answer")
			}
		})
	}
}

// What a second Member keeps is the person's: the words before the answer say who can
// revoke it, and it is so.
func TestWhatTheSecondMemberKeepsIsThePersons(t *testing.T) {
	h := newHouse(t)
	h.connect()
	member, secret := h.stranger(`["write","*"]`, `["write","*"]`)
	person, second := h.signIn(h.secret), h.signIn(secret)
	h.ok(200, "PATCH", "/v1/settings", `{"escalation":{"afterMs":60000,"member":"`+member+`"}}`)
	_, _, request := h.asking()
	h.clock.advance(time.Minute)
	must(t, h.engine.FollowUpRequest(t.Context(), domain.RequestID(request)))
	page := second.get("/requests/" + request)
	page.reads(t, "in every Chat, until the Member whose work it is revokes it or mail changes. You cannot revoke it yourself.",
		"in this Chat, until the Member whose work it is revokes it", "Only the Member whose work it is can take it away again.")
	if strings.Contains(page.plain(), "until you revoke it") {
		t.Error("the second Member is told of a right that it does not have")
	}
	person.get("/requests/"+request).reads(t, "in every Chat, until you revoke it or mail changes.")
	form := formOf(page.body, url.Values{"way": {"allow-lifetime"}})
	second.follow(second.post("/requests/"+request, form)).reads(t, "Allowed by you, until revoked", "Only the Member whose work it is can revoke it.")
	grants := h.call("GET", "/v1/grants", "").list(t)
	if len(grants) != 1 {
		t.Fatalf("kept %v", grants)
	}
	grant := text(grants[0]["id"])
	second.get("/grants").reads(t, "No Grant is in force")
	if a := second.post("/grants/"+grant+"/revoke", nil); a.status != 404 {
		t.Errorf("the second Member's revoking gave %d", a.status)
	}
	person.get("/grants").reads(t, "every send_email of Main on mail")
	person.follow(person.post("/grants/"+grant+"/revoke", nil)).reads(t, "No Grant is in force")
}
