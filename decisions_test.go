package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"openbot/apps/appstest"
)

// decision is one case of who decides, as the tests of the pure check have it.
type decision struct {
	Name, Because string
	Scopes        []string
	Read          bool
	Mode          string
	Asker         string
	Main          string
	Grants        []struct {
		Bot, Decision, Scope, Chat, Tool string
		Revoked, Stale                   bool
	}
	Rules []struct {
		Text, Effect, Bot string
		Off, Deleted      bool
	}
	Want struct {
		Status, Step, By, Quote string
		Endorsed                int
	}
}

// court plays cases on one server, each with Bots and a Chat of its own.
type court struct {
	*client
	app        *appstest.App
	connection string
	main       string
	revisions  int
}

// TestWhoDecidesWhat drives the case law of the pure check over HTTP.
func TestWhoDecidesWhat(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("domain/testdata/decisions.json")
	must(t, err)
	var cases []decision
	decode(t, raw, &cases)
	if len(cases) < 80 {
		t.Fatalf("only %d cases are left", len(cases))
	}
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		k := &court{client: c, app: app, connection: c.connect("desk", app.URL), main: c.mainBot()}
		for _, d := range cases {
			t.Run(d.Name, func(t *testing.T) {
				k.t = t
				k.play(d)
			})
		}
	})
}

// newRevision changes the Connection, so that what was decided so far is old.
func (k *court) newRevision() {
	k.revisions++
	k.call("PATCH", "/v1/connections/"+k.connection, object{"headers": object{"X-Revision": fmt.Sprint(k.revisions)}}, 200)
}

func (k *court) play(d decision) {
	t := k.t
	t.Helper()
	k.instruct(k.main, "/decide "+or(d.Main, "none"))
	settings := []string{}
	if d.Read {
		settings = append(settings, k.connection+"/send_email")
	}
	k.call("PATCH", "/v1/settings", object{"appReadRules": settings}, 200)
	bots := map[string]string{"main": k.main, "other": k.newBot("Other", "", nil), "asker": k.main}
	if d.Asker != "main" {
		bots["asker"] = k.newBot("Asker", "", nil)
	}
	chat := k.call("POST", "/v1/chats", withMode(object{"bot": bots["asker"]}, d.Mode), 201)["id"].(string)
	chats := map[string]string{"here": chat, "elsewhere": k.chatWith(bots["asker"]), "of main": k.chatWith(k.main)}

	var made []string // what must not outlive the case
	defer func() {
		for _, path := range made {
			k.call("DELETE", path, nil, 204)
		}
	}()
	stale := false
	grant := func(i int) {
		g := d.Grants[i]
		body := object{"bot": bots[g.Bot], "decision": g.Decision, "scope": g.Scope,
			"capability": object{"action": "apps.call", "target": k.connection + "/" + or(g.Tool, "send_email")}}
		if g.Chat != "" {
			body["chat"] = chats[g.Chat]
		}
		path := "/v1/grants/" + k.call("POST", "/v1/grants", body, 201)["id"].(string)
		if g.Revoked {
			k.call("DELETE", path, nil, 204)
			return
		}
		made = append(made, path)
	}
	for i, g := range d.Grants {
		if g.Stale {
			grant(i)
			stale = true
		}
	}
	if stale {
		k.newRevision()
	}
	for i, g := range d.Grants {
		if !g.Stale {
			grant(i)
		}
	}
	for _, r := range d.Rules {
		body := object{"text": r.Text, "effect": r.Effect}
		if r.Bot != "" {
			body["bot"] = bots[r.Bot]
		}
		path := "/v1/rules/" + k.call("POST", "/v1/rules", body, 201)["id"].(string)
		switch {
		case r.Deleted:
			k.call("DELETE", path, nil, 204)
			continue
		case r.Off:
			k.call("PATCH", path, object{"enabled": false}, 200)
		}
		made = append(made, path)
	}

	speaker := k.client
	if d.Scopes != nil {
		token := k.call("POST", "/v1/tokens", object{"name": "narrow", "scopes": d.Scopes}, 201)["token"].(string)
		speaker = &client{t: t, base: k.base, token: token}
	}
	before := k.app.Count("send_email")
	turn := speaker.say(chat, `/call desk__send_email {"to":"a@example.test"}`)
	want := d.Want
	if want.Status == "waiting" {
		r := k.waitsForMe(turn)
		if got := len(r["endorsements"].([]any)); got != want.Endorsed || k.app.Count("send_email") != before {
			t.Errorf("%s: the Request is %v", d.Because, r)
		}
		k.answer(r, object{"decision": "deny"})
		k.awaitTurn(chat, turn, status("Completed"))
		return
	}
	call := onlyCall(k.awaitTurn(chat, turn, status("Completed")))
	by := call["decidedBy"].(object)
	quote, _ := by["quote"].(string)
	if call["status"] != want.Status || by["step"] != want.Step || by["by"].(object)["_tag"] != want.By || want.Quote != "" && quote != want.Quote {
		t.Errorf("%s: the call is %v", d.Because, call)
	}
	if got := k.app.Count("send_email") - before; got != map[string]int{"succeeded": 1, "denied": 0}[want.Status] {
		t.Errorf("%s: the App got %d calls", d.Because, got)
	}
	shown, err := json.Marshal(call["evidence"])
	must(t, err)
	if !strings.Contains(string(shown), `"step":"policy"`) {
		t.Errorf("the evidence is %s", shown)
	}
	for _, g := range k.list("/v1/grants") {
		if source := g["source"].(object)["kind"]; source != "person" {
			made = append(made, "/v1/grants/"+g["id"].(string)) // left by a Bot's decision
		}
	}
}

func withMode(body object, mode string) object {
	if mode != "" {
		body["mode"] = mode
	}
	return body
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
