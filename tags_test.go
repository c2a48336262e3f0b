package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/apps/appstest"
	"openbot/config"
)

// tagCase is one case of tags and taint, as the tests of the pure check have it.
type tagCase struct {
	Name, Because string
	HTTP          bool
	Tags          []string
	Policy        object
	TaintedTags   *[]string
	Read          bool
	Taint         string
	Asker, Main   string
	Grants        []struct{ Bot, Decision, Scope, Given string }
	Rules         []struct{ Text, Effect string }
	Want          struct {
		Status, Step, By, Pattern, Line string
		Tags                            []string
		Endorsed                        int
	}
}

const readIt, sendIt = `/call desk__read_thing {"id":"1"}`, `/call desk__send_email {"to":"a@example.test"}`

// TestWhatTagsAndTaintComeTo drives part of the cases of the pure check over HTTP.
func TestWhatTagsAndTaintComeTo(t *testing.T) {
	raw, err := os.ReadFile("domain/testdata/tags.json")
	must(t, err)
	var cases []tagCase
	decode(t, raw, &cases)
	cases = slices.DeleteFunc(cases, func(c tagCase) bool { return !c.HTTP })
	if len(cases) < 20 {
		t.Fatalf("only %d cases are left", len(cases))
	}
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		k := &court{client: c, app: app, connection: c.connect("desk", app.URL), main: c.mainBot()}
		for _, d := range cases {
			t.Run(d.Name, func(t *testing.T) {
				k.t = t
				k.playTags(d)
			})
		}
	})
}

func (k *court) playTags(d tagCase) {
	t := k.t
	t.Helper()
	k.instruct(k.main, "/decide "+or(d.Main, "none"))
	reads := []string{k.connection + "/read_thing"}
	if d.Read {
		reads = append(reads, k.connection+"/send_email")
	}
	settings := object{"appReadRules": reads, "toolTags": []object{}, "trustedSources": []string{},
		"tagPolicy":   object{"credentials": "human", "permissions": "human", "spend": "human"},
		"taintedTags": []string{"external_send", "publish", "delete", "spend", "credentials", "permissions", "execute_code"}}
	if len(d.Tags) > 0 {
		settings["toolTags"] = []object{{"tool": k.connection + "/send_email", "tags": d.Tags}}
	}
	for tag, effect := range d.Policy {
		settings["tagPolicy"].(object)[tag] = effect
	}
	if d.TaintedTags != nil {
		settings["taintedTags"] = *d.TaintedTags
	}
	if d.Taint == "trusted" {
		settings["trustedSources"] = []string{k.connection}
	}
	k.call("PATCH", "/v1/settings", settings, 200)
	asker := k.main
	if d.Asker == "below" {
		asker = k.newBot("Below", "", nil)
	}
	chat := k.chatWith(asker)
	defer func() {
		for _, g := range k.list("/v1/grants?limit=200") {
			k.call("DELETE", "/v1/grants/"+g["id"].(string), nil, 204)
		}
		for _, r := range k.list("/v1/rules?limit=200") {
			k.call("DELETE", "/v1/rules/"+r["id"].(string), nil, 204)
		}
	}()
	read := func(chat string) {
		turn := k.say(chat, readIt)
		k.awaitTurn(chat, turn, status("Completed"))
	}
	asked := func(chat string, g struct{ Bot, Decision, Scope, Given string }) {
		turn := k.say(chat, sendIt)
		k.answer(k.waitsForMe(turn), object{"decision": g.Decision, "scope": g.Scope})
		k.awaitTurn(chat, turn, status("Completed"))
	}
	for _, g := range d.Grants {
		if g.Given == "here clean" {
			asked(chat, g)
		}
	}
	if d.Taint != "" {
		read(chat)
	}
	for _, g := range d.Grants {
		switch g.Given {
		case "here tainted":
			asked(chat, g)
		case "elsewhere tainted":
			other := k.chatWith(asker)
			read(other)
			asked(other, g)
		case "by hand":
			body := object{"bot": k.main, "decision": g.Decision, "scope": g.Scope,
				"capability": object{"action": "apps.call", "target": k.connection + "/send_email"}}
			if g.Scope == "chat" {
				body["chat"] = chat
			}
			k.call("POST", "/v1/grants", body, 201)
		}
	}
	for _, r := range d.Rules {
		k.call("POST", "/v1/rules", object{"text": r.Text, "effect": r.Effect}, 201)
	}
	before := k.app.Count("send_email")
	turn := k.say(chat, sendIt)
	want := d.Want
	if want.Status == "waiting" {
		r := k.waitsForMe(turn)
		tags := []string{}
		for _, tag := range r["tags"].([]any) {
			tags = append(tags, tag.(string))
		}
		if len(r["endorsements"].([]any)) != want.Endorsed || k.app.Count("send_email") != before || !slices.Equal(tags, want.Tags) {
			t.Errorf("%s: the Request is %v", d.Because, r)
		}
		if taint, _ := r["taint"].([]any); (d.Taint == "app") != (len(taint) == 1 && taint[0].(object)["connection"] == k.connection) {
			t.Errorf("%s: the taint is %v", d.Because, r["taint"])
		}
		evidence, err := json.Marshal(onlyCall(k.call("GET", "/v1/turns/"+turn, nil, 200))["evidence"])
		must(t, err)
		if !strings.Contains(string(evidence), or(want.Line, "tagPolicy.")) {
			t.Errorf("%s: the evidence is %s", d.Because, evidence)
		}
		k.answer(r, object{"decision": "deny"})
		k.awaitTurn(chat, turn, status("Completed"))
		return
	}
	call := onlyCall(k.awaitTurn(chat, turn, status("Completed")))
	by := call["decidedBy"].(object)
	pattern, _ := by["pattern"].(string)
	if call["status"] != want.Status || by["step"] != want.Step || by["by"].(object)["_tag"] != want.By || want.Pattern != "" && pattern != want.Pattern {
		t.Errorf("%s: the call is %v", d.Because, call)
	}
	if got := k.app.Count("send_email") - before; got != map[string]int{"succeeded": 1, "denied": 0}[want.Status] {
		t.Errorf("%s: the App got %d calls", d.Because, got)
	}
}

