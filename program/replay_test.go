package program_test

import (
	"testing"

	"openbot/program"
)

func TestWaitsAndGoesOn(t *testing.T) {
	const text = `const found = await app.call("files", "search", {query: "a<b>&"}, "to find it");
console.log("found", found);
return {found, sent: await app.call("mail", "send", {to: "ann", body: found}, "as asked")};`
	first := here(t, text)
	wantStatus(t, first, program.StatusWaiting)
	if len(first.Trace.Calls) != 1 || first.Output != "" {
		t.Fatalf("after the first call: %+v", first)
	}
	call := first.Trace.Calls[0]
	if call.Connection != "files" || call.Tool != "search" || call.Reason != "to find it" || string(call.Arguments) != `{"query":"a<b>&"}` {
		t.Fatalf("the call is %+v", call)
	}
	second := again(text, first, done(`["x"]`))
	wantStatus(t, second, program.StatusWaiting)
	if len(second.Trace.Calls) != 2 || second.Output != "found [\"x\"]\n" {
		t.Fatalf("after the second call: %+v", second)
	}
	third := again(text, second, done(`["x"]`), done("ok"))
	wantResult(t, third, `{"found":"[\"x\"]","sent":"ok"}`)
}

func TestAnswersInAnyOrder(t *testing.T) {
	const text = `return await Promise.all(["a", "b", "c"].map(async (name, i) => {
  const first = await app.call("x", name, {});
  for (let n = 0; n < i * 7; n++) await null;
  return first + await app.call("y", name + first, {});
}));`
	waiting := here(t, text)
	wantStatus(t, waiting, program.StatusWaiting)
	if len(waiting.Trace.Calls) != 3 {
		t.Fatalf("%d calls are open, want 3", len(waiting.Trace.Calls))
	}
	// The last is answered first, its next call too, and then the others at once.
	answers := []*program.Answer{nil, nil, done("3"), nil}
	waiting = again(text, waiting, answers...)
	wantStatus(t, waiting, program.StatusWaiting)
	if waiting.Trace.Calls[3].Tool != "c3" {
		t.Fatalf("the fourth call is %+v", waiting.Trace.Calls[3])
	}
	answers[3] = done("z")
	waiting = again(text, waiting, answers...)
	wantStatus(t, waiting, program.StatusWaiting)
	answers[1], answers[0] = done("2"), done("1")
	waiting = again(text, waiting, answers...)
	wantStatus(t, waiting, program.StatusWaiting)
	if len(waiting.Trace.Calls) != 6 {
		t.Fatalf("%d calls were made, want 6", len(waiting.Trace.Calls))
	}
	for _, call := range waiting.Trace.Calls[4:] {
		answers = append(answers, done(call.Tool))
	}
	wantResult(t, again(text, waiting, answers...), `["1a1","2b2","3z"]`)
}

func TestDenial(t *testing.T) {
	const caught = `try { await app.call("mail", "send", {}) } catch (e) { return [e instanceof Error, e.message] }`
	wantResult(t, again(caught, here(t, caught), denied("Ann said no.")), `[true,"Ann said no."]`)

	const open = "\n  await app.call('mail', 'send', {})"
	got := again(open, here(t, open), denied("Ann said no."))
	wantStatus(t, got, program.StatusFailed)
	wantMessage(t, got, "Ann said no.", "line 2, column")
}

func TestCallNobodyAwaits(t *testing.T) {
	const text = `app.call("mail", "send", {}); return 1`
	waiting := here(t, text)
	wantStatus(t, waiting, program.StatusWaiting)
	wantResult(t, again(text, waiting, done("ok")), "1")
}

func TestFailureHandsOutNoCalls(t *testing.T) {
	got := here(t, `app.call("mail", "send", {}); throw new Error("no")`)
	wantStatus(t, got, program.StatusFailed)
	if len(got.Trace.Calls) != 0 {
		t.Fatalf("a program that failed handed out %+v", got.Trace.Calls)
	}
}

