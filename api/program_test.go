package api_test

import (
	"slices"
	"testing"

	"openbot/domain"
	"openbot/domain/engine"
)

// The Request of a program's call shows the program; the Turn shows the program and its
// calls, and waits for the Request alone.
func TestTheCallsOfAProgram(t *testing.T) {
	h := newHouse(t)
	g := newGolden(t)
	h.connect()
	h.program = func(run *engine.ProgramRun) domain.ProgramOutcome {
		asked := domain.ProgramAsked{Position: domain.ProgramPosition{Index: 0, Line: 1, Column: 7}, Connection: "mail", Tool: "send_email",
			Reason: "Ann asked for it.", Arguments: []byte(`{"to":"ann@example.com"}`)}
		trace := domain.ProgramTrace{Calls: []domain.ProgramAsked{asked}}
		if len(run.Answers) == 0 {
			return domain.ProgramOutcome{Status: domain.ProgramWaiting, Trace: trace}
		}
		return domain.ProgramOutcome{Status: domain.ProgramFinished, Result: []byte(`"` + run.Answers[0].Text + `"`), Trace: trace}
	}
	chat, turn, request := h.askingOf(`/call openbot_run_code {"program":"await app.call(\"mail\", \"send_email\", {to: \"ann@example.com\"})"}`, t)
	raw := h.call("GET", "/v1/requests/"+request, "")
	g.same("requests/read-200-code", raw)
	want := []string{"toolCallId", "arguments", "app", "code", "endorsements"}
	keys := keysOf(t, raw.body)
	if at := slices.Index(keys, "toolCallId"); at < 0 || len(keys) < at+5 || !slices.Equal(keys[at:at+5], want) {
		t.Errorf("the fields are %v", keys)
	}
	h.signIn(h.secret).get("/").shows(t, "A program of the Bot makes this call: its call 1, at line 1, column 7", "await app.call(&#34;mail&#34;")
	g.same("turns/read-200-program", h.call("GET", "/v1/turns/"+turn, ""))
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"allow"}`)
	h.work()
	g.same("turns/read-200-program-ended", h.call("GET", "/v1/turns/"+turn, ""))
	g.same("chats/items-200-program", h.call("GET", "/v1/chats/"+chat+"/items", ""))
}
