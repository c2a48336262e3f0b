package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"openbot/build/testenv/services"
	"openbot/config"
	"openbot/program"
)

// asProgram makes this test binary run as openbot itself, so that tests can start
// and kill real processes of the very code under test.
const asProgram = "OPENBOT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == program.ChildArgument {
		os.Exit(program.Main(os.Stdin, os.Stdout))
	}
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// testToken is the first token of every program under test.
const testToken = "test-token-0123456789-0123456789-0123456789"

// backend is one set of databases that the whole program must work on.
type backend struct {
	name     string
	database string // "" for SQLite
	redis    string // "" for the embedded one
	server   *services.Redis
}

// onBackends runs a test on SQLite with the embedded Redis, and on PostgreSQL and
// Redis when they are there.
func onBackends(t *testing.T, test func(t *testing.T, b backend)) {
	t.Run("SQLite", func(t *testing.T) { test(t, backend{name: "SQLite"}) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newBackend(t)) })
}

var databases atomic.Int64

// newBackend gives a fresh database and a Redis of its own.
func newBackend(t *testing.T) backend {
	t.Helper()
	base := os.Getenv("OPENBOT_TEST_DATABASE_URL")
	if base == "" {
		t.Skip("OPENBOT_TEST_DATABASE_URL is not set: NOT tested on PostgreSQL and Redis (make test sets it)")
	}
	connection, err := pgx.Connect(t.Context(), base)
	must(t, err)
	defer connection.Close(context.Background())
	name := fmt.Sprintf("whole_%d_%d", os.Getpid(), databases.Add(1))
	_, err = connection.Exec(t.Context(), "CREATE DATABASE "+name)
	must(t, err)
	address, err := url.Parse(base)
	must(t, err)
	address.Path = "/" + name
	redis, err := services.StartRedis("", services.RedisOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, redis.Stop()) })
	return backend{name: "PostgreSQL", database: address.String(), redis: redis.URL(), server: redis}
}

// settings gives the configuration of a program on this backend.
func (b backend) settings(data string) config.Config {
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.Data = data
	cfg.Token = config.NewSecret(testToken)
	cfg.SecretKey = config.NewSecret("a secret key of tests, 32 characters at least")
	cfg.Apps.AllowPrivateNetworks = true
	if b.database != "" {
		cfg.DatabaseURL = config.NewSecret(b.database)
		cfg.RedisURL = config.NewSecret(b.redis)
	}
	return cfg
}

// startServe runs everything in this process until the test ends or stop is
// called.
func startServe(t *testing.T, cfg config.Config) (c *client, out *printed, stop func()) {
	t.Helper()
	out = &printed{}
	app, err := Open(t.Context(), Options{Config: cfg, Role: "serve", Out: out, Logger: testLogger(t)})
	must(t, err)
	c = &client{t: t, base: app.Address(), token: testToken}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the program ended with: %v", err)
		}
	}
	t.Cleanup(stop)
	c.awaitReady()
	return c, out, stop
}

// printed holds what a program printed.
type printed struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func testLogger(t *testing.T) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return slog.New(slog.DiscardHandler)
}

// client calls the API as a program of its users would.
type client struct {
	t     testing.TB
	base  string
	token string
}

type object = map[string]any

// try makes one call; it fails the test on no status, but gives an error when the
// server cannot be reached.
func (c *client) try(method, path string, body any) (int, []byte, error) {
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		reader = bytes.NewReader(raw)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, raw, err
}

// call makes one call that must have the given status, and gives its object.
func (c *client) call(method, path string, body any, status int) object {
	c.t.Helper()
	got, raw, err := c.try(method, path, body)
	must(c.t, err)
	if got != status {
		c.t.Fatalf("%s %s gave %d, want %d: %s", method, path, got, status, raw)
	}
	var out object
	if len(raw) > 0 {
		must(c.t, json.Unmarshal(raw, &out))
	}
	return out
}