func TestDivergence(t *testing.T) {
	const text = `const a = await app.call("x", "one", {n: 1}, "why");
if (a === "yes") { await app.call("x", "two", {}); await app.call("x", "three", {}) }
else if (a === "throw") throw new Error("out")
else if (a === "other") await app.call("x", "two", {}, "another reason")
else if (a === "more") { app.call("x", "two", {}); await app.call("x", "three", {}) }`
	waiting := again(text, here(t, text), done("yes"))
	wantStatus(t, waiting, program.StatusWaiting)
	cases := []struct {
		name    string
		change  func(*program.Trace)
		answers []*program.Answer
		words   string
	}{
		{"ends early", nil, []*program.Answer{done("no"), done("")}, "did not make call 2, x/two"},
		{"throws early", nil, []*program.Answer{done("throw"), done("")}, "did not make call 2, x/two"},
		{"other reason", nil, []*program.Answer{done("other"), done("")}, "call 2 to x/two, has another reason"},
		{"one more call", nil, []*program.Answer{done("more"), nil}, "now makes a call 3, x/three"},
		{"other tool", func(tr *program.Trace) { tr.Calls[0].Tool = "zero" }, []*program.Answer{done("yes")}, "call 1 is now x/one and was x/zero"},
		{"other arguments", func(tr *program.Trace) { tr.Calls[0].Arguments = []byte(`{"n":2}`) }, []*program.Answer{done("yes")}, "call 1 to x/one, has other arguments"},
		{"answers swapped", func(tr *program.Trace) { tr.Given = []int{1} }, []*program.Answer{done("yes"), done("")}, "did not make call 2"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			trace := program.Trace{Calls: append([]program.Asked{}, waiting.Trace.Calls...), Given: waiting.Trace.Given}
			if c.change != nil {
				c.change(&trace)
			}
			got := again(text, program.Outcome{Trace: trace}, c.answers...)
			wantStatus(t, got, program.StatusDiverged)
			wantMessage(t, got, c.words, "same order")
			if len(got.Trace.Calls) != 2 {
				t.Fatalf("the trace became %+v", got.Trace)
			}
		})
	}
}

func TestSavedInAnotherForm(t *testing.T) {
	const text = `await app.call("x", "one", {b: "<", a: 1e21})`
	waiting := here(t, text)
	waiting.Trace.Calls[0].Arguments = []byte(`{ "a": 1000000000000000000000, "b": "\u003c" }`)
	wantStatus(t, again(text, waiting, done("")), program.StatusFinished)
}

func TestSameAtEachRun(t *testing.T) {
	const text = `const values = () => [Math.random(), Date.now(), new Date().toISOString(), Date(), new (class extends Date {})().getTime(), new Date(2020, 1).toString()];
const before = values();
await app.call("x", "one", {before});
return {before, after: values()};`
	first := here(t, text)
	wantStatus(t, first, program.StatusWaiting)
	second := again(text, first, done(""))
	wantStatus(t, second, program.StatusFinished)
	third := again(text, first, done(""))
	if string(second.Result) != string(third.Result) {
		t.Fatalf("%s and then %s", second.Result, third.Result)
	}
	other := source(text)
	other.Seed++
	if got := program.RunHere(other, []*program.Answer{done("")}, first.Trace, program.Limits{}); got.Status != program.StatusDiverged {
		t.Fatalf("with another seed the program is %s", got.Status)
	}
	wantResult(t, here(t, `return [Date.now(), Date.UTC(1970, 0), new Date(5).getTime(), Date.length, new Date(0) instanceof Date, new Date(0).constructor === Date]`),
		`[1796000000000,0,5,7,true,true]`)
}

func TestRandomIsSpread(t *testing.T) {
	wantResult(t, here(t, `const seen = new Set(); let sum = 0;
for (let i = 0; i < 10000; i++) { const x = Math.random(); if (!(x >= 0 && x < 1)) throw x; seen.add(x); sum += x }
return [seen.size, Math.abs(sum / 10000 - 0.5) < 0.02]`), `[10000,true]`)
}
