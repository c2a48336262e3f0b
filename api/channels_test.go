package api_test

import (
	"strings"
	"testing"
	"time"

	"openbot/domain"
)

// Every answer about Channels, word for word.
func TestAnswersAboutChannelsAreGolden(t *testing.T) {
	h := newHouse(t)
	g := newGolden(t)
	bob, _ := h.stranger(`["write","*"]`, `["write","*"]`)
	made := h.call("POST", "/v1/channels", `{"name":"team","url":"https://chat.example/out","actors":{"bob":"`+bob+`"}}`)
	g.same("channels/create-201", made)
	id := text(made.object(t)["id"])
	at := "/v1/channels/" + id
	g.same("channels/create-422", h.call("POST", "/v1/channels", `{"name":"x","url":"ftp://x","actors":{}}`))
	g.same("channels/create-422-actors", h.call("POST", "/v1/channels", `{"name":"x","url":"https://x.example","actors":{"eve":"mem_1"}}`))
	g.same("channels/create-404-bot", h.call("POST", "/v1/channels", `{"name":"x","url":"https://x.example","bot":"bot_1"}`))
	g.same("channels/list-200", h.call("GET", "/v1/channels", ""))
	g.same("channels/read-200", h.call("GET", at, ""))
	g.same("channels/read-404", h.call("GET", "/v1/channels/chn_1", ""))
	posted := h.call("POST", at+"/messages", `{"author":"bob","text":"/call openbot_spawn {\"name\":\"x\",\"role\":\"\",\"instructions\":\"\",\"reason\":\"r\"}"}`)
	g.same("channels/message-202", posted)
	h.work()
	g.same("channels/message-202-waits", h.call("POST", at+"/messages", `{"author":"eve","text":"Hello","chat":"main"}`))
	chat := text(posted.object(t)["chat"])
	g.same("channels/chat-200", h.call("GET", "/v1/chats/"+chat, ""))
	g.same("channels/chat-message-409", h.call("POST", "/v1/chats/"+chat+"/messages", `{"text":"x"}`))
	g.same("channels/message-422", h.call("POST", at+"/messages", `{"author":"a\u202eb","text":"x"}`))
	h.ok(200, "POST", "/v1/chats/"+chat+"/interrupt", "")
	h.work()
	g.same("channels/items-200", h.call("GET", "/v1/chats/"+chat+"/items", ""))
	g.same("channels/deliveries-200", h.call("GET", at+"/deliveries?status=delivered", ""))
	letter := h.deadLetter("", id)
	g.same("channels/resend-202", h.call("POST", at+"/deliveries/"+letter+"/resend", ""))
	g.same("channels/resend-409", h.call("POST", at+"/deliveries/"+letter+"/resend", ""))
	g.same("channels/resend-404", h.call("POST", at+"/deliveries/dlv_1/resend", ""))
	g.same("channels/change-200", h.call("PATCH", at, `{"enabled":false,"actors":{},"name":"Team"}`))
	g.same("channels/message-409", h.call("POST", at+"/messages", `{"author":"bob","text":"x"}`))
	g.same("channels/delete-204", h.call("DELETE", at, ""))
	g.same("channels/delete-404", h.call("DELETE", at, ""))
}

// A commandKey of a message lives as long as the Chat that it made.
func TestCommandKeysOfAChannel(t *testing.T) {
	h := newHouse(t)
	at := "/v1/channels/" + text(h.ok(201, "POST", "/v1/channels", bodies["createChannel"])["id"]) + "/messages"
	const body = `{"author":"bob","text":"Hello","commandKey":"c-1"}`
	first := h.ok(202, "POST", at, body)
	h.work()
	h.clock.advance(48 * time.Hour)
	if again := h.ok(202, "POST", at, body); again["turn"] != first["turn"] || again["chat"] != first["chat"] {
		t.Errorf("the message was taken twice: %v, %v", first, again)
	}
	h.refused(h.call("POST", at, `{"author":"eve","text":"Hello","commandKey":"c-1"}`), 409, "IdempotencyConflict")
	h.ok(204, "DELETE", "/v1/chats/"+text(first["chat"]), "")
	if again := h.ok(202, "POST", at, body); again["chat"] == first["chat"] {
		t.Errorf("the key outlives its Chat: %v", again)
	}
}

// The author of a message reads its Turn and answers its Request; the maker of the Channel
// reads the Chat and does not answer.
func TestWhoSeesWhatInAChannel(t *testing.T) {
	h := newHouse(t)
	bob, secret := h.stranger(`["write","*"]`, `["write","*"]`)
	channel := text(h.ok(201, "POST", "/v1/channels", `{"name":"team","url":"https://chat.example/out","actors":{"bob":"`+bob+`"}}`)["id"])
	posted := h.ok(202, "POST", "/v1/channels/"+channel+"/messages", `{"author":"bob","text":"/call openbot_spawn {\"name\":\"x\",\"role\":\"\",\"instructions\":\"\",\"reason\":\"r\"}"}`)
	h.work()
	turn, chat := text(posted["turn"]), text(posted["chat"])
	h.refused(h.as(secret, "GET", "/v1/chats/"+chat, ""), 404, "ChatNotFound")
	h.refused(h.as(secret, "GET", "/v1/channels/"+channel, ""), 404, "ChannelNotFound")
	h.refused(h.as(secret, "POST", "/v1/channels/"+channel+"/messages", `{"author":"bob","text":"x"}`), 404, "ChannelNotFound")
	if got := h.as(secret, "GET", "/v1/turns/"+turn, ""); got.status != 200 {
		t.Errorf("the author reads its Turn: %d", got.status)
	}
	waiting := h.as(secret, "GET", "/v1/requests?status=pending", "").list(t)
	if len(waiting) != 1 || len(h.call("GET", "/v1/requests?status=pending", "").list(t)) != 0 {
		t.Fatalf("the Request waits for %v", waiting)
	}
	request := "/v1/requests/" + text(waiting[0]["id"])
	h.refused(h.call("POST", request, `{"expected":0,"decision":"allow"}`), 404, "RequestNotFound")
	if got := h.as(secret, "POST", request, `{"expected":0,"decision":"deny"}`); got.status != 200 {
		t.Errorf("the author answers: %d %s", got.status, got.body)
	}
	var sent []string
	h.receives = func(m domain.HookMessage) int { sent = append(sent, string(m.Payload)); return 200 }
	h.work()
	if len(sent) != 1 || !strings.Contains(sent[0], `"author":"bob"`) {
		t.Errorf("%v went out", sent)
	}
}
