package api_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"openbot/domain"
)

var letters atomic.Int64

// deadLetter leaves a dead message of a webhook or of a Channel.
func (h *house) deadLetter(webhook, channel string) string {
	h.t.Helper()
	at := h.clock.now()
	d := domain.Delivery{ID: domain.DeliveryID(fmt.Sprintf("%s%032x", domain.PrefixDelivery, letters.Add(1))), Organization: h.me.organization,
		Webhook: domain.WebhookID(webhook), Channel: domain.ChannelID(channel), Member: h.me.member, Event: domain.HookRequestPending, Payload: []byte(`{"type":"request.pending"}`),
		Status: domain.DeliveryDead, Tries: 7, Outcome: "The receiver answered with HTTP status 500.", EndedAt: &at, CreatedAt: at, UpdatedAt: at}
	must(h.t, h.store.Commit(h.t.Context(), domain.Commit{At: at, Rows: []domain.Row{&d}}))
	return string(d.ID)
}

// Every answer about webhooks, word for word.
func TestAnswersAboutWebhooksAreGolden(t *testing.T) {
	h := newHouse(t)
	g := newGolden(t)
	h.connect()
	made := h.call("POST", "/v1/webhooks", `{"url":"https://hooks.example/in","events":["request.pending","request.decided"]}`)
	g.same("webhooks/create-201", made)
	id := text(made.object(t)["id"])
	g.same("webhooks/create-201-organization", h.call("POST", "/v1/webhooks",
		`{"url":"https://hooks.example/all","events":["delegation.ended"],"organization":true,"enabled":false,"secret":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}`))
	g.same("webhooks/create-422", h.call("POST", "/v1/webhooks", `{"url":"ftp://x","events":["request.pending"]}`))
	g.same("webhooks/create-422-events", h.call("POST", "/v1/webhooks", `{"url":"https://x.example","events":["turn.status",7]}`))
	g.same("webhooks/list-200", h.call("GET", "/v1/webhooks", ""))
	g.same("webhooks/read-200", h.call("GET", "/v1/webhooks/"+id, ""))
	g.same("webhooks/read-404", h.call("GET", "/v1/webhooks/hook_1", ""))

	_, _, request := h.asking()
	h.receives = func(domain.HookMessage) int { return 410 }
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"deny"}`)
	h.work()
	g.same("webhooks/deliveries-200", h.call("GET", "/v1/webhooks/"+id+"/deliveries", ""))
	dead := h.call("GET", "/v1/webhooks/"+id+"/deliveries?status=dead", "").list(t)
	g.same("webhooks/deliveries-422", h.call("GET", "/v1/webhooks/"+id+"/deliveries?status=lost", ""))
	g.same("webhooks/read-200-gone", h.call("GET", "/v1/webhooks/"+id, ""))
	g.same("webhooks/change-200", h.call("PATCH", "/v1/webhooks/"+id, `{"enabled":true,"url":"https://hooks.example/new","events":["delegation.paused"]}`))
	resend := "/v1/webhooks/" + id + "/deliveries/" + text(dead[0]["id"]) + "/resend"
	g.same("webhooks/resend-202", h.call("POST", resend, ""))
	g.same("webhooks/resend-409", h.call("POST", resend, ""))
	g.same("webhooks/resend-404", h.call("POST", "/v1/webhooks/"+id+"/deliveries/dlv_1/resend", ""))
	g.same("webhooks/delete-204", h.call("DELETE", "/v1/webhooks/"+id, ""))
	g.same("webhooks/delete-404", h.call("DELETE", "/v1/webhooks/"+id, ""))
}

// A secret comes back once, and only an admin hears of the whole organization.
func TestWhoMayHaveAWebhook(t *testing.T) {
	h := newHouse(t)
	_, writer := h.stranger(`["write","*"]`, `["write","*"]`)
	const body = `{"url":"https://hooks.example/in","events":["request.pending"]}`
	hers := h.as(writer, "POST", "/v1/webhooks", body).object(t)
	if !strings.HasPrefix(text(hers["secret"]), "whsec_") {
		t.Errorf("there is no secret: %v", hers)
	}
	if got := h.as(writer, "GET", "/v1/webhooks/"+text(hers["id"]), "").object(t); got["secret"] != nil || got["url"] != "https://hooks.example/in" {
		t.Errorf("read: %v", got)
	}
	h.refused(h.as(writer, "POST", "/v1/webhooks", `{"url":"https://hooks.example/in","events":["request.pending"],"organization":true}`), 403, "Forbidden")
	h.refused(h.as(writer, "PATCH", "/v1/webhooks/"+text(hers["id"]), `{"organization":true}`), 403, "Forbidden")
	all := h.ok(201, "POST", "/v1/webhooks", `{"url":"https://hooks.example/in","events":["request.pending"],"organization":true}`)
	if mine := h.call("GET", "/v1/webhooks", "").list(t); len(mine) != 1 || mine[0]["id"] != all["id"] {
		t.Errorf("an admin sees %v", mine)
	}
	if list := h.as(writer, "GET", "/v1/webhooks", "").list(t); len(list) != 1 || list[0]["id"] != hers["id"] {
		t.Errorf("she sees %v", list)
	}
	h.refused(h.as(writer, "GET", "/v1/webhooks/"+text(all["id"])+"/deliveries", ""), 404, "WebhookNotFound")
}
