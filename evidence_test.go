//go:build unix

package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/glebarez/go-sqlite" // to do to the database what its owner could
	"github.com/jackc/pgx/v5"

	"openbot/apps/appstest"
)

const testSecret = "a secret key of tests, 32 characters at least"

// openbot runs a command of the program in a process of its own.
func openbot(t *testing.T, b backend, data, input string, args ...string) (out string, ok bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{asProgram + "=1", "OPENBOT_DATA=" + data, "OPENBOT_SECRET_KEY=" + testSecret, "DATABASE_URL=" + b.database}
	cmd.Stdin = strings.NewReader(input)
	text, err := cmd.CombinedOutput()
	if strings.Count(strings.TrimSpace(string(text)), "\n") > 0 {
		t.Errorf("openbot %v says more than one line: %s", args, text)
	}
	return string(text), err == nil
}

// raw reads an answer that is no JSON object.
func (c *client) raw(path string) string {
	c.t.Helper()
	got, raw, err := c.try("GET", path, nil)
	must(c.t, err)
	if got != 200 {
		c.t.Fatalf("GET %s gave %d: %s", path, got, raw)
	}
	return string(raw)
}

// decided lets a Bot ask once and a person answer, and gives the Request.
func (c *client) decided(decision string) string {
	c.t.Helper()
	chat := c.newChat()
	turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
	c.awaitTurn(chat, turn, status("Waiting"))
	r := c.answer(c.pending(turn)[0], object{"decision": decision})
	c.awaitTurn(chat, turn, status("Completed"))
	return r["id"].(string)
}

// awaitChained waits until everything that was logged is chained.
func (c *client) awaitChained() {
	c.t.Helper()
	c.poll("the audit log is chained", 30*time.Second, func() bool {
		newest := c.list("/v1/audit?limit=1")
		return len(newest) == 1 && newest[0]["number"] != nil
	})
}

// What the operator and an outsider do with the evidence, with the real commands.
func TestEvidenceFromTheOutside(t *testing.T) {
	t.Parallel()
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		data := t.TempDir()
		c, _, stop := startServe(t, b.settings(data))
		c.connect("desk", app.URL)
		request := c.decided("allow")
		file := func(name, content string) string {
			path := filepath.Join(t.TempDir(), name)
			must(t, os.WriteFile(path, []byte(content), 0o600))
			return path
		}
		receipt := c.raw("/v1/requests/" + request + "/receipt")
		keys := file("jwks.json", c.raw("/.well-known/jwks.json"))
		good := file("receipt.jws", receipt+"\n")
		for _, args := range [][]string{{"verify", good, "--keys", keys}, {"verify", good, "--keys", c.base + "/.well-known/jwks.json"}, {"verify", good}} {
			out, ok := openbot(t, b, data, "", args...)
			if !ok || !strings.HasPrefix(out, "valid: allow once by Person mem_") || !strings.Contains(out, request) || !strings.Contains(out, "send_email") {
				t.Errorf("openbot %v: %s", args, out)
			}
		}
		for i := 0; i < len(receipt); i += len(receipt)/3 + 1 { // every byte is tried where it costs less
			changed := receipt[:i] + string("AB"[bool2int(receipt[i] == 'A')]) + receipt[i+1:]
			if out, ok := openbot(t, b, data, changed, "verify", "-", "--keys", keys); ok || strings.Contains(out, "\nvalid") {
				t.Errorf("a receipt with byte %d changed: %s", i, out)
			}
		}
		if out, ok := openbot(t, b, data, "", "token", "create", "--name", "from the machine"); !ok {
			t.Errorf("openbot token create: %s", out)
		}
		if made := c.list("/v1/audit?kind=token.created&limit=1"); made[0]["actor"].(object)["_tag"] != "Operator" || made[0]["address"] != nil {
			t.Errorf("of a token that was made on the machine the log says %v", made)
		}
		c.awaitChained()
		head := c.call("GET", "/v1/audit/head", nil, 200)
		if out, ok := openbot(t, b, data, head["signed"].(string), "verify", "-", "--keys", keys); !ok || !strings.Contains(out, fmt.Sprintf("%v entries", head["count"])) {
			t.Errorf("the signed head: %s", out)
		}
		pin := fmt.Sprintf("%v:%s", head["count"], head["hash"])
		export := file("audit.jsonl", c.raw("/v1/audit?format=jsonl"))
		for _, args := range [][]string{{"audit", "verify"}, {"audit", "verify", "--pin", pin}, {"audit", "verify", "--file", export, "--pin", pin}} {
			if out, ok := openbot(t, b, data, "", args...); !ok || !strings.Contains(out, "are whole") {
				t.Errorf("openbot %v: %s", args, out)
			}
		}
		if out, ok := openbot(t, b, data, "", "keys", "rotate", "--now"); !ok || !strings.Contains(out, "signs from") {
			t.Errorf("openbot keys rotate: %s", out)
		}
		stop()
		c, _, stop = startServe(t, b.settings(data))
		newer := c.raw("/v1/requests/" + c.decided("deny") + "/receipt")
		fresh := file("jwks2.json", c.raw("/.well-known/jwks.json"))
		for name, text := range map[string]string{"old": receipt, "new": newer} {
			if out, ok := openbot(t, b, data, text, "verify", "-", "--keys", fresh); !ok {
				t.Errorf("after a new key was made, the %s receipt: %s", name, out)
			}
		}
		if out, ok := openbot(t, b, data, newer, "verify", "-", "--keys", keys); ok || !strings.Contains(out, "not among the keys") {
			t.Errorf("with the keys of before: %s", out)
		}
		c.awaitChained()
		stop()

		tamper(t, b, data, `UPDATE audit_entries SET address = '203.0.113.9' WHERE subject = '`+request+`'`)
		out, ok := openbot(t, b, data, "", "audit", "verify")
		if ok || !strings.Contains(out, "was changed (request.decided of "+request) {
			t.Errorf("after one entry was changed: %s", out)
		}
		tamper(t, b, data, `UPDATE audit_entries SET address = '127.0.0.1' WHERE subject = '`+request+`'`)
		if out, ok := openbot(t, b, data, "", "audit", "verify"); !ok {
			t.Errorf("after it was put back: %s", out)
		}
		tamper(t, b, data, `DELETE FROM audit_links WHERE number = 3`)
		if out, ok := openbot(t, b, data, "", "audit", "verify"); ok || !strings.Contains(out, "entry 3 was removed") {
			t.Errorf("after a row was removed: %s", out)
		}
	})
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tamper does to the database what only its owner can.
func tamper(t *testing.T, b backend, data, statement string) {
	t.Helper()
	if b.database != "" {
		connection, err := pgx.Connect(t.Context(), b.database)
		must(t, err)
		defer connection.Close(t.Context())
		for _, s := range []string{"ALTER TABLE audit_entries DISABLE TRIGGER ALL", "ALTER TABLE audit_links DISABLE TRIGGER ALL", statement} {
			_, err = connection.Exec(t.Context(), s)
			must(t, err)
		}
		return
	}
	db, err := sql.Open("sqlite", filepath.Join(data, "openbot.db"))
	must(t, err)
	defer func() { must(t, db.Close()) }()
	for _, name := range []string{"audit_entries_unchanged", "audit_entries_kept", "audit_links_unchanged", "audit_links_kept"} {
		_, err = db.Exec("DROP TRIGGER IF EXISTS " + name)
		must(t, err)
	}
	done, err := db.Exec(statement)
	must(t, err)
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("%s touched %d rows: %v", statement, n, err)
	}
}

