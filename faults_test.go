package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openbot/apps/appstest"
	"openbot/build/testenv/services"
	"openbot/config"
)

// With Redis down the API still reads and accepts, without slowing down, and the
// work goes on when it is back.
func TestRedisAway(t *testing.T) {
	b := newBackend(t)
	app := appstest.New(t)
	c, _, _ := startServe(t, b.settings(t.TempDir()))
	c.connect("desk", app.URL)
	chat := c.newChat()
	turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
	c.awaitTurn(chat, turn, status("Waiting"))
	b.server.Kill()
	c.poll("the server says that its queue is away", 10*time.Second, func() bool {
		return c.call("GET", "/readyz", nil, 200)["queue"] == "degraded"
	})
	asked := time.Now()
	c.answer(c.pending(turn)[0], object{"decision": "allow"})
	other := c.newChat()
	second := c.say(other, "/say hello")
	if took := time.Since(asked); took > 3*time.Second {
		t.Errorf("with Redis down four calls took %s", took)
	}
	must(t, b.server.Restart())
	back := time.Now()
	c.awaitTurn(chat, turn, status("Completed"))
	c.awaitTurn(other, second, status("Completed"))
	if took := time.Since(back); took > 15*time.Second {
		t.Errorf("the work went on %s after Redis was back, want within 15 s", took)
	}
	if got := app.Count("send_email"); got != 1 {
		t.Errorf("the App got %d calls, want 1", got)
	}
}

// With the database down every call says so and nothing is half done.
func TestDatabaseAway(t *testing.T) {
	b := newBackend(t)
	postgres, err := services.StartPostgres("", services.PostgresOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, postgres.Stop()) })
	b.database, err = postgres.NewDatabase("openbot")
	must(t, err)
	app := appstest.New(t)
	c, _, _ := startServe(t, b.settings(t.TempDir()))
	c.connect("desk", app.URL)
	chat := c.newChat()
	turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
	c.awaitTurn(chat, turn, status("Waiting"))
	r := c.pending(turn)[0]
	postgres.Kill()
	for _, call := range []struct {
		method, path string
		body         any
	}{
		{"GET", "/v1/me", nil}, {"GET", "/v1/chats", nil}, {"GET", "/readyz", nil},
		{"POST", "/v1/requests/" + r["id"].(string), object{"expected": 0, "decision": "allow"}},
		{"POST", "/v1/chats/" + chat + "/messages", object{"text": "hello"}},
	} {
		got, raw, err := c.try(call.method, call.path, call.body)
		must(t, err)
		var problem object
		decode(t, raw, &problem)
		if got != 503 || problem["_tag"] == nil {
			t.Errorf("%s %s without a database gave %d %s", call.method, call.path, got, raw)
		}
	}
	must(t, postgres.Restart())
	c.poll("the server is ready again", 20*time.Second, func() bool {
		got, _, err := c.try("GET", "/readyz", nil)
		return err == nil && got == 200
	})
	if again := c.call("GET", "/v1/requests/"+r["id"].(string), nil, 200); again["status"] != "pending" {
		t.Errorf("the Request is %v after an answer that was refused", again["status"])
	}
	c.answer(r, object{"decision": "allow"})
	c.awaitTurn(chat, turn, status("Completed"))
}

// An App that is gone fails its call alone, in words.
func TestAnAppThatIsGone(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		gone, there := appstest.New(t), appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("gone", gone.URL)
		c.connect("there", there.URL)
		chat := c.newChat()
		turn := c.say(chat, "/call gone__send_email {\"to\":\"a@example.test\"}\n/call there__send_email {\"to\":\"b@example.test\"}")
		c.awaitTurn(chat, turn, status("Waiting"))
		gone.Close()
		for _, r := range c.pending(turn) {
			c.answer(r, object{"decision": "allow"})
		}
		ended := c.awaitTurn(chat, turn, status("Completed"))
		first, second := calls(ended)[0], calls(ended)[1]
		if first["status"] != "failed" || !strings.Contains(first["result"].(string), "is the App running?") {
			t.Errorf("the call of the App that is gone shows %v", first)
		}
		if second["status"] != "succeeded" {
			t.Errorf("the call of the other App shows %v", second)
		}
	})
}

