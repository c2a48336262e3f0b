package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openbot/apps/appstest"
	"openbot/config"
	"openbot/domain/engine"
)

// badEndpoint speaks both protocols and fails in the way that the name of the asked
// model says.
type badEndpoint struct {
	url     string
	arrived chan struct{} // one for each call of the model "silent" that came
	silent  atomic.Int64  // calls that hang now
}

func newBadEndpoint(t *testing.T) *badEndpoint {
	t.Helper()
	e := &badEndpoint{arrived: make(chan struct{}, 1024)}
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var asked struct{ Model string }
		_ = json.Unmarshal(raw, &asked)
		e.fail(w, r, asked.Model, over)
	}))
	e.url = server.URL
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	return e
}

func (e *badEndpoint) fail(w http.ResponseWriter, r *http.Request, how string, over <-chan struct{}) {
	openai := strings.HasSuffix(r.URL.Path, "/chat/completions")
	text := func(said, finish string) {
		w.Header().Set("Content-Type", "application/json")
		var answer object
		if openai {
			answer = object{"choices": []object{{"index": 0, "finish_reason": map[string]string{"end": "stop", "cut": "length"}[finish],
				"message": object{"role": "assistant", "content": said}}}}
		} else {
			answer = object{"type": "message", "role": "assistant", "content": []object{{"type": "text", "text": said}},
				"stop_reason": map[string]string{"end": "end_turn", "cut": "max_tokens"}[finish]}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
	switch how {
	case "silent":
		e.silent.Add(1)
		defer e.silent.Add(-1)
		e.arrived <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-over:
		}
	case "429", "500", "529":
		w.Header().Set("Retry-After", "3600")
		var status int
		_, _ = fmt.Sscan(how, &status)
		w.WriteHeader(status)
		fmt.Fprint(w, `{"error":{"type":"overloaded_error","message":"not now"}}`)
	case "page":
		fmt.Fprint(w, "<html>Welcome to the proxy</html>")
	case "nothing":
	case "torn":
		w.Header().Set("Content-Length", "4096")
		fmt.Fprint(w, `{"choices":[{"message":{"content":"{\"quotes\"`)
	case "blank":
		text("", "end")
	case "chatter":
		text("Sure! I would allow this.", "end")
	case "half":
		text(`{"quotes":[{"rule":"rul_`, "cut")
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// failures are the names of the models of a badEndpoint that answer at once.
var failures = []string{"429", "500", "529", "page", "nothing", "torn", "blank", "chatter", "half"}

// withEndpoints sends both protocols to addresses; "" leaves a port on which nobody
// listens.
func withEndpoints(t *testing.T, cfg config.Config, openai, anthropic string) config.Config {
	t.Helper()
	closed := "http://" + freeAddress(t)
	cfg.Models.OpenAI = config.Provider{APIKey: config.NewSecret("sk-test"), BaseURL: or(openai, closed) + "/v1"}
	cfg.Models.Anthropic = config.Provider{APIKey: config.NewSecret("sk-ant-test"), BaseURL: or(anthropic, closed)}
	return cfg
}

// startTuned is startServe with other limits of the engine.
func startTuned(t *testing.T, cfg config.Config, tune func(*engine.Engine)) *client {
	t.Helper()
	app, err := Open(t.Context(), Options{Config: cfg, Role: "serve", Out: io.Discard, Logger: testLogger(t)})
	must(t, err)
	tune(app.engine)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the program ended with: %v", err)
		}
	})
	c := &client{t: t, base: app.Address(), token: testToken}
	c.awaitReady()
	return c
}

func judgeLimit(limit time.Duration) func(*engine.Engine) {
	return func(e *engine.Engine) { e.JudgeLimit = limit }
}

// foundBy gives what a step of the check found about a call.
func foundBy(call object, step string) string {
	var found []string
	evidence, _ := call["evidence"].([]any)
	for _, finding := range evidence {
		if f := finding.(object); f["step"] == step {
			found = append(found, f["found"].(string))
		}
	}
	return strings.Join(found, "; ")
}

// eachProtocol runs a test against a badEndpoint behind each protocol; the other one
// leads to a closed port. It gives the names of the models to ask.
func eachProtocol(t *testing.T, test func(t *testing.T, e *badEndpoint, cfg config.Config, models []string, silent string)) {
	for _, protocol := range []string{"openai", "anthropic"} {
		t.Run(protocol, func(t *testing.T) {
			b := backend{}
			if protocol == "anthropic" {
				b = newBackend(t)
			}
			e := newBadEndpoint(t)
			openai, anthropic, refused := e.url, "", "anthropic:refused"
			if protocol == "anthropic" {
				openai, anthropic, refused = "", e.url, "openai:refused"
			}
			models := []string{refused}
			for _, how := range failures {
				models = append(models, protocol+":"+how)
			}
			test(t, e, withEndpoints(t, b.settings(t.TempDir()), openai, anthropic), models, protocol+":silent")
		})
	}
}

