package api_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// given gives work away, does what follows, and gives the newest piece and its run.
func (h *house) given(task string, more ...string) (id, run string) {
	h.t.Helper()
	chat, _ := h.chat(delegating(h.t, task, more...))
	list := h.call("GET", "/v1/chats/"+chat+"/delegations", "").list(h.t)
	if len(list) != 1 {
		h.t.Fatalf("the Chat gave %v", list)
	}
	return text(list[0]["id"]), text(list[0]["executionId"])
}

// delegating is a message that gives a task; more are further fields, name and JSON by
// turns.
func delegating(t *testing.T, task string, more ...string) string {
	t.Helper()
	fields := map[string]json.RawMessage{"limits": json.RawMessage(`{"timeMs":60000}`)}
	for i := 0; i+1 < len(more); i += 2 {
		fields[more[i]] = json.RawMessage(more[i+1])
	}
	var err error
	fields["task"], err = json.Marshal(task)
	must(t, err)
	raw, err := json.Marshal(fields)
	must(t, err)
	return "/call openbot_delegate " + string(raw)
}

func TestWorkIsGolden(t *testing.T) {
	h := newHouse(t)
	h.connect()
	g := newGolden(t)
	done, run := h.given(`/say found it`, "reason", `"It is quicker."`)
	g.same("delegations/read-200-completed", h.call("GET", "/v1/delegations/"+done, ""))
	g.same("executions/read-200-completed", h.call("GET", "/v1/executions/"+run, ""))
	g.same("delegations/cancel-409", h.call("POST", "/v1/delegations/"+done+"/cancel", `{"commandKey":"stop-1"}`))

	top, topRun := h.given(delegating(t, `/call mail__send_email {"to":"ann@example.com"}`)+"\n/call openbot_list_bots\n/then\n/say never", "limits", `{"timeMs":60000,"steps":1,"budgetMicros":9}`)
	chat := text(h.ok(200, "GET", "/v1/delegations/"+top, "")["parent"].(map[string]any)["chat"])
	g.same("delegations/list-200-paused", h.call("GET", "/v1/chats/"+chat+"/delegations", ""))
	task := text(h.ok(200, "GET", "/v1/delegations/"+top, "")["chat"])
	g.same("delegations/list-200-below", h.call("GET", "/v1/chats/"+task+"/delegations", ""))
	g.same("requests/list-200-continue", h.call("GET", "/v1/requests?action=delegations.continue", ""))
	g.same("executions/read-200-running", h.call("GET", "/v1/executions/"+topRun, ""))
	g.same("chats/read-200-task", h.call("GET", "/v1/chats/"+task, ""))
	g.same("delegations/cancel-202", h.call("POST", "/v1/delegations/"+top+"/cancel", `{"commandKey":"stop-1"}`))
	g.same("executions/read-200-cancelling", h.call("GET", "/v1/executions/"+topRun, ""))
	h.work()
	h.clock.advance(time.Hour)
	g.same("delegations/cancel-202", h.call("POST", "/v1/delegations/"+top+"/cancel", `{"commandKey":"stop-1"}`))
	g.same("delegations/read-200-cancelled", h.call("GET", "/v1/delegations/"+top, ""))

	bot := text(h.ok(201, "POST", "/v1/bots", `{"name":"Writer","role":"Writes.","instructions":"","shared":true}`)["id"])
	asked, _ := h.given(`/say written`, "bot", `"`+bot+`"`, "reason", `"It writes."`)
	g.same("delegations/read-200-authorizing", h.call("GET", "/v1/delegations/"+asked, ""))
	g.same("requests/list-200-delegate", h.call("GET", "/v1/requests?action=agents.delegate", ""))
	request := h.call("GET", "/v1/requests?action=bots.delegate", "").list(t)[0]
	h.ok(200, "POST", "/v1/requests/"+text(request["id"]), `{"expected":0,"decision":"deny","reason":"Write it yourself."}`)
	h.work()
	g.same("delegations/read-200-refused", h.call("GET", "/v1/delegations/"+asked, ""))

	g.same("delegations/read-404", h.call("GET", "/v1/delegations/dlg_1", ""))
	g.same("delegations/list-404", h.call("GET", "/v1/chats/chat_1/delegations", ""))
	g.same("delegations/cancel-404", h.call("POST", "/v1/delegations/dlg_1/cancel", `{"commandKey":"x"}`))
	g.same("delegations/cancel-422", h.call("POST", "/v1/delegations/"+asked+"/cancel", `{"commandKey":""}`))
	g.same("executions/read-404", h.call("GET", "/v1/executions/x", ""))
}

