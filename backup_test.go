//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"openbot/apps/appstest"
	"openbot/build/testenv/services"
	"openbot/config"
)

// waiting is a Request that waits while a backup is taken.
func waiting(t *testing.T, c *client, app *appstest.App) (chat, turn string) {
	t.Helper()
	c.connect("desk", app.URL)
	chat = c.newChat()
	turn = c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`+"\n/say Sent.")
	c.awaitTurn(chat, turn, status("Waiting"))
	c.awaitChained()
	return chat, turn
}

// goesOn answers what waited, on the restored data.
func goesOn(t *testing.T, c *client, app *appstest.App, chat, turn string) {
	t.Helper()
	c.answer(c.pending(turn)[0], object{"decision": "allow"})
	if ended := c.awaitTurn(chat, turn, status("Completed")); ended["answer"] != "Sent." {
		t.Errorf("the Turn ended with %v", ended)
	}
	if got := app.Count("send_email"); got != 1 {
		t.Errorf("the App got %d calls, want 1", got)
	}
	next := c.say(chat, "Hello")
	c.awaitTurn(chat, next, status("Completed"))
	c.awaitChained()
}

// The backup of docs/operations.md: a dump of the running database, restored into
// another cluster, beside a Redis that knows nothing.
func TestADumpRestoredElsewhereGoesOn(t *testing.T) {
	b := newBackend(t)
	folder, err := services.FindPostgres()
	must(t, err)
	for _, name := range []string{"pg_dump", "pg_restore"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Skipf("%s is not installed: backup and restore are NOT tested", name)
		}
	}
	app := appstest.New(t)
	c, _, stop := startServe(t, b.settings(t.TempDir()))
	chat, turn := waiting(t, c, app)
	dump := filepath.Join(t.TempDir(), "openbot.dump")
	out, err := exec.Command(filepath.Join(folder, "pg_dump"), "--format=custom", "--no-owner", "--file="+dump, b.database).CombinedOutput()
	if err != nil {
		t.Fatalf("pg_dump: %v: %s", err, out)
	}
	stop() // what comes after the dump is lost

	other, err := services.StartPostgres("", services.PostgresOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, other.Stop()) })
	address, err := other.NewDatabase("restored")
	must(t, err)
	out, err = exec.Command(filepath.Join(folder, "pg_restore"), "--no-owner", "--exit-on-error", "--dbname="+address, dump).CombinedOutput()
	if err != nil {
		t.Fatalf("pg_restore: %v: %s", err, out)
	}
	redis, err := services.StartRedis("", services.RedisOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, redis.Stop()) })
	restored := backend{name: "PostgreSQL", database: address, redis: redis.URL(), server: redis}
	data := t.TempDir()
	c, _, stop = startServe(t, restored.settings(data))
	goesOn(t, c, app, chat, turn)
	stop()
	if out, ok := openbot(t, restored, data, "", "audit", "verify"); !ok {
		t.Errorf("the audit log of the restored data: %s", out)
	}
}

// The backup of one process: the data folder, copied while it is stopped, with the key
// that the server made itself.
func TestACopiedDataFolderGoesOn(t *testing.T) {
	app := appstest.New(t)
	first, second := t.TempDir(), filepath.Join(t.TempDir(), "data")
	cfg := backend{name: "SQLite"}.settings(first)
	cfg.SecretKey = config.Secret{} // the one in the data folder
	c, _, stop := startServe(t, cfg)
	chat, turn := waiting(t, c, app)
	stop()
	must(t, os.CopyFS(second, os.DirFS(first)))
	must(t, os.Chmod(filepath.Join(second, "secret.key"), 0o600)) // the copy is open to everybody, and so refused
	cfg.Data = second
	c, _, _ = startServe(t, cfg)
	goesOn(t, c, app, chat, turn)
}
