package program_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/program"
)

// short is the limit where a program is to be stopped at it: enough for a child to
// start on a busy machine.
const short = time.Second

// TestNastyPrograms runs each in a child of its own: whatever it does, it ends with
// one of the outcomes listed, in time, and the Runner goes on.
func TestNastyPrograms(t *testing.T) {
	const (
		timedOut = program.StatusTimedOut
		memory   = program.StatusOutOfMemory
		failed   = program.StatusFailed
		finished = program.StatusFinished
	)
	cases := []struct {
		name, text string
		want       []program.Status
	}{
		{"loop", `for (;;) {}`, []program.Status{timedOut}},
		{"loop that catches", `for (;;) { try { for (;;) {} } catch {} }`, []program.Status{timedOut}},
		{"loop in finally", `try { for (;;) {} } finally { for (;;) {} }`, []program.Status{timedOut}},
		{"loop of microtasks", `for (;;) await null`, []program.Status{timedOut}},
		{"loop of promises", `const f = () => Promise.resolve().then(f); await f()`, []program.Status{timedOut, memory}},
		{"loop in a getter of the error", `throw Object.defineProperty(new Error(), "message", {get() { for (;;) {} }})`, []program.Status{timedOut}},
		{"loop in toJSON", `return {toJSON() { for (;;) {} }}`, []program.Status{timedOut}},
		{"loop in then", `return {then() { for (;;) {} }}`, []program.Status{timedOut}},
		{"loop in a generator", `for (const x of (function* () { for (;;) yield 1 })()) {}`, []program.Status{timedOut}},
		{"doubling", `let s = "x"; for (;;) s += s`, []program.Status{memory, failed}},
		{"doubling that catches", `let s = "x"; for (;;) { try { s += s } catch { s = "x" } }`, []program.Status{timedOut}},
		{"array that grows", `const a = []; for (;;) a.push(new Array(1000).fill(0))`, []program.Status{memory}},
		{"fill", `return new Array(5e7).fill(0).length`, []program.Status{memory}},
		{"join", `return new Array(1e7).join("abc").length`, []program.Status{memory, timedOut, finished}},
		{"sparse sort", `const a = []; a.length = 2 ** 32 - 1; a.sort()`, []program.Status{timedOut}},
		{"sparse indexOf", `const a = []; a.length = 2 ** 32 - 1; a.indexOf(1)`, []program.Status{timedOut}},
		{"sparse join", `const a = []; a.length = 2 ** 32 - 1; return a.join("").length`, []program.Status{timedOut, memory, failed}},
		{"typed array", `return new Uint8Array(2 ** 30).length`, []program.Status{memory, failed}},
		{"repeat", `return "x".repeat(2 ** 29).length`, []program.Status{memory, failed}},
		{"big number", `return (2n ** 30000000n).toString().length`, []program.Status{failed, timedOut, memory}},
		{"regular expression", `return /^(?=(a+)+$)(a|a)*b/.test("a".repeat(40))`, []program.Status{timedOut, failed, finished}},
		{"regular expression that doubles", `return /(x+x+)+y/.test("x".repeat(40))`, []program.Status{timedOut, failed}},
		{"recursion", `const f = () => f() + 1; f()`, []program.Status{failed}},
		{"recursion through JSON", `const f = {toJSON() { return JSON.stringify(f) }}; return f`, []program.Status{failed}},
		{"recursion through a proxy", `let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p.x`, []program.Status{failed, finished, memory, timedOut}},
		{"recursion through sort", `const f = () => [1, 2].sort(f); f()`, []program.Status{failed}},
		{"deep JSON", `return JSON.parse("[".repeat(1e6) + "]".repeat(1e6))`, []program.Status{failed, memory}},
		{"deep result", `let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a`, []program.Status{failed, program.StatusTooMuchOutput, timedOut}},
		{"deep arguments", `let a = {}; for (let i = 0; i < 15000; i++) a = {a}; await app.call("a", "b", a)`, []program.Status{failed, timedOut}},
		{"deep chain", `let a = {}; for (let i = 0; i < 1e6; i++) a = Object.create(a); return a.x`, []program.Status{memory, failed, finished, timedOut}},
		{"deep source", `return ` + strings.Repeat("(", 50000) + "1" + strings.Repeat(")", 50000), []program.Status{failed, finished}},
		{"deep regular expression", `return new RegExp("(".repeat(1e5) + ")".repeat(1e5)).test("a")`, []program.Status{failed, memory}},
		{"much output", `for (;;) console.log("x".repeat(1000))`, []program.Status{timedOut}},
		{"big result", `return "x".repeat(70000)`, []program.Status{program.StatusTooMuchOutput}},
		{"many calls", `for (let i = 0; i < 10000; i++) app.call("a", "b", {i})`, []program.Status{program.StatusTooManyCalls}},
		{"many calls that catches", `for (;;) { try { app.call("a", "b", {}) } catch {} }`, []program.Status{program.StatusTooManyCalls}},
		{"heavy calls", `const x = "x".repeat(2 ** 15); for (let i = 0; i < 40; i++) app.call("a", "b", {x})`, []program.Status{memory}},
		{"long error", `throw new Error("x".repeat(2 ** 22))`, []program.Status{failed}},
		{"unhandled", `Promise.reject(new Error("x")); return 1`, []program.Status{finished}},
	}
	quick, patient := newRunner(t, program.Limits{Time: short, Memory: 16 << 20}), newRunner(t, program.Limits{Memory: 16 << 20, Value: 64 << 10})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			runner := patient
			if slices.Contains(c.want, timedOut) {
				runner = quick
			}
			got, err := runner.Run(t.Context(), source(c.text), nil, program.Trace{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(c.want, got.Status) {
				t.Fatalf("the program is %s (%s), want one of %v", got.Status, got.Message, c.want)
			}
			if (got.Status != finished) == (got.Message == "") || len(got.Message) > 6000 {
				t.Fatalf("the message of a program that is %s is %.100q", got.Status, got.Message)
			}
			if len(got.Output) > 64<<10 || len(got.Trace.Calls) > 0 {
				t.Fatalf("%d bytes of output, %d calls", len(got.Output), len(got.Trace.Calls))
			}
		})
	}
}

