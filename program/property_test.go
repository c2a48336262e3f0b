package program_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"openbot/program"
)

// writeProgram draws a program of calls one after another, at once, in loops and in
// branches on their answers, with other waits and random values in between.
func writeProgram(t *rapid.T, depth int, b *strings.Builder) {
	for range rapid.IntRange(1, 2).Draw(t, "statements") {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 3
		}
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
		switch kind {
		case 0:
			fmt.Fprintf(b, "seen += await ask(%q, Math.random() < 0.5);\n", name)
		case 1:
			fmt.Fprintf(b, "for (let i = 0; i < %d; i++) await null;\n", rapid.IntRange(1, 6).Draw(t, "ticks"))
		case 2:
			fmt.Fprintf(b, "seen += (await Promise.race([ask(%q, 1), ask(%q, 2)]));\n", name, name)
		case 3:
			fmt.Fprintf(b, "await Promise.all([1, 2, 3].slice(0, %d).map(async (n) => {\nfor (let i = 0; i < n; i++) await ask(%q, n);\n", rapid.IntRange(1, 3).Draw(t, "width"), name)
			writeProgram(t, depth-1, b)
			b.WriteString("}));\n")
		case 4:
			fmt.Fprintf(b, "if ((await ask(%q, seen)) > 'm') {\n", name)
			writeProgram(t, depth-1, b)
			b.WriteString("} else {\n")
			writeProgram(t, depth-1, b)
			b.WriteString("}\n")
		case 5:
			b.WriteString("for (let i = 0; i < 2; i++) {\n")
			writeProgram(t, depth-1, b)
			b.WriteString("}\n")
		case 6:
			b.WriteString("(async () => {\n")
			writeProgram(t, depth-1, b)
			b.WriteString("})();\n")
		}
	}
}

// TestReplay runs a random program with answers that come in a random order, a few
// at a time, and then again. However many answers a run has at its start, it must
// make the same calls, and the end must be the same.
func TestReplay(t *testing.T) {
	ends := map[program.Status]int{}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString("let seen = '';\nconst ask = async (name, x) => { try { return await app.call('app', name, {x}, 'r' + seen) } catch (e) { return e.message } };\n")
		writeProgram(t, rapid.IntRange(1, 2).Draw(t, "depth"), &b)
		b.WriteString("return [seen, Math.random()];")
		src := program.Source{Text: b.String(), Seed: rapid.Uint64().Draw(t, "seed"), StartedAtMs: 1}
		limits := program.Limits{Calls: 12, Time: time.Minute}

		var answers []*program.Answer
		outcome := program.RunHere(src, nil, program.Trace{}, limits)
		runs := []program.Outcome{outcome}
		for outcome.Status == program.StatusWaiting {
			given := map[int]bool{}
			for _, index := range outcome.Trace.Given {
				given[index] = true
			}
			var open []int
			for index := range outcome.Trace.Calls {
				if !given[index] {
					open = append(open, index)
				}
			}
			for len(answers) < len(outcome.Trace.Calls) {
				answers = append(answers, nil)
			}
			for _, index := range rapid.SliceOfNDistinct(rapid.SampledFrom(open), 1, -1, rapid.ID).Draw(t, "answered") {
				answers[index] = &program.Answer{OK: rapid.Bool().Draw(t, "ok"), Text: rapid.StringN(0, 3, -1).Draw(t, "text")}
			}
			next := program.RunHere(src, answers, outcome.Trace, limits)
			if next.Status == program.StatusWaiting && !reflect.DeepEqual(next.Trace.Calls[:len(outcome.Trace.Calls)], outcome.Trace.Calls) {
				t.Fatalf("the calls were\n%s\nand are\n%s", show(outcome), show(next))
			}
			outcome = next
			runs = append(runs, outcome)
		}
		ends[outcome.Status]++
		if outcome.Status != program.StatusFinished && outcome.Status != program.StatusTooManyCalls {
			t.Fatalf("the program ended with %s", show(outcome))
		}
		if outcome.Status != program.StatusFinished {
			return
		}
		// All answers at once, and one after the other from any point at which it
		// waited, lead to the same end.
		last := outcome.Trace
		if again := program.RunHere(src, answers, last, limits); !reflect.DeepEqual(again, outcome) {
			t.Fatalf("the end was\n%s\nand is\n%s", show(outcome), show(again))
		}
		step := rapid.SampledFrom(runs).Draw(t, "from")
		prefix := len(step.Trace.Given)
		if !slices.Equal(step.Trace.Given, last.Given[:prefix]) {
			t.Fatalf("answers were given as %v and then as %v", step.Trace.Given, last.Given)
		}
		for _, index := range last.Given[prefix:] {
			some := make([]*program.Answer, len(step.Trace.Calls))
			for _, before := range step.Trace.Given {
				some[before] = answers[before]
			}
			some[index] = answers[index]
			step = program.RunHere(src, some, step.Trace, limits)
		}
		if !reflect.DeepEqual(step, outcome) {
			t.Fatalf("the end was\n%s\nand, with one answer after the other, is\n%s", show(outcome), show(step))
		}
	})
	if ends[program.StatusFinished] == 0 {
		t.Fatalf("no program came to its end: %v", ends)
	}
}

func show(o program.Outcome) string {
	text, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// FuzzRun looks for a text that brings the sandbox down instead of ending in an
// outcome.
func FuzzRun(f *testing.F) {
	for _, seed := range []string{"", "return 1", "await app.call('a', 'b', {})", "})(); (() => {", "throw null", "\x00", "\xff", "/(/", "`${", "await", "yield"} {
		f.Add(seed, uint64(1), "answer", true)
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64, answer string, ok bool) {
		src := program.Source{Text: text, Seed: seed}
		limits := program.Limits{Time: time.Second, Memory: 16 << 20}
		first := program.RunHere(src, nil, program.Trace{}, limits)
		if first.Status == "" || (first.Status == program.StatusWaiting) != (len(first.Trace.Calls) > 0) {
			t.Fatalf("the outcome is %s", show(first))
		}
		if first.Status == program.StatusWaiting {
			second := program.RunHere(src, []*program.Answer{{OK: ok, Text: answer}}, first.Trace, limits)
			if second.Status == "" || second.Status == program.StatusDiverged {
				t.Fatalf("the second outcome is %s", show(second))
			}
		}
	})
}
