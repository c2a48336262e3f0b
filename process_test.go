//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"openbot/apps/appstest"
)

// process is one real process of the program.
type process struct {
	t    *testing.T
	role string
	env  []string
	log  io.Writer

	mu  sync.Mutex
	cmd *exec.Cmd
}

// startProcess starts this test binary as openbot with a role, and with more variables.
func startProcess(t *testing.T, b backend, role, listen string, more ...string) *process {
	t.Helper()
	p := &process{t: t, role: role, log: io.Discard, env: []string{
		asProgram + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "OPENBOT_DATA=" + t.TempDir(),
		"OPENBOT_TOKEN=" + testToken, "OPENBOT_SECRET_KEY=a secret key of tests, 32 characters at least",
		"OPENBOT_APPS_ALLOW_PRIVATE=true", "OPENBOT_LISTEN=" + listen,
		"DATABASE_URL=" + b.database, "REDIS_URL=" + b.redis,
	}}
	p.env = append(p.env, more...)
	if testing.Verbose() {
		p.log = t.Output()
	}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := exec.Command(os.Args[0], p.role)
	cmd.Env, cmd.Stderr, cmd.Stdout = p.env, p.log, p.log
	must(p.t, cmd.Start())
	p.cmd = cmd
}

// kill ends the process the way a power cut does.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
	p.cmd = nil
}

// stop ends the process as an operator does.
func (p *process) stop() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	must(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	must(p.t, p.cmd.Wait())
	p.cmd = nil
}

// migrate brings the schema of a backend up to date with the real command.
func migrate(t *testing.T, b backend) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "migrate", "up")
	cmd.Env = []string{asProgram + "=1", "DATABASE_URL=" + b.database, "OPENBOT_SECRET_KEY=a secret key of tests, 32 characters at least"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("openbot migrate up: %v\n%s", err, out)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

func TestASingleRoleRefusesAnEmptySchema(t *testing.T) {
	b := newBackend(t)
	for _, role := range []string{"api", "worker", "scheduler"} {
		cmd := exec.Command(os.Args[0], role)
		cmd.Env = []string{asProgram + "=1", "DATABASE_URL=" + b.database, "REDIS_URL=" + b.redis, "OPENBOT_LISTEN=127.0.0.1:0",
			"OPENBOT_SECRET_KEY=a secret key of tests, 32 characters at least"}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "openbot migrate up") {
			t.Errorf("%s on an empty schema ended with %v and said %q", role, err, out)
		}
	}
}

// An answer that is given while no worker runs takes effect when one comes.
func TestAnAnswerWaitsForAWorker(t *testing.T) {
	b := newBackend(t)
	migrate(t, b)
	app := appstest.New(t)
	address := freeAddress(t)
	startProcess(t, b, "api", address)
	worker := startProcess(t, b, "worker", "127.0.0.1:0")
	startProcess(t, b, "scheduler", "127.0.0.1:0")
	c := &client{t: t, base: "http://" + address, token: testToken}
	c.awaitReady()
	c.connect("desk", app.URL)
	chat := c.newChat()
	turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
	c.awaitTurn(chat, turn, status("Waiting"))
	worker.kill()
	c.answer(c.pending(turn)[0], object{"decision": "allow"})
	if app.Count("send_email") != 0 {
		t.Fatal("the call went out with no worker")
	}
	worker.start()
	c.awaitTurn(chat, turn, status("Completed"))
	if got := app.Count("send_email"); got != 1 {
		t.Errorf("the App got %d calls, want 1", got)
	}
}