func TestOutputIsKeptAtTheDeadline(t *testing.T) {
	var got program.Outcome
	limit := short
	// On a busy machine the time may be up before the program's process has started.
	for ; got.Output == "" && limit < time.Minute; limit *= 3 {
		var err error
		if got, err = newRunner(t, program.Limits{Time: limit}).Run(t.Context(), source(`console.log("started"); for (;;) {}`), nil, program.Trace{}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, got, program.StatusTimedOut)
		wantMessage(t, got, "had not ended after "+limit.String())
	}
	if got.Output != "started\n" {
		t.Fatalf("the output is %q", got.Output)
	}
}

func TestOutputIsCut(t *testing.T) {
	got := program.RunHere(source(`console.log("ééé"); console.log("b"); return 1`), nil, program.Trace{}, program.Limits{Output: 5, Time: time.Minute})
	wantResult(t, got, "1")
	if got.Output != "éé" || !got.Cut {
		t.Fatalf("the output is %q, cut %v", got.Output, got.Cut)
	}
}

func TestLongProgram(t *testing.T) {
	got, err := newRunner(t, program.Limits{Text: 10}).Run(t.Context(), source("return 10+1"), nil, program.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, program.StatusFailed)
	wantMessage(t, got, "longer than 10 bytes")
}

func TestCallsOfAllRunsCount(t *testing.T) {
	const text = `for (let i = 0; ; i++) await app.call("a", "b", {i})`
	limits := program.Limits{Calls: 3, Time: time.Minute}
	var got program.Outcome
	var answers []*program.Answer
	for range 3 {
		got = program.RunHere(source(text), answers, got.Trace, limits)
		wantStatus(t, got, program.StatusWaiting)
		answers = append(answers, done(""))
	}
	got = program.RunHere(source(text), answers, got.Trace, limits)
	wantStatus(t, got, program.StatusTooManyCalls)
	wantMessage(t, got, "more than 3 calls")
}