// Commands that check make nothing: no database, no secret.
func TestChecksOfNothingLeaveNothing(t *testing.T) {
	data := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"audit", "verify"}, {"keys", "rotate"}, {"verify", "-"}} {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = []string{asProgram + "=1", "OPENBOT_DATA=" + data}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "there is no database") {
			t.Errorf("openbot %v: %v, %s", args, err, out)
		}
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("a folder was made")
	}
}

// Two schedulers chain, one of them is killed, and many answer at once: each decision
// has one entry, and the chain is whole.
func TestTheLogOutlivesASchedulerAmidManyAnswers(t *testing.T) {
	b := newBackend(t)
	migrate(t, b)
	app := appstest.New(t)
	address := freeAddress(t)
	startProcess(t, b, "api", address)
	startProcess(t, b, "worker", "127.0.0.1:0")
	first := startProcess(t, b, "scheduler", "127.0.0.1:0")
	startProcess(t, b, "scheduler", "127.0.0.1:0")
	c := &client{t: t, base: "http://" + address, token: testToken}
	c.awaitReady()
	c.connect("desk", app.URL)
	const rounds = 24
	var all sync.WaitGroup
	requests := make([]string, rounds)
	for i := range rounds {
		all.Go(func() {
			if i == rounds/2 {
				first.kill()
			}
			requests[i] = c.decided([]string{"allow", "deny"}[i%2])
		})
	}
	all.Wait()
	c.awaitChained()
	for _, id := range requests {
		if entries := c.list("/v1/audit?subject=" + id); len(entries) != 1 || entries[0]["kind"] != "request.decided" {
			t.Errorf("about %s the log says %v", id, entries)
		}
	}
	if out, ok := openbot(t, b, t.TempDir(), "", "audit", "verify"); !ok {
		t.Errorf("openbot audit verify: %s", out)
	}
}

// A receipt is checked by a library that others wrote, with the keys that it fetches
// itself; with one byte changed it is not believed.
func TestReceiptsForTheLibraryOfOthers(t *testing.T) {
	npmProgram(t, "jose/package.json")
	app := appstest.New(t)
	c, _, _ := startServe(t, backend{}.settings(t.TempDir()))
	c.connect("desk", app.URL)
	request := c.decided("deny")
	receipt := c.raw("/v1/requests/" + request + "/receipt")
	const script = `
import { compactVerify, createRemoteJWKSet } from 'jose';
const [address, receipt] = process.argv.slice(1);
const keys = createRemoteJWKSet(new URL(address));
const { payload, protectedHeader } = await compactVerify(receipt, keys, { algorithms: ['EdDSA'] });
const refused = [];
for (let i = 0; i < receipt.length - 1; i++) { // the last letter has bits that no signature fills
  const other = receipt[i] === 'A' ? 'B' : 'A';
  try {
    await compactVerify(receipt.slice(0, i) + other + receipt.slice(i + 1), keys);
  } catch {
    refused.push(i);
  }
}
console.log(JSON.stringify({ header: protectedHeader, payload: JSON.parse(new TextDecoder().decode(payload)), refused: refused.length }));
`
	cmd := exec.Command("node", "--input-type=module", "-e", script, "--", c.base+"/.well-known/jwks.json", receipt)
	cmd.Dir = os.Getenv("OPENBOT_NPM_DIR")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, &stderr)
	}
	var said struct {
		Header, Payload object
		Refused         int
	}
	must(t, json.Unmarshal(out, &said))
	if said.Header["alg"] != "EdDSA" || said.Payload["request"] != request || said.Payload["decision"] != "deny" || said.Payload["by"].(object)["_tag"] != "Person" {
		t.Errorf("the library reads %+v", said)
	}
	if said.Refused != len(receipt)-1 {
		t.Errorf("of %d changed receipts %d were refused", len(receipt)-1, said.Refused)
	}
}
