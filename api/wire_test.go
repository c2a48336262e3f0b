package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// keysOf gives the names of a JSON object in their order.
func keysOf(t *testing.T, raw string) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(raw))
	_, err := d.Token()
	must(t, err)
	var keys []string
	for d.More() {
		name, err := d.Token()
		must(t, err)
		keys = append(keys, name.(string))
		var value json.RawMessage
		must(t, d.Decode(&value))
	}
	return keys
}

// A client of the older document reads a Request unchanged: the same fields in
// the same order, with the newer words beside the older ones.
func TestTheWireFormOfARequest(t *testing.T) {
	h := newHouse(t)
	con := h.connect()
	chat, turn, request := h.asking()
	raw := h.call("GET", "/v1/requests/"+request, "").body
	want := []string{"id", "bot", "agent", "capability", "reason", "approver", "chain", "chat", "session", "turn", "toolCallId",
		"arguments", "app", "endorsements", "tags", "reviewVerdict", "status", "decision", "revision", "createdAt", "expiresAt"}
	if got := keysOf(t, raw); !slices.Equal(got, want) {
		t.Errorf("the fields are %v, not %v", got, want)
	}
	older := []string{"id", "agent", "capability", "reason", "approver", "chain", "session", "turn", "toolCallId",
		"endorsements", "status", "decision", "revision", "createdAt", "expiresAt"}
	got := h.ok(200, "GET", "/v1/requests/"+request, "")
	for _, name := range older {
		if _, there := got[name]; !there {
			t.Errorf("the older field %s is missing", name)
		}
	}
	main, me := string(h.me.mainBot), string(h.me.member)
	for name, want := range map[string]any{"id": request, "agent": main, "bot": main, "chat": chat, "session": chat, "turn": turn,
		"status": "pending", "decision": nil, "reviewVerdict": nil, "revision": 0.0, "reason": "Ann asked for it.",
		"createdAt": float64(h.clock.now().UnixMilli()), "expiresAt": float64(h.clock.now().UnixMilli() + 86400000)} {
		if got[name] != want {
			t.Errorf("%s is %v, not %v", name, got[name], want)
		}
	}
	for name, want := range map[string]string{
		"capability":   `{"action":"apps.call","target":"` + con + `/send_email"}`,
		"approver":     `{"_tag":"Person","userId":"` + me + `"}`,
		"chain":        `["` + main + `"]`,
		"endorsements": `[]`,
		"tags":         `["write","network"]`,
	} {
		var whole map[string]json.RawMessage
		must(t, json.Unmarshal([]byte(raw), &whole))
		if string(whole[name]) != want {
			t.Errorf("%s is %s, not %s", name, whole[name], want)
		}
	}
	app := keysOf(t, string(mustRaw(t, raw, "app")))
	if want := []string{"connection", "revision", "tool", "arguments", "sha256"}; !slices.Equal(app, want) {
		t.Errorf("app has %v, not %v", app, want)
	}
	decided := h.call("POST", "/v1/requests/"+request, `{"expected":0,"decision":"allow"}`).body
	if got, want := keysOf(t, string(mustRaw(t, decided, "decision"))), []string{"decision", "scope", "reason", "rule", "by", "at"}; !slices.Equal(got, want) {
		t.Errorf("decision has %v, not %v", got, want)
	}
}

func mustRaw(t *testing.T, body, name string) json.RawMessage {
	t.Helper()
	var whole map[string]json.RawMessage
	must(t, json.Unmarshal([]byte(body), &whole))
	return whole[name]
}

// Secrets that went in never come out, from any route.
func TestSecretsStayIn(t *testing.T) {
	h := newHouse(t)
	mine := h.owned()
	tool := h.ok(201, "POST", "/v1/tools", `{"name":"other","schema":{"type":"object"},"endpoint":"https://x.example"}`)
	for _, o := range h.contract.operations {
		if o.method != "GET" || strings.HasSuffix(o.path, "observe") || strings.HasSuffix(o.path, "events") {
			continue
		}
		body := h.call("GET", o.at(mine), "").body
		for _, secret := range []string{"hush", firstSecret, text(tool["secret"]), "sealed"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s gives %s", o.id, secret)
			}
		}
	}
}