// A call that takes longer than its lease is not taken for lost while its worker
// lives.
func TestASlowAppKeepsItsLease(t *testing.T) {
	t.Parallel() // it waits for seconds
	app := appstest.New(t)
	cfg := backend{}.settings(t.TempDir())
	c, _, _ := startServe(t, cfg)
	c.connect("desk", app.URL)
	chat := c.newChat()
	turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
	c.awaitTurn(chat, turn, status("Waiting"))
	release := app.Block("send_email")
	c.answer(c.pending(turn)[0], object{"decision": "allow"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := app.Await(ctx, 1); err != nil {
		t.Fatal(err)
	}
	out := time.Now()
	c.poll("the first lease is long over", 20*time.Second, func() bool {
		if got := calls(c.call("GET", "/v1/turns/"+turn, nil, 200))[0]["status"]; got != "sending" {
			t.Fatalf("the call is %v while it is out", got)
		}
		return time.Since(out) > 12*time.Second
	})
	release()
	ended := c.awaitTurn(chat, turn, status("Completed"))
	if got := calls(ended)[0]["status"]; got != "succeeded" {
		t.Errorf("the call is %v", got)
	}
	if got := app.Count("send_email"); got != 1 {
		t.Errorf("the App got %d calls, want 1", got)
	}
}

// An interrupt does not cut off a call that is out: what it did is still saved, also
// long after its first lease.
func TestACallThatIsOutKeepsItsResult(t *testing.T) {
	t.Parallel() // it waits for seconds
	app := appstest.New(t)
	c, _, _ := startServe(t, backend{}.settings(t.TempDir()))
	c.connect("desk", app.URL)
	chat := c.newChat()
	turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
	c.awaitTurn(chat, turn, status("Waiting"))
	release := app.Block("send_email")
	c.answer(c.pending(turn)[0], object{"decision": "allow"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := app.Await(ctx, 1); err != nil {
		t.Fatal(err)
	}
	c.call("POST", "/v1/chats/"+chat+"/interrupt", object{}, 200)
	stopped := time.Now()
	c.poll("the lease of the stopped work is long over", 20*time.Second, func() bool {
		if got := calls(c.call("GET", "/v1/turns/"+turn, nil, 200))[0]["status"]; got != "sending" {
			t.Fatalf("the call is %v while it is out", got)
		}
		return time.Since(stopped) > 10*time.Second
	})
	release()
	c.poll("the result is saved", 10*time.Second, func() bool {
		return calls(c.call("GET", "/v1/turns/"+turn, nil, 200))[0]["status"] == "succeeded"
	})
	if got := c.call("GET", "/v1/turns/"+turn, nil, 200)["status"]; got != "Interrupted" {
		t.Errorf("the Turn is %v", got)
	}
}

// A connection that breaks after the call went out leaves an unknown outcome: the
// call is not sent again by itself.
func TestABrokenConnectionAsksThePerson(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
		c.awaitTurn(chat, turn, status("Waiting"))
		app.Cut("send_email", true)
		c.answer(c.pending(turn)[0], object{"decision": "allow"})
		c.awaitTurn(chat, turn, func(turn object) bool {
			return turn["status"] == "Waiting" && calls(turn)[0]["status"] == "unknown"
		})
		r := c.pending(turn)[0]
		if r["unknown"] == nil {
			t.Fatalf("the Request about it is %v", r)
		}
		c.answer(r, object{"decision": "deny"})
		ended := c.awaitTurn(chat, turn, status("Completed"))
		if call := calls(ended)[0]; call["status"] != "unknown" || !strings.Contains(call["result"].(string), "may or may not have run") {
			t.Errorf("the call shows %v", call)
		}
		if got := app.Count("send_email"); got != 1 {
			t.Errorf("the App got %d calls, want 1", got)
		}
	})
}

// fakeOpenAI answers chat completions: statuses first, then a text.
func fakeOpenAI(t *testing.T, statuses ...int) (address string, asked *atomic.Int64) {
	asked = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(asked.Add(1))
		if n <= len(statuses) {
			w.WriteHeader(statuses[n-1])
			fmt.Fprint(w, `{"error":{"message":"not now"}}`)
			return
		}
		answer, _ := json.Marshal(object{"id": "1", "object": "chat.completion", "model": "m", "choices": []object{{
			"index": 0, "finish_reason": "stop", "message": object{"role": "assistant", "content": "Hello."}}},
			"usage": object{"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100,
				"prompt_tokens_details": object{"cached_tokens": 200}}})
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1", asked
}

func withOpenAI(cfg config.Config, address string) config.Config {
	cfg.Models.Default = "openai:gpt-5"
	cfg.Models.OpenAI = config.Provider{APIKey: config.NewSecret("sk-test"), BaseURL: address}
	return cfg
}

// What is temporary is tried again; what is not fails the Turn at once and says
// why. The cost is counted from the shipped price.
func TestModelErrors(t *testing.T) {
	t.Run("temporary", func(t *testing.T) {
		address, asked := fakeOpenAI(t, 503, 429)
		c, _, _ := startServe(t, withOpenAI(backend{}.settings(t.TempDir()), address))
		chat := c.newChat()
		turn := c.say(chat, "Hi")
		ended := c.awaitTurn(chat, turn, status("Completed"))
		if ended["answer"] != "Hello." || asked.Load() != 3 {
			t.Errorf("after %d calls the answer is %v", asked.Load(), ended["answer"])
		}
		if cost := ended["usage"].(object)["costMicros"]; cost != 2025.0 {
			t.Errorf("the cost is %v micro-USD, want 2025", cost)
		}
	})
	t.Run("final", func(t *testing.T) {
		address, asked := fakeOpenAI(t, 400)
		c, _, _ := startServe(t, withOpenAI(backend{}.settings(t.TempDir()), address))
		chat := c.newChat()
		turn := c.say(chat, "Hi")
		ended := c.awaitTurn(chat, turn, status("Failed"))
		if asked.Load() != 1 || !strings.Contains(ended["error"].(string), "not now") {
			t.Errorf("after %d calls the error is %v", asked.Load(), ended["error"])
		}
	})
}

// A stream resumes after the last event that its reader has seen, without loss or
// repeat.
func TestAStreamResumes(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
		c.awaitTurn(chat, turn, status("Waiting"))
		c.answer(c.pending(turn)[0], object{"decision": "allow"})
		c.awaitTurn(chat, turn, status("Completed"))
		whole := collect(t, c, chat, 0, 0)
		for i, event := range whole {
			if event["sequence"] != float64(i+1) {
				t.Fatalf("event %d has sequence %v: %v", i+1, event["sequence"], whole)
			}
		}
		for cut := range whole {
			rest := collect(t, c, chat, cut, len(whole)-cut)
			if fmt.Sprint(rest) != fmt.Sprint(whole[cut:]) {
				t.Errorf("after %d the stream gives %v, want %v", cut, rest, whole[cut:])
			}
		}
		c.call("GET", fmt.Sprintf("/v1/chats/%s/observe?afterSequence=%d", chat, len(whole)+1), nil, 422)
	})
}

// collect reads a Chat's events after a sequence: want of them, or with want 0
// until the Turn has completed.
func collect(t *testing.T, c *client, chat string, after, want int) []object {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []object
	for event := range c.observe(ctx, fmt.Sprintf("/v1/chats/%s/observe?afterSequence=%d", chat, after)) {
		got = append(got, event)
		if len(got) == want || want == 0 && event["kind"] == "turn.status" && event["status"] == "Completed" {
			return got
		}
	}
	t.Fatalf("the stream ended after %d events", len(got))
	return nil
}
