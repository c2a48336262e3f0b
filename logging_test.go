package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"openbot/apps/appstest"
)

// The log of a whole round leads from the HTTP request to the Request, its Chat and its
// Turn, and holds nothing that anybody wrote and no secret.
func TestTheLogHasIDsAndNothingThatSomebodyWrote(t *testing.T) {
	out := &printed{}
	app := appstest.New(t)
	cfg := backend{name: "SQLite"}.settings(t.TempDir())
	program, err := Open(t.Context(), Options{Config: cfg, Role: "serve", Out: &printed{},
		Logger: slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- program.Run(ctx) }()
	c := &client{t: t, base: program.Address(), token: testToken}
	c.awaitReady()
	c.connect("desk", app.URL)
	chat := c.newChat()

	// Another word for each place where somebody writes.
	turn := c.say(chat, `/call desk__send_email {"to":"argumentword@example.test","openbot_reason":"reasonword"}`+"\n/say answerword")
	c.awaitTurn(chat, turn, status("Waiting"))
	request := c.pending(turn)[0]
	body := strings.NewReader(`{"expected":0,"decision":"allow","reason":"deciderword"}`)
	answer, err := http.NewRequestWithContext(ctx, "POST", c.base+"/v1/requests/"+request["id"].(string), body)
	must(t, err)
	answer.Header.Set("Authorization", "Bearer "+testToken)
	answer.Header.Set("Content-Type", "application/json")
	answer.Header.Set("X-Request-Id", "the-answer-1")
	response, err := http.DefaultClient.Do(answer)
	must(t, err)
	must(t, response.Body.Close())
	c.awaitTurn(chat, turn, status("Completed"))
	if status, _, err := c.try("GET", "/v1/chats/"+chat+"?cursor=queryword", nil); err != nil || status == 0 {
		t.Fatal(status, err)
	}
	cancel()
	must(t, <-done)

	text := out.String()
	for _, word := range []string{"argumentword", "reasonword", "answerword", "deciderword", "queryword", "send_email",
		testToken, cfg.SecretKey.Reveal(), "Bearer"} {
		if strings.Contains(text, word) {
			t.Errorf("the log holds %q", word)
		}
	}
	lines := map[string]object{}
	for line := range strings.Lines(text) {
		var fields object
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("a line is no JSON: %v: %s", err, line)
		}
		lines[fields["msg"].(string)] = fields
	}
	for what, want := range map[string]object{
		"request waits":   {"request": request["id"], "chat": chat, "turn": turn, "call": request["toolCallId"]},
		"request decided": {"request": request["id"], "chat": chat, "turn": turn, "decision": "allow", "by": "Person"},
		"turn ended":      {"turn": turn, "chat": chat, "status": "Completed"},
	} {
		for field, value := range want {
			if lines[what][field] != value {
				t.Errorf("%s shows %s %v, want %v", what, field, lines[what][field], value)
			}
		}
	}
	if lines["request decided"]["httpRequest"] != response.Header.Get("X-Request-Id") || response.StatusCode != 200 {
		t.Errorf("the answer (%d) cannot be found: %v", response.StatusCode, lines["request decided"])
	}
}
