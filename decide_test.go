package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"openbot/apps/appstest"
	"openbot/config"
)

// newBot makes a lasting Bot and gives its ID.
func (c *client) newBot(name, instructions string, more object) string {
	c.t.Helper()
	body := object{"name": name, "role": "Works.", "instructions": instructions}
	for k, v := range more {
		body[k] = v
	}
	return c.call("POST", "/v1/bots", body, 201)["id"].(string)
}

// chatWith makes a Chat with a Bot.
func (c *client) chatWith(bot string) string {
	c.t.Helper()
	return c.call("POST", "/v1/chats", object{"bot": bot}, 201)["id"].(string)
}

// instruct gives a Bot new instructions.
func (c *client) instruct(bot, instructions string) {
	c.t.Helper()
	c.call("PATCH", "/v1/bots/"+bot, object{"instructions": instructions}, 200)
}

func (c *client) mainBot() string {
	c.t.Helper()
	switch m := c.call("GET", "/v1/me", nil, 200)["mainBot"].(type) {
	case string:
		return m
	case object:
		return m["id"].(string)
	}
	c.t.Fatal("there is no Main Bot")
	return ""
}

// waitsForMe awaits the Request of a Turn that has come up to the person.
func (c *client) waitsForMe(turn string) object {
	c.t.Helper()
	var found []object
	c.poll("a Request of "+turn+" waits for the person", time.Minute, func() bool {
		found = c.pending(turn)
		return len(found) > 0
	})
	return found[0]
}

func onlyCall(turn object) object { return calls(turn)[0] }

