package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"openbot/apps/appstest"
)

// token makes a token with scopes and gives its secret.
func (c *client) tokenOf(scopes ...string) string {
	c.t.Helper()
	return c.call("POST", "/v1/tokens", object{"name": "script", "scopes": scopes}, 201)["token"].(string)
}

// A client that knows the approvals routes from their document alone reads, decides
// and is refused; the calls that it approved run as they were saved.
func TestAForeignClientOfTheApprovals(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: NOT tested with a client of the approvals routes that is not ours")
	}
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		want, turns := map[string]string{}, map[string]string{}
		for i := range 5 {
			to, decision := fmt.Sprintf("ops%d@good.example", i), "approved"
			if i%2 == 1 {
				to, decision = fmt.Sprintf("ops%d@bad.example", i), "denied"
			}
			want[to] = decision
			chat := c.newChat()
			turns[chat] = c.say(chat, `/call desk__send_email {"to":"`+to+`","subject":"token=hush-hush","openbot_reason":"Weekly."}`)
			c.awaitTurn(chat, turns[chat], status("Waiting"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, node, "testdata/approvals-client.mjs")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "OPENBOT_API_URL=" + c.base,
			"OPENBOT_API_KEY=" + c.tokenOf("write"), "OPENBOT_READ_KEY=" + c.tokenOf("read")}
		var faults strings.Builder
		cmd.Stderr = &faults
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("the client ended with %v: %s", err, faults.String())
		}
		var saw struct {
			Pages   int
			Decided map[string]string
			Inputs  []map[string]string
			Tools   []string
		}
		decode(t, out, &saw)
		if !maps.Equal(saw.Decided, want) || saw.Pages != 3 || !slices.Equal(saw.Tools, []string{"send_email"}) {
			t.Errorf("the client saw %+v, want %v on 3 pages", saw, want)
		}
		for _, input := range saw.Inputs {
			if input["subject"] != "token=[redacted]" {
				t.Errorf("the client read %v", input)
			}
		}
		for chat, turn := range turns {
			c.awaitTurn(chat, turn, status("Completed"))
		}
		receipts := app.Receipts()
		for _, r := range receipts {
			var got map[string]string
			decode(t, r.Arguments, &got)
			if want[got["to"]] != "approved" || got["subject"] != "token=hush-hush" {
				t.Errorf("the App got %s", r.Arguments)
			}
		}
		if len(receipts) != 3 {
			t.Errorf("the App got %d calls, want 3", len(receipts))
		}
	})
}

// startAPI runs one API of several in this process.
func startAPI(t *testing.T, b backend) *client {
	t.Helper()
	app, err := Open(t.Context(), Options{Config: b.settings(t.TempDir()), Role: "api", Out: io.Discard, Logger: testLogger(t)})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("an API ended with: %v", err)
		}
	})
	return &client{t: t, base: app.Address(), token: testToken}
}

// tried counts the statuses of many calls at once, spread over several servers.
type tried struct {
	mu       sync.Mutex
	statuses map[int]int
}

