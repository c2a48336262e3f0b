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
	want := []struct {
		tool         string
		line, column int
	}{
		{"one", 0, 0}, // filled below: send is called after "two"
	}
	want = want[:0]
	for _, w := range []struct {
		tool         string
		line, column int
	}{
		{"two", 2, 12}, {"one", 1, 20}, {"four", 4, 19}, {"five", 6, 5}, {"six", 8, 21}, {"eight", 10, 1}, {"nine", 12, 40},
	} {
		want = append(want, w)
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