// A judge that is down, silent, limited or mad decides nothing: the Request is at the
// next decider within the judge's time, and the call says what was found.
func TestAJudgeThatFails(t *testing.T) {
	const limit = 2 * time.Second
	eachProtocol(t, func(t *testing.T, e *badEndpoint, cfg config.Config, models []string, silent string) {
		app := appstest.New(t)
		c := startTuned(t, cfg, judgeLimit(limit))
		c.connect("desk", app.URL)
		c.call("POST", "/v1/rules", object{"text": "Allow send_email to colleagues."}, 201)
		try := func(model string) (chat, turn string) {
			c.call("PATCH", "/v1/settings", object{"judgeModel": model}, 200)
			chat = c.newChat()
			return chat, c.say(chat, `/call desk__send_email {"to":"a@example.test"}`)
		}
		asksThePerson := func(model, chat, turn, evidence string) {
			t.Helper()
			call := onlyCall(c.awaitTurn(chat, turn, status("Waiting")))
			found := foundBy(call, "rule")
			if call["status"] != "waiting" || !strings.Contains(found, evidence) || foundBy(call, "decider") == "" {
				t.Errorf("with the judge %s the call is %v", model, call)
			}
			if by := c.pending(turn)[0]["approver"].(object)["_tag"]; by != "Person" {
				t.Errorf("with the judge %s the Request is at %v", model, by)
			}
		}
		started := time.Now()
		chat, turn := try(silent)
		<-e.arrived
		for _, model := range models {
			asked := time.Now()
			chat, turn := try(model)
			asksThePerson(model, chat, turn, "the judge")
			if took := time.Since(asked); took > limit {
				t.Errorf("with the judge %s, which answers at once, the Request came after %s", model, took)
			}
		}
		asksThePerson(silent, chat, turn, "in time")
		if took := time.Since(started); took < limit {
			t.Errorf("the judge had only %s", took)
		}
		if app.Count("send_email") != 0 {
			t.Error("a call went out that nobody allowed")
		}
		c.answer(c.pending(turn)[0], object{"decision": "allow"})
		c.awaitTurn(chat, turn, status("Completed"))
	})
}

// A judge that fails while it reads what lets a deciding Bot decide leaves the Bot
// without that strength: its allow is an endorsement, and the person is asked.
func TestAJudgeThatFailsADecidingBot(t *testing.T) {
	eachProtocol(t, func(t *testing.T, e *badEndpoint, cfg config.Config, models []string, silent string) {
		app := appstest.New(t)
		c := startTuned(t, cfg, judgeLimit(time.Second))
		c.connect("desk", app.URL)
		me := c.mainBot()
		c.instruct(me, "/decide allow lifetime fine by me")
		c.call("POST", "/v1/rules", object{"text": "Allow send_email to colleagues.", "bot": me}, 201)
		worker := c.newBot("Worker", "Work.", nil)
		for _, model := range append([]string{silent}, models...) {
			c.call("PATCH", "/v1/settings", object{"judgeModel": model}, 200)
			turn := c.say(c.chatWith(worker), `/call desk__send_email {"to":"a@example.test"}`)
			r := c.waitsForMe(turn)
			if endorsements := r["endorsements"].([]any); len(endorsements) != 1 || endorsements[0].(object)["bot"] != me {
				t.Errorf("with the judge %s the Request is %v", model, r)
			}
			if model == silent {
				<-e.arrived
			}
		}
		if app.Count("send_email") != 0 {
			t.Error("a call went out that nobody allowed")
		}
	})
}

// A deciding Bot whose model is down, silent, limited or mad passes the Request on to
// the next decider when the time of a review is up.
func TestADecidingBotWhoseModelFails(t *testing.T) {
	const limit = 3 * time.Second
	eachProtocol(t, func(t *testing.T, e *badEndpoint, cfg config.Config, models []string, silent string) {
		app := appstest.New(t)
		c := startTuned(t, cfg, func(e *engine.Engine) { e.ReviewLimit = limit })
		c.connect("desk", app.URL)
		started := time.Now()
		type work struct{ model, chat, turn string }
		var all []work
		for _, model := range append([]string{silent}, models...) {
			owner := c.newBot("Owner", "Decide.", object{"model": model})
			chat := c.chatWith(c.newBot("Worker", "Work.", object{"owner": owner}))
			all = append(all, work{model, chat, c.say(chat, `/call desk__send_email {"to":"a@example.test"}`)})
		}
		<-e.arrived
		for _, w := range all {
			r := c.waitsForMe(w.turn)
			if r["revision"] != 2.0 || len(r["endorsements"].([]any)) != 0 {
				t.Errorf("after a review by %s the Request is %v", w.model, r)
			}
		}
		t.Logf("%d Requests came up to the person within %s", len(all), time.Since(started))
		if app.Count("send_email") != 0 {
			t.Error("a call went out that nobody allowed")
		}
		c.answer(c.pending(all[0].turn)[0], object{"decision": "allow"})
		c.awaitTurn(all[0].chat, all[0].turn, status("Completed"))
	})
}

