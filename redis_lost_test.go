//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"openbot/apps/appstest"
)

// What docs/operations.md says of a lost Redis: one that was restored from an old copy
// brings back tasks that are done, and nothing of them runs again; one that is full holds
// work up until it is larger.
func TestRedisRestoredFromAnOldCopyOrFull(t *testing.T) {
	b := newBackend(t)
	migrate(t, b)
	options, err := redis.ParseURL(b.redis)
	must(t, err)
	db := redis.NewClient(options)
	t.Cleanup(func() { must(t, db.Close()) })
	app := appstest.New(t)
	address := freeAddress(t)
	startProcess(t, b, "api", address)
	startProcess(t, b, "scheduler", "127.0.0.1:0")
	worker := startProcess(t, b, "worker", "127.0.0.1:0")
	c := &client{t: t, base: "http://" + address, token: testToken}
	c.awaitReady()
	c.connect("desk", app.URL)
	worker.stop()

	chat := c.newChat()
	turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
	old := map[string]string{}
	c.poll("the task waits in Redis", 20*time.Second, func() bool {
		keys, err := db.Keys(t.Context(), "asynq:*turn.step*").Result()
		must(t, err)
		return len(keys) > 0
	})
	keys, err := db.Keys(t.Context(), "*").Result()
	must(t, err)
	for _, key := range keys {
		if saved, err := db.Dump(t.Context(), key).Result(); err == nil {
			old[key] = saved
		}
	}
	if old["asynq:{turns}:pending"] == "" {
		t.Fatalf("the copy holds no task that waits: %d keys", len(old))
	}
	worker.start()
	c.awaitTurn(chat, turn, status("Waiting"))
	c.answer(c.pending(turn)[0], object{"decision": "allow"})
	ended := c.awaitTurn(chat, turn, status("Completed"))

	must(t, db.FlushDB(t.Context()).Err())
	for key, saved := range old {
		must(t, db.RestoreReplace(t.Context(), key, 0, saved).Err())
	}
	next := c.say(chat, "/say And on.")
	c.awaitTurn(chat, next, status("Completed"))
	c.poll("the old tasks are gone", 30*time.Second, func() bool {
		n, err := db.LLen(t.Context(), "asynq:{turns}:pending").Result()
		must(t, err)
		return n == 0
	})
	if now := c.call("GET", "/v1/turns/"+turn, nil, 200); now["updatedAt"] != ended["updatedAt"] || app.Count("send_email") != 1 {
		t.Errorf("the old copy changed the Turn to %v; the App got %d calls", now, app.Count("send_email"))
	}

	must(t, db.ConfigSet(t.Context(), "maxmemory", "1mb").Err())
	full := c.say(chat, "/say Through.")
	c.poll("nothing runs on a full Redis", 20*time.Second, func() bool {
		return db.Set(t.Context(), "probe", "x", time.Second).Err() != nil
	})
	must(t, db.ConfigSet(t.Context(), "maxmemory", "0").Err())
	back := time.Now()
	if c.awaitTurn(chat, full, status("Completed")); time.Since(back) > 15*time.Second {
		t.Errorf("the work went on %s after Redis was larger, want within 15 s", time.Since(back))
	}
}
