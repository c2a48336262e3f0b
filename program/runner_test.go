//go:build unix

package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"openbot/domain"
	"openbot/program"
)

func TestRunThroughAChild(t *testing.T) {
	const text = `const a = await app.call("files", "read", {path: "a"}, "why"); console.log(a); return a.length`
	runner := newRunner(t, program.Limits{})
	first, err := runner.Run(t.Context(), source(text), nil, program.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, first, program.StatusWaiting)
	// What the engine does: keep the trace as JSON.
	kept, err := json.Marshal(first.Trace)
	if err != nil {
		t.Fatal(err)
	}
	var trace program.Trace
	if err := json.Unmarshal(kept, &trace); err != nil {
		t.Fatal(err)
	}
	second, err := runner.Run(t.Context(), source(text), []*program.Answer{done("four")}, trace)
	if err != nil {
		t.Fatal(err)
	}
	wantResult(t, second, "4")
	if second.Output != "four\n" {
		t.Fatalf("the output is %q", second.Output)
	}
}

func TestManyAtOnce(t *testing.T) {
	runner := newRunner(t, program.Limits{})
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			got, err := runner.Run(t.Context(), source(`return 1 + 1`), nil, program.Trace{})
			if err != nil || string(got.Result) != "2" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
}

func TestContextEnds(t *testing.T) {
	runner, err := program.NewRunner(program.RunOptions{Children: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = runner.Run(ctx, source(`for (;;) {}`), nil, program.Trace{})
	if !errors.Is(err, context.Canceled) || !domain.IsCode(err, domain.CodeUnavailable) {
		t.Fatalf("the error is %v", err)
	}
}

func TestSavedFactsThatDoNotFit(t *testing.T) {
	one := program.Trace{Calls: []program.Asked{{Connection: "a", Tool: "b", Arguments: json.RawMessage(`{}`)}}}
	given := one
	given.Given = []int{0}
	twice := one
	twice.Given = []int{0, 0}
	runner := newRunner(t, program.Limits{})
	for name, c := range map[string]struct {
		answers []*program.Answer
		earlier program.Trace
	}{
		"an answer is lost":          {nil, given},
		"an answer is given twice":   {[]*program.Answer{done("")}, twice},
		"an answer without its call": {[]*program.Answer{nil, done("")}, one},
		"an answer before the start": {[]*program.Answer{done("")}, program.Trace{}},
		"no such call":               {[]*program.Answer{done("")}, program.Trace{Given: []int{-1}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := runner.Run(t.Context(), source(`1`), c.answers, c.earlier); !domain.IsCode(err, domain.CodeInternal) {
				t.Fatalf("the error is %v", err)
			}
		})
	}
}

// TestBrokenChildren stands scripts in for the child.
func TestBrokenChildren(t *testing.T) {
	cases := []struct {
		name, script string
		status       program.Status // of an Outcome; an error when empty
	}{
		{"crashes", `echo "fatal error: something" >&2; exit 2`, program.StatusFailed},
		{"runs out of memory", `echo "fatal error: runtime: out of memory" >&2; exit 2`, program.StatusOutOfMemory},
		{"is killed by the system", `kill -9 $$`, program.StatusOutOfMemory},
		{"never starts", `exit 71`, ""},
		{"says nothing", `exit 0`, ""},
		{"says something else", `echo hello`, ""},
		{"says an empty object", `echo '{}'`, ""},
		{"hangs", `while :; do :; done`, program.StatusTimedOut},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "child")
			if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			runner, err := program.NewRunner(program.RunOptions{Executable: path, Limits: program.Limits{Time: short}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := runner.Run(t.Context(), source(`1`), nil, program.Trace{})
			if c.status == "" {
				if !domain.IsCode(err, domain.CodeUnavailable) {
					t.Fatalf("%+v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantStatus(t, got, c.status)
		})
	}
	missing, err := program.NewRunner(program.RunOptions{Executable: filepath.Join(t.TempDir(), "none")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := missing.Run(t.Context(), source(`1`), nil, program.Trace{}); !domain.IsCode(err, domain.CodeUnavailable) {
		t.Fatalf("without a binary the error is %v", err)
	}
}

// TestGroupIsKilled has a child start another, which holds a pipe open as long as it
// lives.
func TestGroupIsKilled(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	alive, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = alive.Close() }()
	path := filepath.Join(dir, "child")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nsleep 60 >"+pipe+" &\nwait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	runner, err := program.NewRunner(program.RunOptions{Executable: path, Limits: program.Limits{Time: short}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := runner.Run(t.Context(), source(`1`), nil, program.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, program.StatusTimedOut)
	if err := alive.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := alive.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("what the child started still lives: %v", err)
	}
}

// TestChildInheritsNothing looks at a child from its own inside. That it can open
// nothing either is seen in TestMain.
func TestChildInheritsNothing(t *testing.T) {
	t.Setenv("OPENBOT_SECRET", "s3cret")
	dir := t.TempDir()
	path := filepath.Join(dir, "child")
	script := "#!/bin/sh\nenv >" + dir + "/env\npwd >" + dir + "/pwd\nexit 71\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	runner, err := program.NewRunner(program.RunOptions{Executable: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runner.Run(t.Context(), source(`1`), nil, program.Trace{}); err == nil {
		t.Fatal("the script gave an outcome")
	}
	for _, line := range strings.Fields(read(t, dir, "env")) {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "TZ", "GOMAXPROCS", "GOTRACEBACK", "GORACE", "PWD", "OLDPWD", "SHLVL", "_": // the last ones are the shell's
		default:
			t.Errorf("the child has %s", line)
		}
	}
	if dir := strings.TrimSpace(read(t, dir, "pwd")); dir != "/" {
		t.Errorf("the child stands in %s", dir)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMainWithoutARequest is a child that somebody starts by hand.
func TestMainWithoutARequest(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, program.ChildArgument)
	cmd.Stdin, cmd.Stdout = strings.NewReader("hello"), io.Discard
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 71 {
		t.Fatalf("the child ended with %v", err)
	}
}
