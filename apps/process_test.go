package apps_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openbot/apps"
	"openbot/domain"
)

const (
	commandMode = "OPENBOT_TEST_COMMAND"
	commandLog  = "OPENBOT_TEST_LOG"
)

// commandMain is what the test binary does as an App.
func commandMain(mode string) {
	switch mode {
	case "junk":
		fmt.Println("Server started, listening on stdin")
	case "exit":
		return
	case "long":
		_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 9<<20) + "\"}\n")
	case "deaf":
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		// The child holds the pipe open for as long as it lives.
		pipe, err := os.OpenFile(os.Getenv(commandLog), os.O_WRONLY, 0)
		child := exec.Command("sleep", "600")
		child.ExtraFiles = []*os.File{pipe}
		if err == nil && child.Start() == nil {
			_ = pipe.Close()
			commandServer()
		}
	default:
		commandServer()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func note(text string) {
	file, err := os.OpenFile(os.Getenv(commandLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintln(file, text)
		_ = file.Close()
	}
}

func commandServer() {
	server := mcp.NewServer(&mcp.Implementation{Name: "command", Version: "1"}, nil)
	add := func(name string, f func() string) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				note(name)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: f()}}}, nil
			})
	}
	add("env", func() string {
		environment := os.Environ()
		slices.Sort(environment)
		return strings.Join(environment, "\n")
	})
	add("die", func() string { os.Exit(3); return "" })
	add("junk", func() string { fmt.Println("oops"); return "fine" })
	fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 100_000))
	_ = server.Run(context.Background(), &mcp.StdioTransport{})
}

// command gives Apps that may start commands, and the endpoint of this binary as an
// App in a mode.
func command(t *testing.T, mode string, change func(*apps.Options)) (*apps.Apps, domain.AppEndpoint, string) {
	t.Helper()
	sealer, err := apps.NewSealer(strings.Repeat("k", 32))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	a := newApps(t, func(o *apps.Options) {
		o.AllowCommands, o.Sealer = true, sealer
		if change != nil {
			change(o)
		}
	})
	return a, domain.AppEndpoint{Connection: connection, Organization: organization, Revision: 1,
		Transport: domain.TransportStdio, Command: self,
		Sealed: seal(t, sealer, domain.AppSecrets{Env: map[string]string{commandMode: mode, commandLog: log}})}, log
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

func TestCommandGetsABareEnvironment(t *testing.T) {
	t.Setenv("OPENBOT_SECRET_KEY", "of the server")
	a, endpoint, _ := command(t, "serve", nil)
	got, err := a.Call(t.Context(), endpoint, call("env", `{}`), yes)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(got.Text, "\n") {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains([]string{"PATH", "HOME", "LANG", commandMode, commandLog}, name) {
			t.Errorf("the command sees %s", line)
		}
	}
	if !strings.Contains(got.Text, "PATH=") || !strings.Contains(got.Text, commandMode) {
		t.Errorf("the command's environment is %q", got.Text)
	}
}

func TestCommandsNeedTheSetting(t *testing.T) {
	a, endpoint, log := command(t, "serve", func(o *apps.Options) { o.AllowCommands = false })
	_, err := a.Call(t.Context(), endpoint, call("env", `{}`), yes)
	if message := appError(t, err, false).Message; !strings.Contains(message, "starts no commands") {
		t.Errorf("the message is %q", message)
	}
	if len(lines(t, log)) != 0 {
		t.Error("the command ran")
	}
}

func TestCommandThatDiesDuringACall(t *testing.T) {
	a, endpoint, log := command(t, "serve", nil)
	_, err := a.Call(t.Context(), endpoint, call("die", `{}`), yes)
	appError(t, err, true)
	if _, err := a.Call(t.Context(), endpoint, call("env", `{}`), yes); err != nil {
		t.Errorf("the next call fails: %v", err)
	}
	if got := lines(t, log); !slices.Equal(got, []string{"die", "env"}) {
		t.Errorf("the command received %q", got)
	}
}

func TestCommandRefusedByReady(t *testing.T) {
	a, endpoint, log := command(t, "serve", nil)
	_, err := a.Call(t.Context(), endpoint, call("env", `{}`), func() error { return context.Canceled })
	if err != context.Canceled {
		t.Errorf("the error is %v, want that of ready", err)
	}
	if _, err := a.Call(t.Context(), endpoint, call("env", `{}`), yes); err != nil {
		t.Errorf("the next call fails: %v", err)
	}
	if got := lines(t, log); !slices.Equal(got, []string{"env"}) {
		t.Errorf("the command received %q", got)
	}
}

func TestCommandsThatSpeakNoMCP(t *testing.T) {
	for mode, want := range map[string]string{
		"junk": "something other than MCP", "exit": "ended", "long": "more than 8 MiB", "deaf": "in time",
	} {
		t.Run(mode, func(t *testing.T) {
			a, endpoint, _ := command(t, mode, func(o *apps.Options) {
				if mode == "deaf" {
					o.LookTimeout = 300 * time.Millisecond
				}
			})
			_, err := a.Call(t.Context(), endpoint, call("env", `{}`), yes)
			if message := appError(t, err, false).Message; !strings.Contains(message, want) {
				t.Errorf("the message is %q, want it to say %q", message, want)
			}
		})
	}
	a, endpoint, _ := command(t, "serve", nil)
	endpoint.Command = "no-such-command-of-an-app"
	_, err := a.Look(t.Context(), endpoint)
	if message := appError(t, err, false).Message; !strings.Contains(message, "not installed") {
		t.Errorf("the message is %q", message)
	}
}

func TestCommandThatTurnsToJunkDuringACall(t *testing.T) {
	a, endpoint, log := command(t, "serve", nil)
	_, err := a.Call(t.Context(), endpoint, call("junk", `{}`), yes)
	appError(t, err, true)
	if got := lines(t, log); !slices.Equal(got, []string{"junk"}) {
		t.Errorf("the command received %q", got)
	}
}

func TestStubbornCommandEndsWithItsGroup(t *testing.T) {
	a, endpoint, pipe := command(t, "stubborn", nil)
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	opened, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		file, err := os.Open(pipe)
		close(opened)
		if err == nil {
			_, err = io.ReadAll(file)
			_ = file.Close()
		}
		ended <- err
	}()
	if _, err := a.Look(t.Context(), endpoint); err != nil {
		t.Fatal(err)
	}
	<-opened
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a child of the command outlived it")
	}
}