// A cancel under another key, and a cancel that is sent again, stop the work once.
func TestACancelIsKeptUnderItsKey(t *testing.T) {
	h := newHouse(t)
	h.connect()
	id, run := h.given(`/call mail__send_email {"to":"ann@example.com"}`)
	path := "/v1/delegations/" + id + "/cancel"
	first := h.ok(202, "POST", path, `{"commandKey":"a"}`)
	if first["executionId"] != run || first["commandKey"] != "a" || first["acceptedAt"] != float64(h.clock.now().UnixMilli()) {
		t.Errorf("the receipt is %v", first)
	}
	h.clock.advance(time.Second)
	if again := h.ok(202, "POST", path, `{"commandKey":"a"}`); again["acceptedAt"] != first["acceptedAt"] {
		t.Errorf("the same key gave %v, not %v", again, first)
	}
	other := h.ok(202, "POST", path, `{"commandKey":"b"}`) // it is being stopped
	if other["commandKey"] != "b" {
		t.Errorf("another key gave %v", other)
	}
	h.work()
	h.refused(h.call("POST", path, `{"commandKey":"c"}`), 409, "DelegationConflict")
	h.ok(202, "POST", path, `{"commandKey":"a"}`)
	another, _ := h.given(`/call mail__send_email {"to":"ann@example.com"}`)
	h.refused(h.call("POST", "/v1/delegations/"+another+"/cancel", `{"commandKey":"a"}`), 409, "IdempotencyConflict")
}

// The events of a run begin with its first and end with its last, whatever else its Chat
// has, and whoever comes back goes on without loss or repeat.
func TestObserveARun(t *testing.T) {
	h := newHouse(t)
	server := httptest.NewServer(h.handler)
	t.Cleanup(server.Close)
	id, run := h.given(`/say one`)
	chat := text(h.ok(200, "GET", "/v1/delegations/"+id, "")["chat"])
	again := h.ok(202, "POST", "/v1/chats/"+chat+"/messages", `{"text":"/say two","commandKey":"m"}`)
	if same := h.ok(202, "POST", "/v1/chats/"+chat+"/messages", `{"text":"/say two","commandKey":"m"}`); fmt.Sprint(same) != fmt.Sprint(again) || again["delegation"] == id {
		t.Errorf("the same message gave %v and %v", again, same)
	}
	read := func(path string, headers ...string) (kinds []string, ids []string) {
		t.Helper()
		r := h.open(server, path, headers...)
		for e := r.next(); e != nil; e = r.next() { // it ends by itself
			kinds, ids = append(kinds, e.kind+" "+text(e.data["status"])), append(ids, e.id)
			if e.data["chat"] != chat {
				t.Errorf("an event of another Chat: %v", e.data)
			}
		}
		return kinds, ids
	}
	kinds, ids := read("/v1/executions/" + run + "/observe")
	want := "delegation.status queued|turn.status Queued|delegation.status running|turn.status Completed|delegation.status completed"
	if got := strings.Join(kinds, "|"); got != want {
		t.Errorf("the run was told as %s, not %s", got, want)
	}
	for _, resume := range [][]string{{"?afterSequence=" + ids[1]}, {"", "Last-Event-ID", ids[1]}} {
		if _, rest := read("/v1/executions/"+run+"/observe"+resume[0], resume[1:]...); strings.Join(rest, " ") != strings.Join(ids[2:], " ") {
			t.Errorf("%v goes on with %v, not %v", resume, rest, ids[2:])
		}
	}
	if _, rest := read("/v1/executions/" + run + "/observe?afterSequence=" + ids[len(ids)-1]); len(rest) != 0 {
		t.Errorf("after the last event came %v", rest)
	}
	second := text(h.ok(200, "GET", "/v1/delegations/"+text(again["delegation"]), "")["executionId"])
	live := h.open(server, "/v1/executions/"+second+"/observe")
	first := live.next()
	if first == nil || first.id <= ids[len(ids)-1] {
		t.Fatalf("the second run begins with %+v, the first ended with %s", first, ids[len(ids)-1])
	}
	h.work()
	var last *event
	for e := live.next(); e != nil; e = live.next() {
		last = e
	}
	if last == nil || last.kind != "delegation.status" || last.data["status"] != "completed" {
		t.Errorf("the second run ended with %+v", last)
	}
	h.refused(h.call("GET", "/v1/executions/"+run+"/observe?afterSequence=9999", ""), 422, "InvalidInput")
}
