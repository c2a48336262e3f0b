//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// pasted runs commands of a document as they stand there.
func pasted(t *testing.T, commands string, environment ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	cmd.Env = environment
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("what docs/operations.md says does not work: %v\n%s%s", err, commands, out)
	}
}

// The backup of docs/operations.md, with its own commands: a dump of the running
// database, restored into another cluster, beside a Redis that knows things of its own.
func TestADumpRestoredElsewhereGoesOn(t *testing.T) {
	b := newBackend(t)
	folder, err := services.FindPostgres()
	must(t, err)
	bin := t.TempDir()
	for _, program := range []string{filepath.Join(folder, "pg_dump"), filepath.Join(folder, "pg_restore"), "redis-cli"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Skipf("%s is not installed: backup and restore are NOT tested", program)
		}
		must(t, os.Symlink(path, filepath.Join(bin, filepath.Base(program))))
	}
	must(t, os.WriteFile(filepath.Join(bin, "openbot"), []byte("#!/bin/sh\n"+asProgram+"=1 exec "+os.Args[0]+" \"$@\"\n"), 0o700))
	commands := blocks(t, "docs/operations.md", "Backup and restore")
	if len(commands) != 2 {
		t.Fatalf("docs/operations.md has %d blocks of commands for backup and restore, this test knows 2", len(commands))
	}
	here := t.TempDir()
	environment := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "OPENBOT_DATA=" + here, "OPENBOT_SECRET_KEY=a secret key of tests, 32 characters at least"}

	app := appstest.New(t)
	c, _, stop := startServe(t, b.settings(t.TempDir()))
	chat, turn := waiting(t, c, app)
	head := c.call("GET", "/v1/audit/head", nil, 200)
	pasted(t, "cd "+here+"; "+commands[0], append(environment, "DATABASE_URL="+b.database)...)
	stop() // what comes after the dump is lost

	other, err := services.StartPostgres("", services.PostgresOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, other.Stop()) })
	address, err := other.NewDatabase("restored")
	must(t, err)
	restored := backend{name: "PostgreSQL", database: address, redis: b.redis, server: b.server}
	pin := fmt.Sprintf("%.0f:%s", head["count"], head["hash"])
	pasted(t, "cd "+here+"; "+strings.ReplaceAll(commands[1], "COUNT:HASH", pin), append(environment, "DATABASE_URL="+address, "REDIS_URL="+b.redis)...)
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
	if out, err := exec.Command("cp", "-a", first, second).CombinedOutput(); err != nil {
		t.Fatalf("cp -a: %v: %s", err, out)
	}
	cfg.Data = second
	c, _, _ = startServe(t, cfg)
	goesOn(t, c, app, chat, turn)
}
