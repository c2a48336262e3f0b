//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"openbot/apps/appstest"
)

// hesitantModel answers for a judge that decides nothing and for a Bot that endorses.
// Now and then it holds its answer until somebody has been killed.
type hesitantModel struct {
	url     string
	strikes chan chan struct{} // what waits for a kill, closed by whoever killed
	asked   atomic.Int64
}

func newHesitantModel(t *testing.T, every int64) *hesitantModel {
	t.Helper()
	m := &hesitantModel{strikes: make(chan chan struct{})}
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var asked struct{ Model string }
		_ = json.Unmarshal(raw, &asked)
		if m.asked.Add(1)%every == 0 {
			killed := make(chan struct{})
			select {
			case m.strikes <- killed:
				<-killed
			case <-r.Context().Done():
			case <-over:
			}
		}
		message := object{"role": "assistant", "content": `{"quotes":[]}`}
		if asked.Model == "endorser" {
			message = object{"role": "assistant", "content": nil, "tool_calls": []object{{"id": "1", "type": "function",
				"function": object{"name": "openbot_decide", "arguments": `{"decision":"allow","reason":"fine"}`}}}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object{"choices": []object{{"index": 0, "finish_reason": "stop", "message": message}}})
	}))
	m.url = server.URL + "/v1"
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	return m
}

// Workers and schedulers are killed in the middle of judging, of reviews, of answers and
// of calls: every attempt goes its whole way up the chain, and no call goes out
// undecided or twice.
func TestAChainOfDecidersUnderFire(t *testing.T) {
	const chains = 16
	b := newBackend(t)
	migrate(t, b)
	app := appstest.New(t)
	model := newHesitantModel(t, 9)
	address := freeAddress(t)
	start := func(role, listen string) *process {
		p := &process{t: t, role: role, log: io.Discard}
		first := startProcess(t, b, role, listen)
		first.kill()
		p.env = append(slices.Clone(first.env), "OPENAI_API_KEY=sk-test", "OPENAI_BASE_URL="+model.url, "OPENBOT_JUDGE_MODEL=openai:judge")
		p.start()
		t.Cleanup(p.kill)
		return p
	}
	start("api", address)
	prey := []*process{start("worker", "127.0.0.1:0"), start("worker", "127.0.0.1:0"),
		start("scheduler", "127.0.0.1:0"), start("scheduler", "127.0.0.1:0")}
	c := &client{t: t, base: "http://" + address, token: testToken}
	c.awaitReady()
	c.connect("desk", app.URL)
	c.call("POST", "/v1/rules", object{"text": "Nobody sends mail on a Sunday."}, 201)
	c.instruct(c.mainBot(), "/decide allow once fine by me")
	owner := c.newBot("Owner", "Decide.", object{"model": "openai:endorser"})

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	kills := 0
	kill := func() {
		p := prey[random.IntN(len(prey))]
		p.kill()
		p.start()
		kills++
	}
	open := map[string]string{} // Turn by Chat
	var chats []string
	for i := range chains {
		chat := c.chatWith(c.newBot("Worker", "Work.", object{"owner": owner}))
		chats = append(chats, chat)
		open[chat] = c.say(chat, fmt.Sprintf("/call desk__send_email {\"to\":\"%d@example.test\"}\n/say done", i))
	}
	answered, endorsed := 0, 0
	c.poll("every Turn ends", 4*time.Minute, func() bool {
		select {
		case killed := <-model.strikes:
			kill()
			close(killed)
		default:
		}
		for _, r := range c.list("/v1/requests?status=pending&limit=20") {
			decision := "allow"
			if r["unknown"] != nil {
				decision = "deny"
			} else {
				endorsed += len(r["endorsements"].([]any))
			}
			c.answer(r, object{"decision": decision})
			if answered++; answered%8 == 0 && answered <= chains {
				kill()
			}
		}
		for chat := range open {
			if c.call("GET", "/v1/chats/"+chat, nil, 200)["status"] != "idle" {
				return false
			}
			delete(open, chat)
		}
		return true
	})
	sent := sentTo(app)
	for i, chat := range chats {
		history := c.list("/v1/chats/" + chat + "/turns")
		if len(history) != 1 || history[0]["status"] != "Completed" {
			t.Fatalf("chain %d ended as %v", i, history)
		}
		call := onlyCall(history[0])
		n := sent[fmt.Sprintf(`{"to":"%d@example.test"}`, i)]
		by, _ := call["decidedBy"].(object)
		if by == nil || by["step"] != "decider" || by["request"] == nil || foundBy(call, "rule") == "" {
			t.Errorf("call %d was not decided by the chain: %v", i, call)
		}
		if n > 1 || call["status"] == "succeeded" && n != 1 || call["status"] != "succeeded" && call["status"] != "unknown" {
			t.Errorf("call %d is %v and went out %d times", i, call["status"], n)
		}
	}
	if endorsed != 2*chains {
		t.Errorf("the person saw %d endorsements, want those of both Bots: %d", endorsed, 2*chains)
	}
	t.Logf("%d processes were killed, the models were asked %d times", kills, model.asked.Load())
}
