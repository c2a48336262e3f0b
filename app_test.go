package main

import (
	"strings"
	"sync"
	"testing"

	"openbot/apps/appstest"
)

// The main job: a person writes, the Bot calls, the call waits, a person allows,
// the saved call runs exactly once, the Turn ends.
func TestACallWaitsAndRunsOnce(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		connection := c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test","subject":"Digest","openbot_reason":"Friday."}`+"\n/say Sent.")
		c.awaitTurn(chat, turn, status("Waiting"))
		if got := app.Count("send_email"); got != 0 {
			t.Fatalf("the App got %d calls before anybody decided", got)
		}
		waiting := c.pending(turn)
		if len(waiting) != 1 {
			t.Fatalf("%d Requests wait, want 1", len(waiting))
		}
		r := waiting[0]
		if target := r["capability"].(object)["target"]; target != connection+"/send_email" {
			t.Errorf("the capability's target is %v", target)
		}
		if r["reason"] != "Friday." {
			t.Errorf("the reason is %v", r["reason"])
		}
		if _, leaked := r["arguments"].(object)["openbot_reason"]; leaked {
			t.Error("openbot_reason stands in the arguments that the App gets")
		}
		decided := c.answer(r, object{"decision": "allow"})
		if decided["status"] != "allowed" || decided["revision"] != 1.0 {
			t.Errorf("the answer gave %v", decided)
		}
		ended := c.awaitTurn(chat, turn, status("Completed"))
		if ended["answer"] != "Sent." {
			t.Errorf("the answer is %q", ended["answer"])
		}
		receipts := app.Receipts()
		if len(receipts) != 1 || string(receipts[0].Arguments) != `{"to":"ops@example.test","subject":"Digest"}` {
			t.Errorf("the App got %v", receipts)
		}
		call := calls(ended)[0]
		by := call["decidedBy"].(object)
		if call["status"] != "succeeded" || by["step"] != "decider" || by["request"] != r["id"] {
			t.Errorf("the call shows %v", call)
		}
	})
}

func TestADeniedCallDoesNotRun(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
		c.awaitTurn(chat, turn, status("Waiting"))
		c.answer(c.pending(turn)[0], object{"decision": "deny", "reason": "Not today"})
		ended := c.awaitTurn(chat, turn, status("Completed"))
		result := calls(ended)[0]["result"].(string)
		for _, part := range []string{"Denied by a person", "Not today", "was not executed"} {
			if !strings.Contains(result, part) {
				t.Errorf("the result %q does not say %q", result, part)
			}
		}
		if app.Count("send_email") != 0 {
			t.Error("the denied call reached the App")
		}
	})
}

// Each answer must reach its own call, in any order and at the same instant.
func TestTwoCallsOfOneStep(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		for round := range 10 {
			chat := c.newChat()
			turn := c.say(chat, `/call desk__send_email {"to":"first@example.test"}`+"\n"+`/call desk__send_email {"to":"second@example.test"}`)
			c.awaitTurn(chat, turn, status("Waiting"))
			waiting := c.pending(turn)
			if len(waiting) != 2 {
				t.Fatalf("%d Requests wait, want 2", len(waiting))
			}
			decisions := map[string]string{}
			var both sync.WaitGroup
			for i, r := range waiting {
				decision := []string{"allow", "deny"}[(i+round)%2]
				decisions[r["toolCallId"].(string)] = decision
				both.Go(func() { c.answer(r, object{"decision": decision}) })
			}
			both.Wait()
			ended := c.awaitTurn(chat, turn, status("Completed"))
			for _, call := range calls(ended) {
				want := map[string]string{"allow": "succeeded", "deny": "denied"}[decisions[call["id"].(string)]]
				if call["status"] != want {
					t.Errorf("round %d: the call is %v, want %s", round, call["status"], want)
				}
			}
		}
		if got := app.Count("send_email"); got != 10 {
			t.Errorf("the App got %d calls, want 10", got)
		}
	})
}

