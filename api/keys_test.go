package api_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"openbot/domain"
)

// The first successful answer under a key is given again and nothing is done
// twice; the same key for something else is a conflict.
func TestKeysGiveTheFirstAnswer(t *testing.T) {
	h := newHouse(t)
	mine := h.owned()
	for _, o := range h.contract.operations {
		if o.method != "POST" || o.id == "signalTrigger" { // the sender's own ID of a signal is its key
			continue
		}
		t.Run(o.id, func(t *testing.T) {
			path, body, key := o.at(mine), bodies[o.id], "key-of-"+o.id
			switch o.id {
			case "decideApproval": // not that of answerRequest
				_, _, request := h.asking()
				path = o.at(belongings{"approval": domain.UUIDOf(request)})
			case "createTool":
				body = with(t, body, "name", `"other"`)
			case "createGrant":
				body = strings.Replace(body, "bot_00000000000000000000000000000001", mine["bot"], 1)
			case "cancelDelegation": // its commandKey is the same thing as the header
				id, _ := h.given(`/call mail__send_email {"to":"ann@example.com"}`)
				path, body = o.at(belongings{"delegation": id}), `{"commandKey":"`+key+`"}`
			case "interruptChat": // not that of the Request
				path = o.at(belongings{"chat": text(h.ok(201, "POST", "/v1/chats", `{}`)["id"])})
			case "resendChannelDelivery":
				path = o.at(belongings{"channel": mine["channel"], "delivery": h.deadLetter("", mine["channel"])})
			}
			first := h.call("POST", path, body, "Idempotency-Key", key)
			if first.status >= 300 {
				t.Fatalf("%d %s", first.status, first.body)
			}
			before := h.snapshot()
			again := h.call("POST", path, body, "Idempotency-Key", key)
			if again.status != first.status || h.snapshot() != before {
				t.Errorf("it was done again: %d %s", again.status, again.body)
			}
			if o.id == "previewRule" { // a list, and no row of its own
				if again.body != first.body {
					t.Errorf("the answer is %s, not %s", again.body, first.body)
				}
				return
			}
			want := first.object(t)
			delete(want, "token")
			delete(want, "secret")
			if got := again.object(t); len(got) != len(want) || text(got["id"]) != text(want["id"]) || got["token"] != nil || got["secret"] != nil {
				t.Errorf("the answer is %v, not %v", got, want)
			}
			if strings.Contains(before, text(first.object(t)["token"])) && first.object(t)["token"] != nil {
				t.Error("the secret of the token is kept")
			}
			other := h.call("POST", path, strings.TrimSuffix(body, "}")+" }", "Idempotency-Key", key)
			h.refused(other, 409, "IdempotencyConflict")
			h.refused(h.call("POST", "/v1/chats", `{"title":"elsewhere"}`, "Idempotency-Key", key), 409, "IdempotencyConflict")
			if h.snapshot() != before {
				t.Error("a conflict changed something")
			}
		})
	}
}

func TestKeysAreOfOneMemberAndOneDay(t *testing.T) {
	h := newHouse(t)
	_, secret := h.stranger(`["write"]`, `["write"]`)
	mine := h.ok(201, "POST", "/v1/chats", `{}`, "Idempotency-Key", "k")
	hers := h.as(secret, "POST", "/v1/chats", `{}`, "Idempotency-Key", "k")
	if hers.status != 201 || hers.object(t)["id"] == mine["id"] {
		t.Errorf("a key of another Member answered: %s", hers.body)
	}
	h.clock.advance(24*time.Hour - time.Second)
	if h.ok(201, "POST", "/v1/chats", `{}`, "Idempotency-Key", "k")["id"] != mine["id"] {
		t.Error("the answer was forgotten early")
	}
	h.clock.advance(time.Second)
	if h.ok(201, "POST", "/v1/chats", `{}`, "Idempotency-Key", "k")["id"] == mine["id"] {
		t.Error("the answer was kept for more than 24 hours")
	}
}

func TestRefusalsAreNotKept(t *testing.T) {
	h := newHouse(t)
	h.refused(h.call("POST", "/v1/bots", `{"name":"x","role":"","instructions":"","model":"none such"}`, "Idempotency-Key", "k"), 422, "InvalidInput")
	h.ok(201, "POST", "/v1/bots", `{"name":"x","role":"","instructions":""}`, "Idempotency-Key", "k")
}

func TestKeysThatDoNotFit(t *testing.T) {
	h := newHouse(t)
	for _, key := range []string{"", " ", "a b", strings.Repeat("k", 201), "\u00e4", "a\tb"} {
		h.refused(h.call("POST", "/v1/chats", `{}`, "Idempotency-Key", key), 422, "InvalidInput")
	}
	h.ok(201, "POST", "/v1/chats", `{}`, "Idempotency-Key", strings.Repeat("k", 200))
}

