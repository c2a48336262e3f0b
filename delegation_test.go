package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/apps/appstest"
)

// delegate is the directive that gives a task.
func delegate(t testing.TB, limits object, task ...string) string {
	t.Helper()
	raw, err := json.Marshal(object{"task": strings.Join(task, "\n"), "limits": limits})
	must(t, err)
	return "/call openbot_delegate " + string(raw)
}

// awaitWork polls a piece of work until it is as wanted.
func (c *client) awaitWork(id string, want ...string) object {
	c.t.Helper()
	var last object
	c.poll(fmt.Sprintf("the work is %v", want), time.Minute, func() bool {
		last = c.call("GET", "/v1/delegations/"+id, nil, 200)
		return slices.Contains(want, last["status"].(string))
	})
	return last
}

// onlyWork gives the one piece of work that a Chat gave away.
func (c *client) onlyWork(chat string) object {
	c.t.Helper()
	var list []object
	c.poll("the Chat gave work away", time.Minute, func() bool {
		list = c.list("/v1/chats/" + chat + "/delegations")
		return len(list) > 0
	})
	if len(list) != 1 {
		c.t.Fatalf("the Chat gave %d pieces of work", len(list))
	}
	return list[0]
}

// toTheEnd reads a stream to its end.
func toTheEnd(events <-chan object) []object {
	var all []object
	for ev := range events {
		all = append(all, ev)
	}
	return all
}

func sequences(events []object) []int64 {
	out := make([]int64, len(events))
	for i, ev := range events {
		out[i] = int64(ev["sequence"].(float64))
	}
	return out
}

func TestDelegationOverHTTP(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		chat := c.newChat()
		c.say(chat, delegate(t, object{"timeMs": 60_000, "steps": 2},
			"/call openbot_list_bots", "/then", "/call openbot_list_bots", "/then", `/call desk__send_email {"to":"a@example.test"}`, "/then", "/say sent"))
		work := c.onlyWork(chat)
		id, execution := work["id"].(string), work["executionId"].(string)
		work = c.awaitWork(id, "paused")
		pause := work["pause"].(object)
		if pause["limit"] != "steps" || work["executionStatus"] != "running" || work["usage"].(object)["steps"] != 2.0 || pause["request"] == nil {
			t.Fatalf("the paused work is %v", work)
		}
		task := c.call("GET", "/v1/chats/"+work["chat"].(string), nil, 200)
		if task["status"] != "paused" || task["kind"] != "task" || task["parent"].(object)["delegation"] != id {
			t.Errorf("the task Chat is %v", task)
		}
		if turn := c.call("GET", "/v1/turns/"+task["turn"].(string), nil, 200); turn["status"] != "Waiting" || turn["response"].(object)["status"] != "incomplete" {
			t.Errorf("the Turn of paused work is %v", turn)
		}

		// Readers that come early, late and in between see the same log.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		path := "/v1/executions/" + execution + "/observe?afterSequence="
		early := c.observe(ctx, path+"0")
		request := c.call("GET", "/v1/requests/"+pause["request"].(string), nil, 200)
		c.answer(request, object{"decision": "allow", "reason": "go on"})
		var call object
		c.poll("the call waits", time.Minute, func() bool {
			for _, r := range c.list("/v1/requests?status=pending") {
				call = r
			}
			return call != nil
		})
		c.answer(call, object{"decision": "allow"})
		if work = c.awaitWork(id, "completed"); work["result"] != "sent" || work["executionStatus"] != "completed" || work["pause"] != nil {
			t.Errorf("the work ended as %v", work)
		}
		all := sequences(toTheEnd(early))
		for i, n := range all {
			if n != int64(i+1) {
				t.Fatalf("the log has the sequences %v", all)
			}
		}
		if late := sequences(toTheEnd(c.observe(ctx, path+"0"))); !slices.Equal(all, late) {
			t.Errorf("a late reader sees %v, an early one %v", late, all)
		}
		if rest := sequences(toTheEnd(c.observe(ctx, path+"3"))); !slices.Equal(all[3:], rest) {
			t.Errorf("after 3 come %v", rest)
		}
		c.call("GET", path+"100000", nil, 422)
		if run := c.call("GET", "/v1/executions/"+execution, nil, 200); run["status"] != "completed" || int(run["lastSequence"].(float64)) != len(all) {
			t.Errorf("the run is %v", run)
		}

		// A new round by a person, and the same command again.
		message := object{"text": "/say second round", "commandKey": "round-2"}
		first := c.call("POST", "/v1/chats/"+work["chat"].(string)+"/messages", message, 202)
		again := c.call("POST", "/v1/chats/"+work["chat"].(string)+"/messages", message, 202)
		if first["delegation"] == nil || first["delegation"] != again["delegation"] || first["turn"] != again["turn"] {
			t.Errorf("the same command gave %v and %v", first, again)
		}
		second := c.awaitWork(first["delegation"].(string), "completed")
		if second["result"] != "second round" || second["executionId"] == execution {
			t.Errorf("the second round is %v", second)
		}
		if log := toTheEnd(c.observe(ctx, "/v1/executions/"+second["executionId"].(string)+"/observe?afterSequence=0")); len(log) == 0 || sequences(log)[0] <= all[len(all)-1] {
			t.Errorf("the log of the second round is %v", log)
		}

		// Cancels.
		c.say(chat, delegate(t, object{"timeMs": 60_000}, `/call desk__send_email {"to":"b@example.test"}`))
		var open string
		c.poll("new work runs", time.Minute, func() bool {
			for _, g := range c.list("/v1/chats/" + chat + "/delegations") {
				if g["status"] == "running" {
					open = g["id"].(string)
				}
			}
			return open != ""
		})
		stop := object{"commandKey": "stop-1"}
		receipt := c.call("POST", "/v1/delegations/"+open+"/cancel", stop, 202)
		if retry := c.call("POST", "/v1/delegations/"+open+"/cancel", stop, 202); retry["acceptedAt"] != receipt["acceptedAt"] || retry["commandKey"] != "stop-1" {
			t.Errorf("the retry gave %v, the first %v", retry, receipt)
		}
		c.awaitWork(open, "cancelled")
		if problem := c.call("POST", "/v1/delegations/"+open+"/cancel", object{"commandKey": "stop-2"}, 409); problem["_tag"] != "DelegationConflict" {
			t.Errorf("a cancel of ended work gave %v", problem)
		}
		c.call("POST", "/v1/delegations/"+id+"/cancel", stop, 409) // the key of another command
		c.call("POST", "/v1/delegations/"+open+"/cancel", object{}, 422)
		for _, absent := range []string{"dlg_x", "dlg_" + strings.Repeat("0", 32), open + "0"} {
			if problem := c.call("GET", "/v1/delegations/"+absent, nil, 404); problem["_tag"] != "DelegationNotFound" {
				t.Errorf("%s gave %v", absent, problem)
			}
			c.call("POST", "/v1/delegations/"+absent+"/cancel", object{"commandKey": "k"}, 404)
		}
		c.call("GET", "/v1/executions/x", nil, 404)
		c.call("GET", "/v1/executions/x/observe", nil, 404)
		if sent := sentTo(app); len(sent) != 1 {
			t.Errorf("the App got %v", sent)
		}
	})
}
