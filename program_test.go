package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"openbot/apps/appstest"
)

// code is the directive that runs a program.
func code(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(object{"program": text})
	must(t, err)
	return "/call openbot_run_code " + string(raw)
}

const mailTwice = `const first = await app.call("desk", "send_email", {to: "a@example.test"}, "Ann asked for it.");
console.log("one is out");
const second = await app.call("desk", "send_email", {to: "b@example.test"}, "Bob too.");
return [first, second];`

// The main round of a program: each of its calls waits for a person, who sees where it
// comes from; between the answers no process holds it, and the server may go away.
func TestAProgramIsDecidedCallByCall(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		cfg := b.settings(t.TempDir())
		c, _, stop := startServe(t, cfg)
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, code(t, mailTwice))
		waiting := c.awaitTurn(chat, turn, status("Waiting"))
		if got := calls(waiting); len(got) != 2 || got[0]["name"] != "openbot_run_code" || got[0]["status"] != "waiting" ||
			got[1]["name"] != "desk__send_email" || len(waiting["waitingFor"].([]any)) != 1 {
			t.Fatalf("the Turn shows %v", waiting)
		}
		r := c.waitsForMe(turn)
		from, ok := r["code"].(object)
		if !ok || from["program"] != mailTwice || from["index"] != 0.0 || from["line"] != 1.0 || from["column"] != 21.0 ||
			r["reason"] != "Ann asked for it." || r["toolCallId"] != calls(waiting)[1]["id"] {
			t.Fatalf("the Request is %v", r)
		}
		stop()
		c, _, _ = startServe(t, cfg)
		c.answer(c.waitsForMe(turn), object{"decision": "allow"})
		c.poll("the second call waits", 20*time.Second, func() bool {
			pending := c.pending(turn)
			return len(pending) == 1 && pending[0]["code"].(object)["index"] == 1.0
		})
		r = c.waitsForMe(turn)
		if from := r["code"].(object); from["line"] != 3.0 || app.Count("send_email") != 1 {
			t.Fatalf("the second Request is %v after %d sends", r, app.Count("send_email"))
		}
		c.answer(r, object{"decision": "allow", "scope": "lifetime"})
		ended := c.awaitTurn(chat, turn, status("Completed"))
		result := calls(ended)[0]["result"].(string)
		if !strings.Contains(result, `["sent to a@example.test","sent to b@example.test"]`) || !strings.Contains(result, "one is out") || app.Count("send_email") != 2 {
			t.Fatalf("the program gave %q after %d sends", result, app.Count("send_email"))
		}
		// The Grant holds for programs too, many calls at a time.
		turn = c.say(chat, code(t, `const all = await Promise.all([1, 2, 3, 4, 5].map(n => app.call("desk", "send_email", {to: n + "@example.test"}, "all")));
return all.length;`))
		ended = c.awaitTurn(chat, turn, status("Completed"))
		if result := calls(ended)[0]["result"].(string); !strings.Contains(result, "returned: 5") || app.Count("send_email") != 7 {
			t.Fatalf("the program gave %q after %d sends", result, app.Count("send_email"))
		}
	})
}

// A program catches a denial, one that never ends is killed, and an interrupt takes the
// calls of a program with it.
func TestProgramsEnd(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, code(t, `return await app.call("desk", "send_email", {to: "a@example.test"}, "why").catch(e => "caught " + e.message)`))
		c.answer(c.waitsForMe(turn), object{"decision": "deny", "reason": "not today"})
		ended := c.awaitTurn(chat, turn, status("Completed"))
		if result := calls(ended)[0]["result"].(string); !strings.Contains(result, "caught Denied by a person. Reason: not today.") {
			t.Fatalf("the program gave %q", result)
		}
		turn = c.say(chat, code(t, `for (;;) {}`))
		other := c.newChat()
		beside := c.say(other, code(t, `await app.call("desk", "send_email", {to: "a@example.test"}, "why")`))
		r := c.waitsForMe(beside)
		c.call("POST", "/v1/chats/"+other+"/interrupt", object{"delegations": false}, 200)
		if stopped := c.call("GET", "/v1/turns/"+beside, nil, 200); stopped["status"] != "Interrupted" || calls(stopped)[0]["status"] != "cancelled" ||
			calls(stopped)[1]["status"] != "cancelled" || c.call("GET", "/v1/requests/"+r["id"].(string), nil, 200)["status"] != "cancelled" {
			t.Fatalf("the stopped Turn is %v", stopped)
		}
		ended = c.awaitTurn(chat, turn, status("Completed"))
		if call := calls(ended)[0]; call["status"] != "failed" || !strings.Contains(call["result"].(string), "was stopped") {
			t.Fatalf("the program that never ends gave %v", call)
		}
		if app.Count("send_email") != 0 {
			t.Error("a call went out that nobody allowed")
		}
	})
}