// A commandKey is an Idempotency-Key that lives as long as its Chat.
func TestCommandKeys(t *testing.T) {
	h := newHouse(t)
	chat := text(h.ok(201, "POST", "/v1/chats", `{}`)["id"])
	path := "/v1/chats/" + chat + "/messages"
	const body = `{"text":"Hello","commandKey":"c-1"}`
	turn := h.ok(202, "POST", path, body)["turn"]
	h.work()
	h.clock.advance(48 * time.Hour)
	if again := h.ok(202, "POST", path, body)["turn"]; again != turn {
		t.Errorf("the message was taken twice: %v, %v", turn, again)
	}
	if n := len(h.call("GET", "/v1/chats/"+chat+"/turns", "").list(t)); n != 1 {
		t.Errorf("there are %d Turns", n)
	}
	h.refused(h.call("POST", path, `{"text":"Other","commandKey":"c-1"}`), 409, "IdempotencyConflict")
	h.refused(h.call("POST", path, `{"text":"Other","commandKey":"c 1"}`), 422, "InvalidInput")
	h.refused(h.call("POST", path, `{"text":"Other","commandKey":"c-2"}`, "Idempotency-Key", "c-3"), 422, "InvalidInput")
	h.ok(204, "DELETE", "/v1/chats/"+chat, "")
	h.refused(h.call("POST", path, body), 404, "ChatNotFound")
	other := text(h.ok(201, "POST", "/v1/chats", `{}`)["id"])
	h.ok(202, "POST", "/v1/chats/"+other+"/messages", body)
}

// Of many of the same key at once one is carried out and all get its answer.
func TestKeysRace(t *testing.T) {
	h := newHouse(t)
	chat := text(h.ok(201, "POST", "/v1/chats", `{}`)["id"])
	answers := make([]answer, 20)
	var flying sync.WaitGroup
	for i := range answers {
		flying.Go(func() {
			answers[i] = h.call("POST", "/v1/chats/"+chat+"/messages", `{"text":"Once"}`, "Idempotency-Key", "race")
		})
	}
	flying.Wait()
	for _, a := range answers {
		if a.status != 202 || strings.TrimSpace(a.body) != strings.TrimSpace(answers[0].body) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if items := h.call("GET", "/v1/chats/"+chat+"/items", "").list(t); len(items) != 1 {
		t.Errorf("the message stands %d times", len(items))
	}
}

// Whoever lost the answer of a new Connection gets it as it stands now, with the
// tools that the look found.
func TestConnectionsAreGivenAgainAsTheyStand(t *testing.T) {
	h := newHouse(t)
	h.look = func(domain.Connection) (domain.AppLook, *domain.AppError) {
		return domain.AppLook{}, &domain.AppError{Message: "nobody answers there"}
	}
	const body = `{"name":"mail","transport":"http","url":"https://mail.example"}`
	first := h.ok(201, "POST", "/v1/connections", body, "Idempotency-Key", "k")
	if health := first["health"].(map[string]any); health["status"] != "unreachable" || health["reason"] != "nobody answers there" {
		t.Errorf("health is %v", health)
	}
	h.look = func(domain.Connection) (domain.AppLook, *domain.AppError) { return mailLook(), nil }
	h.ok(200, "POST", "/v1/connections/"+text(first["id"])+"/refresh", "")
	again := h.ok(201, "POST", "/v1/connections", body, "Idempotency-Key", "k")
	if again["id"] != first["id"] || len(again["tools"].([]any)) != 1 {
		t.Errorf("got %v", again)
	}
	h.ok(204, "DELETE", "/v1/connections/"+text(first["id"]), "")
	if gone := h.ok(201, "POST", "/v1/connections", body, "Idempotency-Key", "k"); gone["id"] != first["id"] {
		t.Errorf("got %v", gone)
	}
}

// An interrupt with nothing to stop is kept too: sent again later, it must not stop
// a Turn that it was not meant for.
func TestAnInterruptOfNothingIsKept(t *testing.T) {
	h := newHouse(t)
	h.connect()
	chat := text(h.ok(201, "POST", "/v1/chats", `{}`)["id"])
	h.ok(200, "POST", "/v1/chats/"+chat+"/interrupt", `{"delegations":true}`, "Idempotency-Key", "stop")
	h.ok(202, "POST", "/v1/chats/"+chat+"/messages", `{"text":"Hello"}`)
	h.ok(200, "POST", "/v1/chats/"+chat+"/interrupt", `{"delegations":true}`, "Idempotency-Key", "stop")
	if status := h.ok(200, "GET", "/v1/chats/"+chat, "")["status"]; status != "running" {
		t.Errorf("the Chat is %v", status)
	}
}
