//go:build unix

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"openbot/apps/appstest"
)

// Trees of work with limits, Requests and cancels, while a worker or scheduler is killed
// every second and Redis is emptied every three: every piece ends, every giver hears of
// each once, nothing is sent twice, and what was cancelled starts nothing. The variable
// OPENBOT_TEST_FIRE gives another number of trees.
func TestWorkUnderFire(t *testing.T) {
	trees := 40
	if set := os.Getenv("OPENBOT_TEST_FIRE"); set != "" {
		var err error
		trees, err = strconv.Atoi(set)
		must(t, err)
	}
	b := newBackend(t)
	migrate(t, b)
	app := appstest.New(t)
	address := freeAddress(t)
	start := func(role, listen string) *process {
		p := startProcess(t, b, role, listen)
		p.log = io.Discard
		return p
	}
	start("api", address)
	prey := []*process{start("worker", "127.0.0.1:0"), start("worker", "127.0.0.1:0"), start("scheduler", "127.0.0.1:0")}
	c := &client{t: t, base: "http://" + address, token: testToken}
	c.awaitReady()
	c.connect("desk", app.URL)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))

	chats := make([]string, trees)
	for i := range chats {
		leaf := delegate(t, object{"timeMs": 600_000}, fmt.Sprintf(`/call desk__send_email {"to":"%d@example.test"}`, i), "/then", fmt.Sprintf("/say leaf %d.", i))
		branch := delegate(t, object{"timeMs": 600_000, "steps": 1}, leaf, "/then", "/say waiting for the leaf")
		chats[i] = c.newChat()
		c.say(chats[i], branch+"\n"+delegate(t, object{"timeMs": 600_000}, fmt.Sprintf("/say aside %d.", i)))
	}
	options, err := redis.ParseURL(b.redis)
	must(t, err)
	queue := redis.NewClient(options)
	defer queue.Close()
	kills, empties, answers := 0, 0, 0
	nextKill, nextEmpty := time.Now().Add(time.Second), time.Now().Add(3*time.Second)
	cancelled := map[string]bool{}
	c.poll("every piece of work ends", 10*time.Minute, func() bool {
		if now := time.Now(); kills < trees/2 && now.After(nextKill) {
			p := prey[random.IntN(len(prey))]
			p.kill()
			p.start()
			kills++
			nextKill = now.Add(time.Second)
		}
		if now := time.Now(); empties < trees/5 && now.After(nextEmpty) {
			must(t, queue.FlushAll(t.Context()).Err())
			empties++
			nextEmpty = now.Add(3 * time.Second)
		}
		for _, r := range c.list("/v1/requests?status=pending&limit=50") {
			decision := "allow"
			if r["unknown"] != nil {
				decision = "deny"
			}
			// It may have been cancelled since it was listed.
			body := object{"decision": decision, "expected": r["revision"]}
			if got, raw, err := c.try("POST", "/v1/requests/"+r["id"].(string), body); err != nil || got != 200 && got != 409 {
				t.Fatalf("an answer gave %d, %v: %s", got, err, raw)
			}
			answers++
		}
		done := true
		for i, chat := range chats {
			list := c.list("/v1/chats/" + chat + "/delegations")
			done = done && len(list) == 2
			for _, g := range list {
				open := g["executionStatus"] != "completed" && g["executionStatus"] != "failed" && g["executionStatus"] != "cancelled"
				done = done && !open
				if id := g["id"].(string); open && i%4 == 3 && answers > trees/2 && !cancelled[chat] && strings.Contains(g["task"].(string), "waiting for") {
					got, raw, err := c.try("POST", "/v1/delegations/"+id+"/cancel", object{"commandKey": "stop-" + id})
					if err != nil || got != 202 && got != 409 {
						t.Fatalf("a cancel gave %d, %v: %s", got, err, raw)
					}
					cancelled[chat] = got == 202
				}
			}
		}
		return done
	})
	for i, chat := range chats {
		c.poll("the giver has heard of all", time.Minute, func() bool {
			told := map[string]int{}
			for _, item := range c.list("/v1/chats/" + chat + "/items?limit=200") {
				if item["kind"] == "notice" {
					for _, g := range c.list("/v1/chats/" + chat + "/delegations") {
						if strings.Contains(item["text"].(string), g["id"].(string)) {
							told[g["id"].(string)]++
						}
					}
				}
			}
			for id, n := range told {
				if n != 1 {
					t.Fatalf("Chat %d heard of %s %d times", i, id, n)
				}
			}
			return len(told) == 2
		})
	}
	for call, n := range sentTo(app) {
		if n != 1 {
			t.Errorf("%s went out %d times", call, n)
		}
	}
	t.Logf("%d kills, Redis emptied %d times, %d answers, %d cancels", kills, empties, answers, len(cancelled))
}