// requestOf gives the ID of the one Request for which a Turn waits.
func requestOf(turn object) string {
	return turn["waitingFor"].([]any)[0].(object)["request"].(string)
}

// allow allows a Request that no Bot has decided about.
func (c *client) allow(request string) {
	c.t.Helper()
	c.call("POST", "/v1/requests/"+request, object{"expected": 0, "decision": "allow"}, 200)
}

// many is how many calls hang side by side in a test: SQLite has one writer.
func many(b backend) int {
	if b.database == "" {
		return 8
	}
	return 32
}

// rounds runs approval rounds side by side, gives how many came to their end, and tells
// how long they took from the answer on.
func rounds(c *client, bot, beside string, n int) int {
	c.t.Helper()
	var took []time.Duration
	var turns, chats []string
	for i := range n {
		chats = append(chats, c.chatWith(bot))
		turns = append(turns, c.say(chats[i], fmt.Sprintf(`/call desk__send_email {"to":"plain-%d@example.test"}`, i)))
	}
	ended := 0
	for i, turn := range turns {
		request := requestOf(c.awaitTurn(chats[i], turn, status("Waiting")))
		answered := time.Now()
		c.allow(request)
		if call := onlyCall(c.awaitTurn(chats[i], turn, status("Completed"))); call["status"] == "succeeded" {
			ended++
		}
		took = append(took, time.Since(answered))
	}
	slices.Sort(took)
	c.t.Logf("answer to end beside %s: median %s, longest %s of %d", beside, took[len(took)/2], took[len(took)-1], n)
	return ended
}

// A silent judge holds up the calls about which it is asked, and nothing else: as many
// plain rounds come to their end as with an idle judge, while all those calls still
// hang. Every place of the workers that judge is taken.
func TestASilentJudgeHoldsUpNobodyElse(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		n := many(b)
		e := newBadEndpoint(t)
		app := appstest.New(t)
		cfg := withEndpoints(t, b.settings(t.TempDir()), e.url, "")
		cfg.Models.Judge, cfg.WorkerLimit = "openai:silent", n
		c := startTuned(t, cfg, judgeLimit(10*time.Minute))
		c.connect("desk", app.URL)
		me := c.mainBot()
		idle := rounds(c, me, "an idle judge", n)
		judged := c.newBot("Judged", "Work.", nil)
		c.call("POST", "/v1/rules", object{"text": "Allow send_email to colleagues.", "bot": judged}, 201)
		var chats, turns []string
		for i := range n {
			chats = append(chats, c.chatWith(judged))
			turns = append(turns, c.say(chats[i], `/call desk__send_email {"to":"judged@example.test"}`))
		}
		for range n {
			<-e.arrived
		}
		if busy := rounds(c, me, "a silent judge", n); busy != idle || busy != n {
			t.Errorf("beside a silent judge %d rounds ended, beside an idle one %d, want %d", busy, idle, n)
		}
		if hanging := int(e.silent.Load()); hanging != n {
			t.Errorf("%d calls still hang in the judge, want %d", hanging, n)
		}
		for i, chat := range chats {
			c.call("POST", "/v1/chats/"+chat+"/interrupt", object{"delegations": false}, 200)
			if call := onlyCall(c.awaitTurn(chat, turns[i], status("Interrupted"))); call["status"] != "cancelled" {
				t.Errorf("the interrupted call is %v", call)
			}
		}
		if got := app.Count("send_email"); got != 2*n {
			t.Errorf("the App got %d calls, want %d", got, 2*n)
		}
	})
}

// The same while the judge is asked about what lets deciding Bots decide.
func TestASilentJudgeOfDecidingBotsHoldsUpNobodyElse(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		n := many(b)
		e := newBadEndpoint(t)
		app := appstest.New(t)
		cfg := withEndpoints(t, b.settings(t.TempDir()), e.url, "")
		cfg.Models.Judge, cfg.WorkerLimit = "openai:silent", n/4
		c := startTuned(t, cfg, judgeLimit(10*time.Minute))
		c.connect("desk", app.URL)
		owner := c.newBot("Owner", "/decide allow once", nil)
		worker := c.newBot("Worker", "Work.", object{"owner": owner})
		c.call("POST", "/v1/rules", object{"text": "Allow send_email to colleagues.", "bot": owner}, 201)
		for range n {
			c.say(c.chatWith(worker), `/call desk__send_email {"to":"judged@example.test"}`)
		}
		for range n / 4 {
			<-e.arrived
		}
		if busy := rounds(c, c.mainBot(), "a silent judge of deciding Bots", n); busy != n {
			t.Errorf("beside a silent judge %d rounds ended, want %d", busy, n)
		}
		if hanging := int(e.silent.Load()); hanging < n/4 {
			t.Errorf("%d decisions still hang in the judge, want at least %d", hanging, n/4)
		}
	})
}
