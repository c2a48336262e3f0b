package program_test

import (
	"testing"

	"openbot/program"
)

func TestPosition(t *testing.T) {
	const text = "const send = () => app.call('a', 'one', {});\r\n" +
		"/* 😀é日本 */ app.call('a', 'two', {});\n" +
		"send();\n" +
		"[1].forEach(() => app.call('a', 'four', {}));\n" +
		"class A { #x() { return app\n    .call('a', 'five', {}) } go() { return this.#x() } }\n" +
		"new A().go();\n" +
		"const {call} = app; call('a', 'six', {});\n" +
		"['x'].map(app.call);\n" +
		"new Date({valueOf: app.call.bind(app, 'a', 'eight', {})});\n" +
		"await null;\n" +
		"if (true) { for (const x of [1]) await app.call('a', 'nine', {}) }"
	got := here(t, text)
	wantStatus(t, got, program.StatusWaiting)
	// A call that a function returns has the place of its return.
	want := []struct {
		tool         string
		line, column int
	}{
		{"two", 2, 12}, {"one", 1, 20}, {"four", 4, 19}, {"five", 5, 18}, {"six", 8, 21}, {"eight", 10, 5}, {"nine", 12, 40},
	}
	if len(got.Trace.Calls) != len(want) {
		t.Fatalf("%d calls: %+v", len(got.Trace.Calls), got.Trace.Calls)
	}
	for i, w := range want {
		call := got.Trace.Calls[i]
		if call.Tool != w.tool || call.Position != (program.Position{Index: i, Line: w.line, Column: w.column}) {
			t.Errorf("call %d is %s at %+v, want %s at %d:%d", i, call.Tool, call.Position, w.tool, w.line, w.column)
		}
	}
}

func TestPositionUnknown(t *testing.T) {
	got := here(t, "await Promise.resolve('a').then(app.call.bind(null, 'a', 'b', {}))")
	wantStatus(t, got, program.StatusWaiting)
	if got.Trace.Calls[0].Position != (program.Position{}) {
		t.Fatalf("a call that no code of the program made stands at %+v", got.Trace.Calls[0].Position)
	}
}

func TestPositionOfFailures(t *testing.T) {
	cases := []struct{ name, text, words string }{
		{"syntax", "const a = 1;\n  let b = ;", "does not compile: unexpected token in expression: ';' (line 2, column 11)."},
		{"open end", "if (true) {", "(line 1, column 12)."},
		{"thrown", "/* 😀 */\nfunction f() { throw new RangeError('out') }\nf()", "RangeError: out (line 2, column 36)"},
		{"native", "null.x", "TypeError: cannot read property 'x' of null (line 1, column 5)"},
		{"no error", "throw 'words'", "The program failed: words"},
		{"nothing", "throw null", "The program failed: it threw null, which also happens when the memory is used up"},
		{"rejected", "await Promise.reject(new Error('later'))", "Error: later (line 1, column 31)"},
		{"hostile error", "throw Object.defineProperty(new Error(), 'stack', {get() { throw 1 }})", "The program failed: Error: "},
		{"hostile value", "throw {toJSON() { throw 1 }}", "(a value that cannot be shown)"},
		{"arguments", "await app.call('a', 'b', [1])", "takes the arguments as one object"},
		{"connection", "await app.call(1, 'b')", "takes the connection and the tool as strings"},
		{"round", "const a = {}; a.a = a; await app.call('a', 'b', a)", "circular"},
		{"stuck", "await new Promise(() => {})", "awaits something that can never come"},
		{"import", "import fs from 'fs'", "does not compile"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := here(t, c.text)
			wantStatus(t, got, program.StatusFailed)
			wantMessage(t, got, c.words)
		})
	}
}