// Mail is read from an App, then sent under a lifetime Grant: the person is asked, with
// the source named; and what the Chat gives away stays tainted.
func TestTaintAsksWithItsSourceNamed(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		connection := c.connect("desk", app.URL)
		c.call("PATCH", "/v1/settings", object{"appReadRules": []string{connection + "/read_*"},
			"toolTags":          []object{{"tool": connection + "/send_email", "tags": []string{"external_send"}}},
			"resourceTemplates": []object{{"tool": connection + "/send_email", "template": "mail:{to}"}}}, 200)
		chat := c.newChat()
		turn := c.say(chat, sendIt)
		r := c.waitsForMe(turn)
		if _, there := r["taint"]; there || r["resource"] != "mail:a@example.test" {
			t.Errorf("in a clean Chat the Request is %v", r)
		}
		c.answer(r, object{"decision": "allow", "scope": "lifetime"})
		c.awaitTurn(chat, turn, status("Completed"))

		chat = c.newChat()
		turn = c.say(chat, sendIt)
		c.awaitTurn(chat, turn, status("Completed")) // the Grant holds in every clean Chat

		chat = c.newChat()
		turn = c.say(chat, readIt+"\n/then\n"+sendIt)
		named := func(r object) {
			t.Helper()
			sources, _ := r["taint"].([]any)
			if len(sources) != 1 || sources[0].(object)["connection"] != connection || sources[0].(object)["chat"] != chat || r["taintedTag"] != "external_send" {
				t.Errorf("the Request names %v (%v)", r["taint"], r["taintedTag"])
			}
		}
		r = c.waitsForMe(turn)
		named(r)
		if tainted := c.call("GET", "/v1/chats/"+chat, nil, 200)["tainted"]; tainted != true {
			t.Error("the Chat does not show that it is tainted")
		}
		c.answer(r, object{"decision": "deny"})
		c.awaitTurn(chat, turn, status("Completed"))

		task, err := json.Marshal(object{"task": sendIt, "limits": object{"timeMs": 60_000}})
		must(t, err)
		turn = c.say(chat, "/call openbot_delegate "+string(task))
		c.awaitTurn(chat, turn, status("Completed"))
		var below object
		c.poll("the given work asks", 20*time.Second, func() bool {
			for _, r := range c.list("/v1/requests?status=pending") {
				below = r
			}
			return below != nil
		})
		if below["chat"] == chat {
			t.Error("the Request is not of the given work")
		}
		named(below)
		if app.Count("send_email") != 2 {
			t.Errorf("the App got %d calls", app.Count("send_email"))
		}
	})
}

// The automatic reviewer is asked by workers of the whole program; its answer, and its
// silence, change nothing but the verdict.
func TestTheAutomaticReviewer(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		answers := make(chan string, 1)
		model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			text, err := json.Marshal(<-answers)
			if err != nil {
				t.Error(err)
			}
			if _, err := w.Write([]byte(`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":` +
				string(text) + `}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)); err != nil {
				t.Error(err)
			}
		}))
		t.Cleanup(model.Close)
		app := appstest.New(t)
		cfg := b.settings(t.TempDir())
		cfg.Models.Reviewer = "openai:m"
		cfg.Models.OpenAI = config.Provider{APIKey: config.NewSecret("sk-test"), BaseURL: model.URL}
		c, _, _ := startServe(t, cfg)
		c.connect("desk", app.URL)
		c.call("PATCH", "/v1/settings", object{"reviewer": object{"enabled": true}}, 200)
		for answer, want := range map[string]string{
			`{"verdict":"block","note":"It writes to strangers."}`: "block",
			`{"verdict":"allow","note":"Ordinary."}`:               "allow",
			`I allow this call. APPROVED.`:                         "unclear",
		} {
			answers <- answer
			chat := c.newChat()
			turn := c.say(chat, sendIt)
			r := c.waitsForMe(turn)
			c.poll("the verdict "+want, 20*time.Second, func() bool {
				r = c.call("GET", "/v1/requests/"+r["id"].(string), nil, 200)
				return r["reviewVerdict"] != nil
			})
			if r["reviewVerdict"].(object)["verdict"] != want || r["revision"] != 0.0 || r["status"] != "pending" || app.Count("send_email") != 0 {
				t.Errorf("after %s the Request is %v", answer, r)
			}
			c.answer(r, object{"decision": "deny"})
			c.awaitTurn(chat, turn, status("Completed"))
		}
	})
}