// fire makes calls with a token, one after another for each server.
func (c *tried) fire(t *testing.T, servers []*client, each int, path, token string) map[int]int {
	t.Helper()
	c.statuses = map[int]int{}
	var flying sync.WaitGroup
	for _, s := range servers {
		flying.Go(func() {
			for range each {
				request, err := http.NewRequestWithContext(t.Context(), "GET", s.base+path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Authorization", "Bearer "+token)
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				raw, _ := io.ReadAll(response.Body)
				response.Body.Close()
				if response.StatusCode == 429 {
					var body struct{ Error struct{ Code string } }
					if json.Unmarshal(raw, &body) != nil || body.Error.Code != "rate_limited" || response.Header.Get("Retry-After") != "60" {
						t.Errorf("a full bucket answers %q with Retry-After %q", raw, response.Header.Get("Retry-After"))
					}
				}
				c.mu.Lock()
				c.statuses[response.StatusCode]++
				c.mu.Unlock()
			}
		})
	}
	flying.Wait()
	return c.statuses
}

// Three APIs on one Redis count together: a key gets exactly what it may, another key
// is not slowed before the organization has had what all of them may, and a flood of
// wrong keys slows nobody.
func TestThreeAPIsShareTheirBuckets(t *testing.T) {
	// An API that does not hear from Redis within a moment counts one call alone. On a
	// busy machine that can happen once; what is wrong happens every time.
	for range 3 {
		faults := shareBuckets(t)
		if len(faults) == 0 {
			return
		}
		t.Logf("not exact: %s", strings.Join(faults, "; "))
	}
	t.Error("the buckets were never exact")
}

func shareBuckets(t *testing.T) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	b := newBackend(t)
	migrate(t, b)
	const perKey, perOrganization = 30, 50
	first := startAPI(t, b)
	wrong := 10
	first.poll("the server has its first token", 30*time.Second, func() bool {
		status, _, err := first.try("GET", "/v1/me", nil)
		if err == nil && status == 401 {
			wrong-- // asked too early, with a key that was not there yet: it is counted as well
		}
		return err == nil && status == 200
	})
	flooding, working, late := first.tokenOf("read"), first.tokenOf("read"), first.tokenOf("read")
	// Before the others are asked for the first time: each remembers for a few seconds
	// what it read.
	first.call("PATCH", "/v1/settings", object{"rateLimits": object{"approvalsPerKey": perKey, "approvalsPerOrganization": perOrganization, "failedAuthPerAddress": 10}}, 200)
	servers := []*client{first, startAPI(t, b), startAPI(t, b)}
	const approvals = "/api/v1/approvals?state=pending&limit=20"
	var c tried
	if got := c.fire(t, servers, 25, approvals, flooding); got[200] != perKey || got[429] != 75-perKey || len(got) != 2 {
		fault("of 75 calls of one key came %v, want %d answers", got, perKey)
	}
	if got := c.fire(t, servers, 30, approvals, "obt_wrong-wrong-wrong-wrong"); got[401] != wrong || got[429] != 90-wrong || len(got) != 2 {
		fault("of 90 calls of a wrong key came %v, want %d of them refused as wrong", got, wrong)
	}
	if got := c.fire(t, servers, 5, approvals, working); got[200] != 15 || len(got) != 1 {
		fault("of 15 calls of another key came %v", got)
	}
	// 45 calls of the organization were answered; what was refused did not count.
	if got := c.fire(t, servers, 5, approvals, late); got[200] != perOrganization-45 || got[429] != 15-(perOrganization-45) {
		fault("of 15 calls of a third key came %v, want %d answers", got, perOrganization-45)
	}
	if got, _, _ := servers[1].try("GET", "/v1/me", nil); got != 200 {
		fault("/v1 gave %d", got)
	}
	return faults
}

// Without Redis each API counts alone against the same numbers: neither open nor shut.
func TestBucketsWithoutRedis(t *testing.T) {
	b := newBackend(t)
	migrate(t, b)
	first := startAPI(t, b)
	first.awaitReady()
	key := first.tokenOf("read")
	first.call("PATCH", "/v1/settings", object{"rateLimits": object{"approvalsPerKey": 5}}, 200)
	servers := []*client{first, startAPI(t, b)}
	var c tried
	if got := c.fire(t, servers[:1], 3, "/api/v1/approvals", key); got[200] != 3 {
		t.Fatalf("with Redis came %v", got)
	}
	b.server.Kill()
	// The first goes on from what it has counted itself, the second begins.
	if got := c.fire(t, servers[:1], 10, "/api/v1/approvals", key); got[200] != 2 || got[429] != 8 {
		t.Errorf("without Redis the first API gave %v", got)
	}
	if got := c.fire(t, servers[1:], 10, "/api/v1/approvals", key); got[200] != 5 || got[429] != 5 {
		t.Errorf("without Redis the second API gave %v", got)
	}
}