// Of many answers at the same time exactly one takes effect.
func TestFiftyAnswersOneEffect(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
		c.awaitTurn(chat, turn, status("Waiting"))
		r := c.pending(turn)[0]
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for i := range 50 {
			all.Go(func() {
				body := object{"expected": 0, "decision": []string{"allow", "deny"}[i%2], "reason": strings.Repeat("x", i)}
				got, raw, err := c.try("POST", "/v1/requests/"+r["id"].(string), body)
				if err != nil || got != 200 && got != 409 {
					t.Errorf("an answer gave %d %v %s", got, err, raw)
				}
				mu.Lock()
				statuses[got]++
				mu.Unlock()
			})
		}
		all.Wait()
		if statuses[200] != 1 {
			t.Errorf("%d answers won, want 1", statuses[200])
		}
		c.awaitTurn(chat, turn, status("Completed"))
		want := 0
		if c.call("GET", "/v1/requests/"+r["id"].(string), nil, 200)["status"] == "allowed" {
			want = 1
		}
		if got := app.Count("send_email"); got != want {
			t.Errorf("the App got %d calls, want %d", got, want)
		}
	})
}

func TestASecondStartKeepsEverything(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		cfg := b.settings(t.TempDir())
		c, first, stop := startServe(t, cfg)
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
		c.awaitTurn(chat, turn, status("Waiting"))
		stop()
		if !strings.Contains(first.String(), "listens on") || strings.Contains(first.String(), testToken) {
			t.Errorf("the first start printed %q", first)
		}
		c, second, _ := startServe(t, cfg)
		if strings.Contains(second.String(), "Your token") {
			t.Errorf("the second start printed %q", second)
		}
		c.answer(c.pending(turn)[0], object{"decision": "allow"})
		c.awaitTurn(chat, turn, status("Completed"))
		if got := app.Count("send_email"); got != 1 {
			t.Errorf("the App got %d calls, want 1", got)
		}
	})
}

// A kept decision answers what waits already and what comes later, until it is
// taken away.
func TestALifetimeAnswerSettlesEqualRequests(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		var chats, turns []string
		for range 5 {
			chat := c.newChat()
			turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
			c.awaitTurn(chat, turn, status("Waiting"))
			chats, turns = append(chats, chat), append(turns, turn)
		}
		c.answer(c.pending(turns[2])[0], object{"decision": "allow", "scope": "lifetime"})
		for i := range chats {
			c.awaitTurn(chats[i], turns[i], status("Completed"))
		}
		later := c.newChat()
		turn := c.say(later, `/call desk__send_email {"to":"else@example.test"}`)
		ended := c.awaitTurn(later, turn, status("Completed"))
		if by := calls(ended)[0]["decidedBy"].(object); by["step"] != "grant" || by["grant"] == nil {
			t.Errorf("the later call was decided by %v", by)
		}
		if got := app.Count("send_email"); got != 6 {
			t.Errorf("the App got %d calls, want 6", got)
		}
	})
}

func TestInterruptCancelsWhatWaits(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
		c.awaitTurn(chat, turn, status("Waiting"))
		r := c.pending(turn)[0]
		c.call("POST", "/v1/chats/"+chat+"/interrupt", object{"delegations": false}, 200)
		stopped := c.awaitTurn(chat, turn, status("Interrupted"))
		if got := calls(stopped)[0]["status"]; got != "cancelled" {
			t.Errorf("the waiting call is %v", got)
		}
		after := c.call("GET", "/v1/requests/"+r["id"].(string), nil, 200)
		if after["status"] != "cancelled" {
			t.Errorf("the Request is %v", after["status"])
		}
		c.call("POST", "/v1/requests/"+r["id"].(string), object{"expected": 1, "decision": "allow"}, 409)
		next := c.say(chat, "/say Still here.")
		c.awaitTurn(chat, next, status("Completed"))
		if app.Count("send_email") != 0 {
			t.Error("a cancelled call reached the App")
		}
	})
}

// A Request that nobody answers is denied when its time is up, and the Turn goes
// on by itself.
func TestARequestExpires(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		c.call("PATCH", "/v1/settings", object{"requestTimeoutMs": 1500}, 200)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
		ended := c.awaitTurn(chat, turn, status("Completed"))
		call := calls(ended)[0]
		if by := call["decidedBy"].(object)["by"].(object); call["status"] != "denied" || by["_tag"] != "Expiry" {
			t.Errorf("the call shows %v", call)
		}
	})
}

func TestAReadNeedsNoDecision(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		connection := c.connect("desk", app.URL)
		c.call("PATCH", "/v1/settings", object{"appReadRules": []string{connection + "/read_*"}}, 200)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__read_thing {"id":"1"}`)
		ended := c.awaitTurn(chat, turn, status("Completed"))
		if by := calls(ended)[0]["decidedBy"].(object); by["step"] != "exemption" || by["pattern"] != connection+"/read_*" {
			t.Errorf("the read was decided by %v", by)
		}
	})
}
