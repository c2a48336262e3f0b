//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The main job against MCP servers that others wrote: every one is connected, asked,
// waits for a person, and runs once allowed.

// npmProgram gives the entry file of a program that make test installs from npm.
func npmProgram(t *testing.T, path string) string {
	t.Helper()
	folder := os.Getenv("OPENBOT_NPM_DIR")
	if folder == "" {
		t.Skip("OPENBOT_NPM_DIR is not set: NOT tested against MCP servers from npm (make test sets it)")
	}
	file, err := filepath.Abs(filepath.Join(folder, "node_modules", path))
	must(t, err)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("make test did not install it: %v", err)
	}
	return file
}

// outsideProgram gives a program of others that make test builds from the module in
// build/outside.
func outsideProgram(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv("OPENBOT_TEST_OUTSIDE_DIR")
	if folder == "" {
		t.Skip("OPENBOT_TEST_OUTSIDE_DIR is not set: NOT tested against " + name + " (make test sets it)")
	}
	return filepath.Join(folder, name)
}

// background runs a program of others until the test ends.
func background(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

func startWithCommands(t *testing.T) *client {
	t.Helper()
	cfg := backend{}.settings(t.TempDir())
	cfg.Apps.AllowCommands = true
	c, _, _ := startServe(t, cfg)
	return c
}

// connectCommand makes a Connection to an App that is started as a command.
func connectCommand(c *client, name, command string, args []string, env object) object {
	c.t.Helper()
	if env == nil {
		env = object{}
	}
	return c.call("POST", "/v1/connections", object{"name": name, "transport": "stdio", "command": command, "args": args, "env": env}, 201)
}

// allowRound lets a Bot ask for one call, allows it, and gives the ended call.
func allowRound(t *testing.T, c *client, tool string, arguments object) object {
	t.Helper()
	raw, err := json.Marshal(arguments)
	must(t, err)
	chat := c.newChat()
	turn := c.say(chat, "/call "+tool+" "+string(raw))
	c.awaitTurn(chat, turn, status("Waiting"))
	c.answer(c.pending(turn)[0], object{"decision": "allow"})
	return calls(c.awaitTurn(chat, turn, status("Completed")))[0]
}

func succeeded(t *testing.T, call object, text string) {
	t.Helper()
	if result, _ := call["result"].(string); call["status"] != "succeeded" || !strings.Contains(result, text) {
		t.Errorf("the call shows %v, want it succeeded with %q", call, text)
	}
}

func TestServerEverything(t *testing.T) {
	file := npmProgram(t, "@modelcontextprotocol/server-everything/dist/index.js")
	c := startWithCommands(t)
	t.Run("http", func(t *testing.T) {
		address := freeAddress(t)
		_, port, err := net.SplitHostPort(address)
		must(t, err)
		background(t, []string{"PORT=" + port}, "node", file, "streamableHttp")
		c.poll("the MCP server listens", 30*time.Second, func() bool {
			response, err := http.Get("http://127.0.0.1:" + port + "/mcp")
			if err == nil {
				response.Body.Close()
			}
			return err == nil
		})
		c.connect("web", "http://127.0.0.1:"+port+"/mcp")
		succeeded(t, allowRound(t, c, "web__echo", object{"message": "over http"}), "over http")
	})
	t.Run("stdio", func(t *testing.T) {
		connectCommand(c, "local", "node", []string{file, "stdio"}, nil)
		succeeded(t, allowRound(t, c, "local__echo", object{"message": "over stdio"}), "over stdio")
		call := allowRound(t, c, "local__get-sum", object{"a": 19, "b": 23})
		succeeded(t, call, "42")
	})
}

func TestServerFilesystem(t *testing.T) {
	file := npmProgram(t, "@modelcontextprotocol/server-filesystem/dist/index.js")
	c := startWithCommands(t)
	folder, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	connectCommand(c, "files", "node", []string{file, folder}, nil)
	note := filepath.Join(folder, "note.txt")
	call := allowRound(t, c, "files__write_file", object{"path": note, "content": "Written once a person had allowed it."})
	if call["status"] != "succeeded" {
		t.Fatalf("the call shows %v", call)
	}
	written, err := os.ReadFile(note)
	must(t, err)
	if string(written) != "Written once a person had allowed it." {
		t.Errorf("the file holds %q", written)
	}
}

// The case of the documents: send_email, with a real mail program and a real mail
// server.
func TestServerEmail(t *testing.T) {
	file := npmProgram(t, "@codefuturist/email-mcp/dist/main.js")
	mailpit := outsideProgram(t, "mailpit")
	smtp, web := freeAddress(t), freeAddress(t)
	background(t, nil, mailpit, "--smtp", smtp, "--listen", web, "--disable-version-check", "--smtp-auth-accept-any", "--smtp-auth-allow-insecure")
	c := startWithCommands(t)
	c.poll("the mail server answers", 30*time.Second, func() bool {
		response, err := http.Get("http://" + web + "/api/v1/messages")
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	})
	host, port, err := net.SplitHostPort(smtp)
	must(t, err)
	connectCommand(c, "mail", "node", []string{file, "stdio"}, object{
		"MCP_EMAIL_ADDRESS": "bot@example.test", "MCP_EMAIL_PASSWORD": "a password of tests", "MCP_EMAIL_IMAP_HOST": host,
		"MCP_EMAIL_SMTP_HOST": host, "MCP_EMAIL_SMTP_PORT": port, "MCP_EMAIL_SMTP_TLS": "false", "MCP_EMAIL_SMTP_VERIFY_SSL": "false",
	})
	call := allowRound(t, c, "mail__send_email", object{"account": "default", "to": []string{"ops@example.test"},
		"subject": "Weekly digest", "body": "All is well."})
	succeeded(t, call, "ops@example.test")
	response, err := http.Get("http://" + web + "/api/v1/messages")
	must(t, err)
	defer response.Body.Close()
	var box struct{ Messages []struct{ Subject string } }
	must(t, json.NewDecoder(response.Body).Decode(&box))
	if len(box.Messages) != 1 || box.Messages[0].Subject != "Weekly digest" {
		t.Errorf("the mailbox holds %v, want the one mail", box.Messages)
	}
}

// A second, independent implementation of the protocol.
func TestServerOfAnotherLibrary(t *testing.T) {
	program := outsideProgram(t, "everything")
	c := startWithCommands(t)
	connectCommand(c, "other", program, []string{}, nil)
	succeeded(t, allowRound(t, c, "other__echo", object{"message": "another library"}), "another library")
}

// A rude App prints junk where the protocol belongs: it is saved, shown as
// unreachable in words, and holds up nobody.
func TestServerThatPrintsJunk(t *testing.T) {
	file := npmProgram(t, "time-mcp/dist/index.js")
	c := startWithCommands(t)
	made := connectCommand(c, "rude", "node", []string{file}, nil)
	health := made["health"].(object)
	if reason, _ := health["reason"].(string); health["status"] != "unreachable" || reason == "" || strings.Contains(reason, "invalid character") {
		t.Errorf("the rude App's health is %v", health)
	}
}
