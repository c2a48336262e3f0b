package api_test

import (
	"net/url"
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
