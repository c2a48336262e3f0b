package program_test

import (
	"flag"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"openbot/program"
)

// TestMain makes the test binary its own child, as main does. At its end each child
// tries to reach out, and takes back its answer when it can.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == program.ChildArgument {
		code := program.Main(os.Stdin, os.Stdout)
		if code == 0 && reachesOut() {
			code = 1
		}
		os.Exit(code)
	}
	flag.Parse()
	checks := "30" // under the race detector the engine takes its time
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			checks = f.Value.String()
		}
	})
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func reachesOut() bool {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return false
	}
	file, fileErr := os.Open(os.DevNull)
	listener, netErr := net.Listen("tcp", "127.0.0.1:0")
	_, _ = file, listener
	return fileErr == nil || netErr == nil || os.Getenv("PATH") != ""
}

func newRunner(t *testing.T, limits program.Limits) *program.Runner {
	t.Helper()
	if limits.Time == 0 {
		limits.Time = time.Minute // a busy machine must not fail a test about something else
	}
	r, err := program.NewRunner(program.RunOptions{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// source gives a program its fixed seed and start.
func source(text string) program.Source {
	return program.Source{Text: text, Seed: 0xfedcba9876543210, StartedAtMs: 1_796_000_000_000}
}

// here runs a program for the first time, in this process.
func here(t *testing.T, text string) program.Outcome {
	t.Helper()
	return program.RunHere(source(text), nil, program.Trace{}, program.Limits{Time: time.Minute})
}

// again runs a program with answers, after an outcome that waits.
func again(text string, last program.Outcome, answers ...*program.Answer) program.Outcome {
	return program.RunHere(source(text), answers, last.Trace, program.Limits{Time: time.Minute})
}

func done(text string) *program.Answer   { return &program.Answer{OK: true, Text: text} }
func denied(text string) *program.Answer { return &program.Answer{Text: text} }

func wantStatus(t *testing.T, got program.Outcome, status program.Status) {
	t.Helper()
	if got.Status != status {
		t.Fatalf("the program is %s (%s), want %s", got.Status, got.Message, status)
	}
}

func wantResult(t *testing.T, got program.Outcome, result string) {
	t.Helper()
	wantStatus(t, got, program.StatusFinished)
	if string(got.Result) != result {
		t.Fatalf("the program returned %s, want %s", got.Result, result)
	}
}

func wantMessage(t *testing.T, got program.Outcome, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got.Message, part) {
			t.Fatalf("the message is %q, want %q in it", got.Message, part)
		}
	}
}