// A Rule that the judge quotes decides, a deny wins, and the evidence is shown.
func TestARuleDecides(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		rule := c.call("POST", "/v1/rules", object{"text": "Allow send_email to colleagues."}, 201)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"a@example.test"}`)
		ended := c.awaitTurn(chat, turn, status("Completed"))
		by := onlyCall(ended)["decidedBy"].(object)
		if by["step"] != "rule" || by["rule"] != rule["id"] || by["quote"] != "Allow send_email to colleagues." || app.Count("send_email") != 1 {
			t.Fatalf("the call shows %v after %d sends", onlyCall(ended), app.Count("send_email"))
		}
		c.call("POST", "/v1/rules", object{"text": "Never send_email.", "effect": "deny", "bot": c.mainBot()}, 201)
		turn = c.say(chat, `/call desk__send_email {"to":"b@example.test"}`)
		ended = c.awaitTurn(chat, turn, status("Completed"))
		if call := onlyCall(ended); call["status"] != "denied" || !strings.Contains(call["result"].(string), "Never send_email.") {
			t.Fatalf("the call shows %v", call)
		}
		c.call("DELETE", "/v1/rules/"+rule["id"].(string), nil, 204)
		if app.Count("send_email") != 1 {
			t.Error("a denied call went out")
		}
	})
}

// The nearest owner decides first; one that may not do it itself endorses, and the
// person decides.
func TestTheChainOfDeciders(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		connection := c.connect("desk", app.URL)
		me := c.mainBot()
		c.instruct(me, "/decide allow lifetime fine by me")
		worker := c.newBot("Worker", "Work.", nil)
		chat := c.chatWith(worker)
		turn := c.say(chat, `/call desk__send_email {"to":"a@example.test"}`)
		r := c.waitsForMe(turn)
		endorsements := r["endorsements"].([]any)
		if len(endorsements) != 1 || endorsements[0].(object)["bot"] != me || r["revision"] != 1.0 {
			t.Fatalf("the Request shows %v", r)
		}
		c.answer(r, object{"decision": "allow", "scope": "lifetime"})
		c.awaitTurn(chat, turn, status("Completed"))
		if grants := c.list("/v1/grants"); len(grants) != 2 {
			t.Fatalf("there are the Grants %v", grants)
		}

		// Now the Main Bot holds it, and its allow for another Bot is final.
		second := c.newBot("Second", "Work.", nil)
		chat = c.chatWith(second)
		turn = c.say(chat, `/call desk__send_email {"to":"b@example.test"}`)
		ended := c.awaitTurn(chat, turn, status("Completed"))
		by := onlyCall(ended)["decidedBy"].(object)
		if by["by"].(object)["botId"] != me || app.Count("send_email") != 2 {
			t.Fatalf("the call shows %v", onlyCall(ended))
		}
		var own string
		for _, g := range c.list("/v1/grants") {
			if g["bot"] == me {
				own = g["id"].(string)
			}
			if g["bot"] == second && (g["source"].(object)["grant"] != own && own != "") {
				t.Errorf("the Grant %v does not say on whose strength it was given", g)
			}
		}
		c.call("DELETE", "/v1/grants/"+own, nil, 204)
		for _, g := range c.list("/v1/grants") {
			if g["bot"] == second {
				t.Errorf("%v outlives the Grant that it rests on", g)
			}
		}
		if reviews := c.list("/v1/chats"); len(reviews) != 2 && connection != "" {
			for _, r := range reviews {
				if r["kind"] == "review" {
					t.Errorf("a review that is over is still listed: %v", r)
				}
			}
		}
	})
}

func TestABotsDenyIsFinal(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		c.instruct(c.mainBot(), "/decide deny once not now")
		chat := c.chatWith(c.newBot("Worker", "Work.", nil))
		turn := c.say(chat, `/call desk__send_email {"to":"a@example.test"}`)
		ended := c.awaitTurn(chat, turn, status("Completed"))
		if call := onlyCall(ended); call["status"] != "denied" || !strings.Contains(call["result"].(string), "not now") || app.Count("send_email") != 0 {
			t.Fatalf("the call shows %v", call)
		}
	})
}

func TestPlanMode(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		chat := c.call("POST", "/v1/chats", object{"mode": "plan"}, 201)["id"].(string)
		turn := c.say(chat, `/call desk__send_email {"to":"a@example.test"}`+"\n"+`/call openbot_remember {"memory":"x"}`+"\n/then\n"+`/call openbot_plan {"plan":"Write to Ann."}`+
			"\n/then\n"+`/call desk__send_email {"to":"b@example.test"}`)
		r := c.waitsForMe(turn)
		if r["plan"] != "Write to Ann." || r["capability"].(object)["action"] != "plans.run" || app.Count("send_email") != 0 {
			t.Fatalf("the Request is %v", r)
		}
		c.answer(r, object{"decision": "allow"})
		c.awaitTurn(chat, turn, func(turn object) bool { return len(calls(turn)) == 4 && turn["status"] == "Waiting" })
		if mode := c.call("GET", "/v1/chats/"+chat, nil, 200)["mode"]; mode != nil {
			t.Errorf("the mode is %v", mode)
		}
		c.answer(c.pending(turn)[0], object{"decision": "allow"})
		c.awaitTurn(chat, turn, status("Completed"))
		if app.Count("send_email") != 1 {
			t.Errorf("the App got %d calls", app.Count("send_email"))
		}
	})
}

func TestBotsAreMadeOnceAllowed(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		chat := c.newChat()
		turn := c.say(chat, `/call openbot_spawn {"name":"Helper","role":"Helps.","instructions":"Help.","reason":"much to do"}`)
		r := c.waitsForMe(turn)
		if r["capability"].(object)["action"] != "bots.spawn" || r["reason"] != "much to do" {
			t.Fatalf("the Request is %v", r)
		}
		c.answer(r, object{"decision": "allow"})
		c.awaitTurn(chat, turn, status("Completed"))
		var helper string
		for _, bot := range c.list("/v1/bots") {
			if bot["kind"] == "session" {
				helper = bot["id"].(string)
			}
		}
		turn = c.say(chat, `/call openbot_promote_bot {"bot":"`+helper+`","reason":"it is good"}`)
		c.answer(c.waitsForMe(turn), object{"decision": "allow"})
		c.awaitTurn(chat, turn, status("Completed"))
		if kind := c.call("GET", "/v1/bots/"+helper, nil, 200)["kind"]; kind != "lasting" {
			t.Errorf("the Bot is %v", kind)
		}
	})
}

func TestPreviewOfARule(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"a@example.test"}`)
		c.answer(c.waitsForMe(turn), object{"decision": "allow"})
		c.awaitTurn(chat, turn, status("Completed"))
		code, raw, err := c.try("POST", "/v1/rules/preview", object{"text": "Never send_email."})
		must(t, err)
		var got []object
		decode(t, raw, &got)
		if code != 200 || len(got) != 1 || got[0]["would"] != "deny" || got[0]["decision"] != "allow" {
			t.Fatalf("the preview gave %d %s", code, raw)
		}
		if rules := c.list("/v1/rules"); len(rules) != 0 {
			t.Errorf("a preview left the Rules %v", rules)
		}
	})
}

// A judge that hangs fills its own workers alone: answers, Turns and Apps go on.
func TestAHangingJudgeHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		released := make(chan struct{})
		judge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-released:
			case <-r.Context().Done():
			}
			http.Error(w, "no", http.StatusBadRequest)
		}))
		t.Cleanup(judge.Close)
		cfg := b.settings(t.TempDir())
		cfg.Models.Judge = "openai:judge"
		cfg.Models.OpenAI = config.Provider{APIKey: config.NewSecret("sk-test"), BaseURL: judge.URL}
		c, _, _ := startServe(t, cfg)
		c.connect("desk", app.URL)
		judged := c.newBot("Judged", "", nil)
		c.call("POST", "/v1/rules", object{"text": "Never send_email.", "bot": judged}, 201)
		waiting := map[string]string{}
		for range 3 * cfg.Workers() {
			chat := c.chatWith(judged)
			waiting[chat] = c.say(chat, `/call desk__send_email {"to":"a@example.test"}`)
		}
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"b@example.test"}`)
		c.awaitTurn(chat, turn, status("Waiting"))
		c.answer(c.pending(turn)[0], object{"decision": "allow"})
		began := time.Now()
		c.awaitTurn(chat, turn, status("Completed"))
		if took := time.Since(began); took > 5*time.Second || app.Count("send_email") != 1 {
			t.Errorf("the other work took %s", took)
		}
		close(released)
		for _, turn := range waiting {
			c.waitsForMe(turn)
		}
	})
}
