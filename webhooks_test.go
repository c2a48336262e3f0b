package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// outside is a receiver that checks every signature.
type outside struct {
	*httptest.Server
	got    chan heard
	answer chan int // the status of the next answer; 204 when empty
}

type heard struct {
	id, kind string
	data     object
}

// hookSecret signs what is sent to receivers.
const hookSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// receiver starts one.
func receiver(t *testing.T) *outside {
	t.Helper()
	o := &outside{got: make(chan heard, 100), answer: make(chan int, 100)}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		must(t, err)
		hook, err := standardwebhooks.NewWebhook(hookSecret)
		must(t, err)
		if err := hook.Verify(body, r.Header); err != nil {
			t.Errorf("the signature does not verify: %v", err)
		}
		var message struct {
			Type      string
			Timestamp time.Time
			Data      object
		}
		decode(t, body, &message)
		status := http.StatusNoContent
		select {
		case status = <-o.answer:
		default:
		}
		w.WriteHeader(status)
		o.got <- heard{r.Header.Get("Webhook-Id"), message.Type, message.Data}
	}))
	t.Cleanup(o.Close)
	return o
}

// next waits for the next message.
func (o *outside) next(t *testing.T) heard {
	t.Helper()
	select {
	case m := <-o.got:
		return m
	case <-time.After(30 * time.Second):
		t.Fatal("no message came")
		return heard{}
	}
}

const asksForAHelper = `/call openbot_spawn {"name":"Helper","role":"","instructions":"","reason":"r"}`

// A script hears that a Request waits, reads it by its link, answers it, and hears of the
// answer.
func TestAWebhookTellsAScript(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		o := receiver(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.call("POST", "/v1/webhooks", object{"url": o.URL, "events": []string{"request.pending", "request.decided"}, "secret": hookSecret}, 201)
		chat := c.newChat()
		turn := c.say(chat, asksForAHelper)
		waits := o.next(t)
		if waits.kind != "request.pending" || waits.data["turn"] != turn {
			t.Fatalf("told %v", waits)
		}
		request := c.call("GET", waits.data["link"].(string), nil, 200)
		c.answer(request, object{"decision": "deny"})
		decided := o.next(t)
		if decided.kind != "request.decided" || decided.data["request"] != request["id"] || decided.data["status"] != "denied" || decided.id == waits.id {
			t.Fatalf("told %v", decided)
		}
		c.awaitTurn(chat, turn, status("Completed"))
	})
}

// What a receiver did not take comes again by itself under the same ID; what it wants no
// more is dead, and a person sends it again.
func TestAWebhookComesAgain(t *testing.T) {
	o := receiver(t)
	c, _, _ := startServe(t, backend{}.settings(t.TempDir()))
	made := c.call("POST", "/v1/webhooks", object{"url": o.URL, "events": []string{"request.pending"}, "secret": hookSecret}, 201)
	at := "/v1/webhooks/" + made["id"].(string)
	o.answer <- 500
	o.answer <- 410
	c.say(c.newChat(), asksForAHelper)
	first, again := o.next(t), o.next(t)
	if first.id != again.id {
		t.Errorf("the repeat has the ID %s, not %s", again.id, first.id)
	}
	var dead []object
	c.poll("the message is dead", 20*time.Second, func() bool {
		dead = c.list(at + "/deliveries?status=dead")
		return len(dead) == 1
	})
	if now := c.call("GET", at, nil, 200); now["enabled"] != false {
		t.Errorf("the webhook is %v", now)
	}
	c.call("PATCH", at, object{"enabled": true}, 200)
	c.call("POST", at+"/deliveries/"+first.id+"/resend", nil, 202)
	if third := o.next(t); third.id != first.id {
		t.Errorf("it was sent again under the ID %s", third.id)
	}
	c.poll("the message is delivered", 20*time.Second, func() bool { return len(c.list(at+"/deliveries?status=delivered")) == 1 })
}

// A bridge brings in what people write in a group chat; each works with its own rights, and
// the answers come back signed.
func TestAChannelTalks(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		o := receiver(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		member := c.call("POST", "/v1/members", object{"name": "Bob", "permissions": []string{"write", "*"}}, 201)["id"].(string)
		token := c.call("POST", "/v1/tokens", object{"name": "his", "scopes": []string{"write", "*"}, "member": member}, 201)["token"].(string)
		bob := &client{t: t, base: c.base, token: token}
		channel := c.call("POST", "/v1/channels", object{"name": "team", "url": o.URL, "secret": hookSecret, "actors": object{"bob": member}}, 201)["id"].(string)
		post := func(author, text string) object {
			t.Helper()
			return c.call("POST", "/v1/channels/"+channel+"/messages", object{"author": author, "text": text, "chat": "room 7"}, 202)
		}
		first := post("bob", asksForAHelper+"\n/say There it is.")
		c.poll("Bob is asked", 30*time.Second, func() bool { return len(bob.list("/v1/requests?status=pending")) == 1 })
		stranger := post("eve", asksForAHelper+"\n/say Nothing was done.")
		if stranger["turn"] != nil || stranger["chat"] != first["chat"] {
			t.Errorf("the stranger's message went to %v", stranger)
		}
		bob.answer(bob.list("/v1/requests?status=pending")[0], object{"decision": "allow"})
		// Deliveries may overtake each other.
		told := map[any]object{}
		for range 2 {
			said := o.next(t)
			if said.kind != "channel.message" || said.data["chat"] != "room 7" {
				t.Errorf("told %v", said)
			}
			told[said.data["text"]] = said.data
		}
		if his := told["There it is."]; his == nil || his["turn"] != first["turn"] {
			t.Errorf("told %v", told)
		}
		if theirs := told["Nothing was done."]; theirs == nil || theirs["author"] != "eve" {
			t.Errorf("told %v", told)
		}
		if waits := c.list("/v1/requests?status=pending"); len(waits) != 0 {
			t.Errorf("somebody is asked for a stranger: %v", waits)
		}
		bots := bob.list("/v1/bots")
		helpers := 0
		for _, bot := range bots {
			if bot["kind"] == "session" {
				helpers++
			}
		}
		if helpers != 1 {
			t.Errorf("Bob has %d helpers: %v", helpers, bots)
		}
	})
}
