//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"openbot/apps/appstest"
	"openbot/config"
)

var aimockListens = regexp.MustCompile(`listening on (http://\S+)`)

// startAimock runs the mock of model servers from npm and gives its address. What it
// answers is told later, with teach.
func startAimock(t *testing.T) string {
	t.Helper()
	program := npmProgram(t, "@copilotkit/aimock/dist/cli.js")
	fixtures := filepath.Join(t.TempDir(), "fixtures.json")
	must(t, os.WriteFile(fixtures, []byte(`{"fixtures":[{"match":{"userMessage":"nobody says this"},"response":{"content":"no"}}]}`), 0o600))
	cmd := exec.CommandContext(t.Context(), "node", program, "-p", "0", "-f", fixtures, "--strict")
	output, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = cmd.Stdout
	must(t, cmd.Start())
	address := make(chan string, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		defer close(address)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if found := aimockListens.FindStringSubmatch(lines.Text()); found != nil && len(address) == 0 {
				address <- found[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
	})
	found, ok := <-address
	if !ok {
		t.Fatal("aimock ended before it listened")
	}
	return found
}

// tell posts to the control interface of aimock.
func tell(t *testing.T, address, path string, body any) {
	t.Helper()
	raw, err := json.Marshal(body)
	must(t, err)
	response, err := http.Post(address+"/__aimock/"+path, "application/json", bytes.NewReader(raw))
	must(t, err)
	defer response.Body.Close()
	if said, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		t.Fatalf("aimock answered %s: %s", response.Status, said)
	}
}

// teach adds what aimock answers when it is asked for a model.
func teach(t *testing.T, address, model string, response object) {
	t.Helper()
	tell(t, address, "fixtures", object{"fixtures": []object{{"match": object{"model": model}, "response": response}}})
}

// quoting is the judge's answer that quotes one Rule.
func quoting(t *testing.T, rule, verdict, quote string) object {
	t.Helper()
	raw, err := json.Marshal(object{"quotes": []object{{"rule": rule, "verdict": verdict, "quote": quote}}})
	must(t, err)
	return object{"content": string(raw)}
}

// The judge and deciding Bots over both protocols, as a server of others speaks them.
func TestJudgeAndDecidersOverForeignEndpoints(t *testing.T) {
	for _, protocol := range []string{"openai", "anthropic"} {
		t.Run(protocol, func(t *testing.T) {
			address := startAimock(t)
			app := appstest.New(t)
			cfg := backend{}.settings(t.TempDir())
			cfg.Models.OpenAI = config.Provider{APIKey: config.NewSecret("sk-test"), BaseURL: address + "/v1"}
			cfg.Models.Anthropic = config.Provider{APIKey: config.NewSecret("sk-ant-test"), BaseURL: address}
			c, _, _ := startServe(t, cfg)
			c.connect("desk", app.URL)
			judge := func(name string) {
				c.call("PATCH", "/v1/settings", object{"judgeModel": protocol + ":" + name}, 200)
			}
			const text = "Mail to colleagues may go out. Mail to customers is for people to decide."
			rule := c.call("POST", "/v1/rules", object{"text": text}, 201)["id"].(string)
			teach(t, address, "judge-true", quoting(t, rule, "allow", "Mail to colleagues may go out."))
			teach(t, address, "judge-false", quoting(t, rule, "allow", "Mail to customers may go out."))
			teach(t, address, "judge-part", quoting(t, rule, "allow", "Mail to customers"))
			teach(t, address, "judge-deny", quoting(t, rule, "deny", "Mail to customers is for people to decide."))
			teach(t, address, "decider", object{"toolCalls": []object{{"name": "openbot_decide",
				"arguments": `{"decision":"deny","reason":"not on a Friday"}`}}})
			teach(t, address, "endorser", object{"toolCalls": []object{{"name": "openbot_decide",
				"arguments": `{"decision":"allow","scope":"once","reason":"looks right"}`}}})

			run := func(bot string) (chat, turn string) {
				chat = c.chatWith(bot)
				return chat, c.say(chat, `/call desk__send_email {"to":"a@example.test"}`)
			}
			me := c.mainBot()
			judge("judge-true")
			chat, turn := run(me)
			by := onlyCall(c.awaitTurn(chat, turn, status("Completed")))["decidedBy"].(object)
			if by["step"] != "rule" || by["rule"] != rule || by["quote"] != "Mail to colleagues may go out." || app.Count("send_email") != 1 {
				t.Fatalf("with a true quote the call was decided by %v and went out %d times", by, app.Count("send_email"))
			}
			judge("judge-deny")
			chat, turn = run(me)
			if call := onlyCall(c.awaitTurn(chat, turn, status("Completed"))); call["status"] != "denied" ||
				!strings.Contains(call["result"].(string), "Mail to customers is for people to decide.") {
				t.Errorf("with a quote that denies the call is %v", call)
			}
			asksThePerson := func(chat, turn, evidence string) {
				t.Helper()
				call := onlyCall(c.awaitTurn(chat, turn, status("Waiting")))
				if !strings.Contains(foundBy(call, "rule"), evidence) || c.pending(turn)[0]["approver"].(object)["_tag"] != "Person" {
					t.Errorf("the call is %v, want it asked with the evidence %q", call, evidence)
				}
			}
			for _, name := range []string{"judge-false", "judge-part"} {
				judge(name)
				chat, turn = run(me)
				asksThePerson(chat, turn, "quote does not stand in "+rule)
			}

			endorser := c.newBot("Endorser", "Decide.", object{"model": protocol + ":endorser"})
			decider := c.newBot("Decider", "Decide.", object{"model": protocol + ":decider"})
			chat, turn = run(c.newBot("Denied", "Work.", object{"owner": decider}))
			denied := onlyCall(c.awaitTurn(chat, turn, status("Completed")))
			if denied["status"] != "denied" || denied["decidedBy"].(object)["by"].(object)["botId"] != decider ||
				!strings.Contains(denied["result"].(string), "not on a Friday") {
				t.Errorf("after a Bot's deny the call is %v", denied)
			}
			_, turn = run(c.newBot("Endorsed", "Work.", object{"owner": endorser}))
			r := c.waitsForMe(turn)
			said, _ := r["endorsements"].([]any)
			if len(said) != 1 || said[0].(object)["bot"] != endorser || said[0].(object)["reason"] != "looks right" {
				t.Errorf("after a Bot's allow the Request is %v", r)
			}

			judge("judge-true")
			tell(t, address, "chaos", object{"rateLimitRate": 1})
			chat, turn = run(me)
			asksThePerson(chat, turn, "could not be asked")
			if got := app.Count("send_email"); got != 1 {
				t.Errorf("the App got %d calls, want 1", got)
			}
		})
	}
}