// A worker that dies while a call is out leaves an outcome that nobody knows: the
// call is not sent again, and the person is asked. A read is repeated by itself.
func TestAKilledWorkerLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel() // it waits for seconds
	b := newBackend(t)
	migrate(t, b)
	app := appstest.New(t)
	address := freeAddress(t)
	startProcess(t, b, "api", address)
	worker := startProcess(t, b, "worker", "127.0.0.1:0")
	startProcess(t, b, "scheduler", "127.0.0.1:0")
	c := &client{t: t, base: "http://" + address, token: testToken}
	c.awaitReady()
	connection := c.connect("desk", app.URL)
	c.call("PATCH", "/v1/settings", object{"appReadRules": []string{connection + "/read_*"}}, 200)

	release := app.Block("send_email")
	releaseReads := app.Block("read_thing")
	chat, reading := c.newChat(), c.newChat()
	turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
	c.awaitTurn(chat, turn, status("Waiting"))
	c.answer(c.pending(turn)[0], object{"decision": "allow"})
	read := c.say(reading, `/call desk__read_thing {"id":"1"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := app.Await(ctx, 2); err != nil {
		t.Fatal(err)
	}
	worker.kill()
	release()
	releaseReads()
	back := time.Now()
	worker.start()

	c.awaitTurn(reading, read, status("Completed"))
	waiting := c.awaitTurn(chat, turn, status("Waiting"))
	if took := time.Since(back); took > 15*time.Second {
		t.Errorf("the unknown outcome showed after %s, want within 15 s", took)
	}
	if got := calls(waiting)[0]["status"]; got != "unknown" {
		t.Fatalf("the call is %v, want unknown", got)
	}
	if sends, reads := app.Count("send_email"), app.Count("read_thing"); sends != 1 || reads != 2 {
		t.Fatalf("the App got %d sends and %d reads, want 1 and 2", sends, reads)
	}
	r := c.pending(turn)[0]
	if r["unknown"] == nil || r["approver"].(object)["_tag"] != "Person" {
		t.Errorf("the Request about the unknown outcome is %v", r)
	}
	c.call("POST", "/v1/requests/"+r["id"].(string), object{"expected": 0, "decision": "allow", "scope": "lifetime"}, 422)
	c.answer(r, object{"decision": "allow"})
	c.awaitTurn(chat, turn, status("Completed"))
	if got := app.Count("send_email"); got != 2 {
		t.Errorf("after the person said send again the App got %d calls, want 2", got)
	}
}

// Processes are killed at random and Redis is emptied while Turns are under way
// and waiting: every Turn ends, and no unsafe call goes out twice.
func TestNothingIsLostUnderFire(t *testing.T) {
	const turns = 100
	b := newBackend(t)
	migrate(t, b)
	app := appstest.New(t)
	address := freeAddress(t)
	processes := []*process{
		startProcess(t, b, "api", address),
		startProcess(t, b, "worker", "127.0.0.1:0"), startProcess(t, b, "worker", "127.0.0.1:0"),
		startProcess(t, b, "scheduler", "127.0.0.1:0"), startProcess(t, b, "scheduler", "127.0.0.1:0"),
	}
	c := &client{t: t, base: "http://" + address, token: testToken}
	c.awaitReady()
	connection := c.connect("desk", app.URL)
	c.call("PATCH", "/v1/settings", object{"appReadRules": []string{connection + "/read_*"}}, 200)

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var posted []string
	for i := range turns {
		posted = append(posted, insist(c, "POST", "/v1/chats", object{}, 201)["id"].(string))
		text := fmt.Sprintf("/call desk__read_thing {\"id\":\"%d\"}\n/then\n/call desk__send_email {\"to\":\"%d@example.test\"}\n/say done", i, i)
		insist(c, "POST", "/v1/chats/"+posted[i]+"/messages", object{"text": text, "commandKey": fmt.Sprint("say-", i)}, 202)
		if i%20 == 10 {
			strike(t, random, processes, b)
		}
	}
	open := map[string]bool{}
	for _, chat := range posted {
		open[chat] = true
	}
	answered := 0
	c.poll("every Turn ends", 4*time.Minute, func() bool {
		status, raw, err := c.try("GET", "/v1/requests?status=pending&limit=20", nil)
		if err != nil || status != 200 {
			return false
		}
		var waiting []object
		decode(t, raw, &waiting)
		for _, r := range waiting {
			decision := "allow"
			if r["unknown"] != nil {
				decision = "deny"
			}
			c.try("POST", "/v1/requests/"+r["id"].(string), object{"expected": r["revision"], "decision": decision})
			if answered++; answered%25 == 0 && answered <= 150 {
				strike(t, random, processes, b)
			}
		}
		if len(waiting) > 0 {
			return false
		}
		for chat := range open {
			status, raw, err := c.try("GET", "/v1/chats/"+chat, nil)
			if err != nil || status != 200 {
				return false
			}
			var state object
			decode(t, raw, &state)
			if state["status"] == "idle" {
				delete(open, chat)
			}
		}
		return len(open) == 0
	})

	sent := map[string]int{}
	for _, r := range app.Receipts() {
		if r.Tool == "send_email" {
			sent[string(r.Arguments)]++
		}
	}
	for i, chat := range posted {
		arguments := fmt.Sprintf(`{"to":"%d@example.test"}`, i)
		history := c.list("/v1/chats/" + chat + "/turns")
		if len(history) != 1 {
			t.Fatalf("Chat %d has %d Turns, want 1", i, len(history))
		}
		turn := history[0]
		if turn["status"] != "Completed" {
			t.Errorf("Turn %d is %v: %v", i, turn["status"], turn["error"])
		}
		for _, call := range calls(turn) {
			if call["name"] != "desk__send_email" {
				continue
			}
			n := sent[arguments]
			if call["status"] == "succeeded" && n != 1 || call["status"] == "unknown" && n > 1 || call["status"] == "denied" && n != 0 || n > 1 {
				t.Errorf("call %d is %v and went out %d times", i, call["status"], n)
			}
		}
	}
}

// strike kills one process and starts it again, and now and then empties Redis.
func strike(t *testing.T, random *rand.Rand, processes []*process, b backend) {
	t.Helper()
	p := processes[random.IntN(len(processes))]
	p.kill()
	if random.IntN(2) == 0 {
		options, err := redis.ParseURL(b.redis)
		must(t, err)
		db := redis.NewClient(options)
		defer db.Close()
		must(t, db.FlushAll(t.Context()).Err())
	}
	p.start()
}

// insist makes a call until a server takes it: an API process may be down. A
// message carries a commandKey, so that saying it twice does it once.
func insist(c *client, method, path string, body any, want int) object {
	c.t.Helper()
	var out object
	c.poll(method+" "+path, 60*time.Second, func() bool {
		status, raw, err := c.try(method, path, body)
		if err != nil || status == http.StatusServiceUnavailable {
			return false
		}
		if status != want {
			c.t.Fatalf("%s %s gave %d: %s", method, path, status, raw)
		}
		decode(c.t, raw, &out)
		return true
	})
	return out
}