// list reads a list.
func (c *client) list(path string) []object {
	c.t.Helper()
	status, raw, err := c.try("GET", path, nil)
	must(c.t, err)
	if status != 200 {
		c.t.Fatalf("GET %s gave %d: %s", path, status, raw)
	}
	var out []object
	must(c.t, json.Unmarshal(raw, &out))
	return out
}

// poll looks at something until it is so; every look is a call of the API. It is
// for what no event tells, such as a program that starts.
func (c *client) poll(what string, within time.Duration, so func() bool) {
	c.t.Helper()
	deadline := time.After(within)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if so() {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("not within %s: %s", within, what)
		}
	}
}

func (c *client) awaitReady() {
	c.t.Helper()
	c.poll("the server is ready and has its first token", 30*time.Second, func() bool {
		status, _, err := c.try("GET", "/v1/me", nil)
		return err == nil && status == 200
	})
}

// say posts a message and gives the Turn that takes it.
func (c *client) say(chat, text string) string {
	c.t.Helper()
	return c.call("POST", "/v1/chats/"+chat+"/messages", object{"text": text}, 202)["turn"].(string)
}

func (c *client) newChat() string {
	c.t.Helper()
	return c.call("POST", "/v1/chats", object{}, 201)["id"].(string)
}

// awaitTurn follows the Chat's events until the Turn is as wanted.
func (c *client) awaitTurn(chat, turn string, so func(object) bool) object {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var last object
	for ctx.Err() == nil {
		changes := c.observe(ctx, "/v1/chats/"+chat+"/observe")
		for {
			last = c.call("GET", "/v1/turns/"+turn, nil, 200)
			if so(last) {
				return last
			}
			if _, open := <-changes; !open {
				break
			}
		}
	}
	c.t.Fatalf("the Turn never came to what was wanted; it is %v", last)
	return nil
}

func status(want string) func(object) bool {
	return func(turn object) bool { return turn["status"] == want }
}

// observe follows a stream of events; its channel closes when the stream ends.
func (c *client) observe(ctx context.Context, path string) <-chan object {
	c.t.Helper()
	request, err := http.NewRequestWithContext(ctx, "GET", c.base+path, nil)
	must(c.t, err)
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := http.DefaultClient.Do(request)
	must(c.t, err)
	if response.StatusCode != 200 {
		raw, _ := io.ReadAll(response.Body)
		response.Body.Close()
		c.t.Fatalf("GET %s gave %d: %s", path, response.StatusCode, raw)
	}
	events := make(chan object, 1024)
	go func() {
		defer close(events)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data:")
			if !ok {
				continue
			}
			var event object
			if json.Unmarshal([]byte(data), &event) != nil {
				return
			}
			select {
			case events <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}

// connect makes a Connection to an App and gives its ID.
func (c *client) connect(name, address string) string {
	c.t.Helper()
	made := c.call("POST", "/v1/connections", object{"name": name, "transport": "http", "url": address}, 201)
	if health, _ := made["health"].(object); health == nil || health["status"] != "ok" {
		c.t.Fatalf("the App is not reached: %v", made)
	}
	return made["id"].(string)
}

// pending gives the waiting Requests of a Turn, oldest first.
func (c *client) pending(turn string) []object {
	c.t.Helper()
	var found []object
	for _, r := range c.list("/v1/requests?status=pending&limit=200") {
		if r["turn"] == turn {
			found = append([]object{r}, found...)
		}
	}
	return found
}

// answer answers a Request as it stands.
func (c *client) answer(request object, with object) object {
	c.t.Helper()
	body := object{"expected": request["revision"]}
	for k, v := range with {
		body[k] = v
	}
	return c.call("POST", "/v1/requests/"+request["id"].(string), body, 200)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func calls(turn object) []object {
	var out []object
	for _, c := range turn["calls"].([]any) {
		out = append(out, c.(object))
	}
	return out
}

func decode(t testing.TB, raw []byte, into any) {
	t.Helper()
	must(t, json.Unmarshal(raw, into))
}
