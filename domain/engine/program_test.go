package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/program"
)

// runner runs programs as the server does; a busy machine must not fail a test about
// something else.
var runner = sync.OnceValues(func() (*program.Runner, error) {
	return program.NewRunner(program.RunOptions{Limits: program.Limits{Time: 45 * time.Second}})
})

func (w *world) runProgram(run *engine.ProgramRun) domain.ProgramOutcome {
	w.t.Helper()
	programs := w.programs
	if programs == nil {
		shared, err := runner()
		w.must(err)
		programs = shared
	}
	outcome, err := programs.Run(context.WithoutCancel(w.t.Context()), run.Source, run.Answers, run.Earlier)
	w.must(err)
	return outcome
}

// code is the directive that runs a program.
func code(text string) string {
	raw, err := json.Marshal(map[string]string{"program": text})
	if err != nil {
		panic(err)
	}
	return "/call openbot_run_code " + string(raw)
}

const twoCalls = `const a = await app.call("mail", "send", {n: 1}, "the first");
const b = await app.call("mail", "send", {n: 2}, "the second");
console.log("sent");
return [a, b];`

func (w *world) call(turn domain.TurnID, n int) domain.Call {
	w.t.Helper()
	calls := w.view(turn).Calls
	if n >= len(calls) {
		w.t.Fatalf("the Turn has %d calls", len(calls))
	}
	return calls[n]
}

func (w *world) wantResult(c domain.Call, status domain.CallStatus, parts ...string) {
	w.t.Helper()
	if c.Status != status {
		w.t.Fatalf("the call is %s (%s), want %s", c.Status, c.Result, status)
	}
	for _, part := range parts {
		if !strings.Contains(c.Result, part) {
			w.t.Errorf("the result is %q, want %q in it", c.Result, part)
		}
	}
}

func TestAProgramWaitsForItsCallsAndGoesOn(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, code(twoCalls))
	w.run()
	for n, line := range []int{1, 2} {
		v := w.wantStatus(turn, domain.TurnWaiting)
		if len(v.Calls) != n+2 || v.Calls[0].Status != domain.CallWaiting || v.Calls[0].Request != "" || v.Turn.OpenCalls != 2 {
			t.Fatalf("round %d: %d calls, %d open, the program is %s", n, len(v.Calls), v.Turn.OpenCalls, v.Calls[0].Status)
		}
		r := w.onlyPending()
		if r.Code == nil || r.Code.Program != twoCalls || r.Code.Index != n || r.Code.Line != line || r.Code.Column != 17 {
			t.Fatalf("the Request shows %+v", r.Code)
		}
		if r.Reason != []string{"the first", "the second"}[n] || r.App == nil || r.App.Tool != "send" || r.Call != v.Calls[n+1].ID ||
			string(r.Arguments) != fmt.Sprintf(`{"n":%d}`, n+1) || v.Calls[n+1].Parent != v.Calls[0].ID {
			t.Fatalf("the Request is %+v", r)
		}
		w.mustAnswer(r, domain.DecisionAllow, "")
		w.run()
	}
	v := w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(v.Calls[0], domain.CallSucceeded, `["did send {\"n\":1}","did send {\"n\":2}"]`, "It printed:\nsent")
	if w.apps.total() != 2 || v.Turn.Steps != 2 || v.Calls[0].Program.Tries != 0 || v.Calls[0].Program.Trace.Calls != nil {
		t.Errorf("%d sends, %d steps, kept is %+v", w.apps.total(), v.Turn.Steps, v.Calls[0].Program)
	}
}

// The model reads what the program gave, and never the calls that it made.
func TestAModelSeesTheProgramAlone(t *testing.T) {
	w := newWorld(t)
	w.allow("mail/send")
	chat := w.newChat()
	seen := []domain.ModelRequest{}
	w.models = &watched{Models: w.models, seen: &seen}
	turn := w.say(chat, code(twoCalls)+"\n/call openbot_list_bots {}", "/then", code(`return 5`))
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	if len(seen) != 3 {
		t.Fatalf("%d model calls", len(seen))
	}
	last := seen[2].Messages
	if len(last) != 6 || len(last[1].Calls) != 2 || last[2].Role != domain.RoleTool || last[3].Role != domain.RoleTool || len(last[4].Calls) != 1 {
		t.Fatalf("the model sees %+v", last)
	}
	if !strings.Contains(last[2].Text, "returned") || len(seen[2].Script.Outcomes) != 3 || seen[2].Script.StepsDone != 2 {
		t.Errorf("the model reads %q and the script %+v", last[2].Text, seen[2].Script)
	}
	if n := strings.Count(w.texts(chat), "tool_result:"); n != 5 {
		t.Errorf("the history shows %d results:\n%s", n, w.texts(chat))
	}
}

// watched keeps what models are asked.
type watched struct {
	engine.Models
	seen *[]domain.ModelRequest
}

func (m *watched) Call(ctx context.Context, r domain.ModelRequest) (domain.ModelReply, error) {
	*m.seen = append(*m.seen, r)
	return m.Models.Call(ctx, r)
}

// allow marks a tool of the App as a read.
func (w *world) allow(pattern string) {
	w.t.Helper()
	_, tool, _ := strings.Cut(pattern, "/")
	org, err := w.store.Organization(w.t.Context(), w.me.Organization)
	w.must(err)
	org.Settings.AppReadRules = append(org.Settings.AppReadRules, string(w.mail.ID)+"/"+tool)
	w.must(w.store.Store.Commit(w.t.Context(), domain.Commit{At: w.clock.now(), Rows: []domain.Row{&org}}))
}

const together = `const results = await Promise.all([1, 2].map(n => app.call("mail", "send", {n}, "call " + n)));
return results;`

func TestCallsOfOneProgramWaitTogether(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			w := newWorld(t)
			turn := w.say(w.newChat(), code(together))
			w.run()
			both := w.pending()
			if len(both) != 2 {
				t.Fatalf("%d Requests wait", len(both))
			}
			if v := w.wantStatus(turn, domain.TurnWaiting); v.Turn.OpenCalls != 3 {
				t.Errorf("%d calls are open", v.Turn.OpenCalls)
			}
			w.mustAnswer(both[order[0]], domain.DecisionAllow, "")
			w.run()
			if v := w.wantStatus(turn, domain.TurnWaiting); v.Calls[0].Status != domain.CallWaiting || w.apps.total() != 1 {
				t.Fatalf("after one answer the program is %s, %d sends", v.Calls[0].Status, w.apps.total())
			}
			w.mustAnswer(both[order[1]], domain.DecisionAllow, "")
			w.run()
			w.wantStatus(turn, domain.TurnCompleted)
			w.wantResult(w.call(turn, 0), domain.CallSucceeded, `["did send {\"n\":1}","did send {\"n\":2}"]`)
		})
	}
}

func TestBothAnswersBeforeTheNextRun(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), code(together))
	w.run()
	for _, r := range w.pending() {
		w.mustAnswer(r, domain.DecisionAllow, domain.ScopeOnce)
	}
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	if w.apps.total() != 2 {
		t.Errorf("%d sends", w.apps.total())
	}
}

func TestAProgramCatchesADenial(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), code(`try { await app.call("mail", "send", {n: 1}, "why") } catch (e) { return "caught: " + e.message }`))
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(v.Calls[0], domain.CallSucceeded, "caught: Denied by a person.")
	w.wantResult(v.Calls[1], domain.CallDenied)

	turn = w.say(w.newChat(), code(`await Promise.all([app.call("mail", "send", {n: 1}), app.call("mail", "send", {n: 2})])`))
	w.run()
	w.mustAnswer(w.pending()[0], domain.DecisionDeny, "")
	w.run()
	v = w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(v.Calls[0], domain.CallFailed, "Denied by a person", "0 ran", "2 failed or did not run")
	w.wantResult(v.Calls[2], domain.CallCancelled)
	if len(w.pending()) != 0 || w.request(v.Calls[2].Request).Status != domain.RequestCancelled {
		t.Error("the Request of a call that nobody waits for stays open")
	}
}

// A call that cannot be made ends at once, in the words that a model reads.
func TestCallsThatCannotBe(t *testing.T) {
	w := newWorld(t)
	other := w.connect("mail", "send")
	w.connect("desk", "send")
	turn := w.say(w.newChat(), code(`const tries = [["nowhere", "send"], ["desk", "nothing"], ["mail", "send"], ["desk", "send", {n: 1, to: 5}], ["`+string(other.ID)+`", "send", {n: 1}]];
const said = [];
for (const [connection, tool, args] of tries) await app.call(connection, tool, args ?? {}, "why").catch(e => said.push(e.message));
return said.join("|");`))
	w.run()
	r := w.onlyPending()
	if r.App.Connection != other.ID {
		t.Fatalf("asked for %s", r.App.Connection)
	}
	w.mustAnswer(r, domain.DecisionDeny, "")
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(w.call(turn, 0), domain.CallSucceeded, "there is no connection nowhere", `there is no tool \"nothing\"`,
		"more than one connection is named mail", "the arguments do not fit", "Denied by a person")
}

// Grants, exemptions and denials are those of any call, and no program can make its
// calls for itself.
func TestProgramsAreCheckedCallByCall(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.allow("mail/list")
	turn := w.say(chat, code(`const seen = await app.call("mail", "list", {}, "look"); return seen + await app.call("mail", "send", {n: 1}, "send")`))
	w.run()
	if by := w.call(turn, 0).Decided; by == nil || by.Step != domain.StepExemption || by.Pattern != "programs are checked call by call" {
		t.Errorf("the program was decided by %+v", by)
	}
	if by := w.call(turn, 1).Decided; by == nil || by.Step != domain.StepExemption {
		t.Errorf("the read was decided by %+v", by)
	}
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeLifetime)
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	turn = w.say(w.newChat(), code(twoCalls))
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	if by := w.call(turn, 2).Decided; by == nil || by.Step != domain.StepGrant || w.apps.total() != 4 {
		t.Errorf("with a Grant the call was decided by %+v, %d sends", by, w.apps.total())
	}
}

func TestARuleIsReadAboutACallOfAProgram(t *testing.T) {
	w := newWorld(t)
	w.rule("Never send.", domain.DecisionDeny, "")
	turn := w.say(w.newChat(), code(`return await app.call("mail", "send", {n: 1}, "why").catch(e => e.message)`))
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(w.call(turn, 0), domain.CallSucceeded, "Denied by a Rule")
	if w.call(turn, 1).Judgings != 1 {
		t.Error("the judge was not asked")
	}
}

func TestPlanModeHoldsInsidePrograms(t *testing.T) {
	w := newWorld(t)
	w.allow("mail/list")
	chat, err := w.engine.CreateChat(t.Context(), w.me, engine.NewChat{Mode: domain.ModePlan})
	w.must(err)
	turn := w.say(chat.ID, code(`return await app.call("mail", "list", {}, "look") + await app.call("mail", "send", {n: 1}, "send").catch(e => e.message)`))
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(w.call(turn, 0), domain.CallSucceeded, "did list", "plan mode")
	if w.apps.total() != 1 || len(w.pending()) != 0 {
		t.Errorf("%d sends, %d Requests", w.apps.total(), len(w.pending()))
	}
}

func TestNastyProgramsEnd(t *testing.T) {
	short, err := program.NewRunner(program.RunOptions{Limits: program.Limits{Time: 3 * time.Second, Calls: 20}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ program, says string }{
		"does not compile":    {`return (`, "does not compile"},
		"throws":              {`throw new Error("out")`, "out"},
		"never ends":          {`for (;;) {}`, "was stopped"},
		"eats memory":         {`const all = []; for (;;) all.push("x".repeat(1 << 20) + all.length)`, "was stopped"},
		"waits for nothing":   {`await new Promise(() => {})`, "can never come"},
		"makes many calls":    {`for (let i = 0; i < 50; i++) app.call("mail", "send", {n: i}, "")`, "more than 20 calls"},
		"calls and throws":    {`app.call("mail", "send", {}, ""); throw new Error("out")`, "out"},
		"returns too much":    {`return "x".repeat(100000)`, "returned"},
		"calls nobody awaits": {`app.call("nowhere", "send", {}, ""); return 1`, "returned: 1"},
		"calls with nothing":  {`return await app.call().catch(e => e.message)`, "takes the connection and the tool as strings"},
		"is empty":            {` `, "returned nothing"},
		"deep arguments":      {`let a = {}; for (let i = 0; i < 90; i++) a = {a}; return await app.call("mail", "send", a, "").catch(e => e.message)`, "nested"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.programs = short
			turn := w.say(w.newChat(), code(c.program))
			w.run()
			v := w.wantStatus(turn, domain.TurnCompleted)
			w.wantResult(v.Calls[0], v.Calls[0].Status, c.says)
			if w.apps.total() != 0 || len(w.pending()) != 0 {
				t.Errorf("%d sends, %d Requests", w.apps.total(), len(w.pending()))
			}
		})
	}
	t.Run("too long", func(t *testing.T) {
		w := newWorld(t)
		turn := w.say(w.newChat(), code(strings.Repeat("é", 200_000)))
		w.run()
		w.wantStatus(turn, domain.TurnCompleted)
		w.wantResult(w.call(turn, 0), domain.CallFailed, "more than 262144 bytes")
	})
}

func TestInterruptStopsAProgramWithItsCalls(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, code(together))
	w.run()
	both := w.pending()
	w.mustAnswer(both[0], domain.DecisionAllow, "")
	task, _ := w.rings.next(w.clock.now())
	taking, err := w.engine.TakeCall(t.Context(), domain.CallID(task.Subject), task.Revision, true)
	w.must(err)
	w.interrupt(chat)
	w.carry(taking.Sending)
	w.run()
	v := w.wantStatus(turn, domain.TurnInterrupted)
	w.wantResult(v.Calls[0], domain.CallCancelled)
	w.wantResult(v.Calls[1], domain.CallSucceeded, "did send")
	w.wantResult(v.Calls[2], domain.CallCancelled)
	if len(w.pending()) != 0 {
		t.Error("a Request of a stopped program waits")
	}
	w.sweepFor(time.Minute)
	next := w.say(chat, "hello")
	w.run()
	w.wantStatus(next, domain.TurnCompleted)
}

func TestInterruptWhileAProgramRuns(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, code(together))
	run := w.prepared()
	w.interrupt(chat)
	if wanted, err := w.engine.PushProgram(t.Context(), run); err != nil || wanted {
		t.Errorf("the worker does not learn that the run is not wanted: %v %v", wanted, err)
	}
	w.must(w.engine.CommitProgram(t.Context(), run, w.runProgram(run)))
	v := w.wantStatus(turn, domain.TurnInterrupted)
	if len(v.Calls) != 1 || len(w.pending()) != 0 {
		t.Error("the calls of a stopped program were saved")
	}
}

// prepared works until a program is about to be run.
func (w *world) prepared() *engine.ProgramRun {
	w.t.Helper()
	for {
		task, ok := w.rings.next(w.clock.now())
		if !ok {
			w.t.Fatal("no program is to be run")
		}
		if task.Kind != domain.TaskProgramRun {
			w.work(task)
			continue
		}
		run, err := w.engine.PrepareProgram(w.t.Context(), domain.CallID(task.Subject), task.Revision)
		w.must(err)
		return run
	}
}

// An answer that comes while the program runs is not lost.
func TestACallThatEndsDuringARunLeadsToAnother(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), code(together))
	w.run()
	both := w.pending()
	w.mustAnswer(both[0], domain.DecisionAllow, "")
	run := w.prepared()
	w.mustAnswer(both[1], domain.DecisionDeny, "")
	if v := w.view(turn); v.Calls[0].Status != domain.CallAllowed {
		t.Fatalf("the program that runs is %s", v.Calls[0].Status)
	}
	w.must(w.engine.CommitProgram(t.Context(), run, w.runProgram(run)))
	if v := w.view(turn); v.Calls[0].Status != domain.CallAllowed || v.Calls[0].DueAt == nil {
		t.Fatalf("after the run the program is %s", v.Calls[0].Status)
	}
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(w.call(turn, 0), domain.CallFailed, "Denied by a person")
}

// Two workers that run the same program save one of both.
func TestOneOfTwoRunsIsSaved(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), code(together))
	first := w.prepared()
	w.clock.forward(time.Minute) // its worker is slow, and the sweep rings again
	tasks, err := w.engine.DueTasks(t.Context(), domain.TaskProgramRun, 0, 10)
	w.must(err)
	if len(tasks) != 1 {
		t.Fatalf("%d programs are due", len(tasks))
	}
	second, err := w.engine.PrepareProgram(t.Context(), domain.CallID(tasks[0].Subject), tasks[0].Revision)
	w.must(err)
	w.must(w.engine.CommitProgram(t.Context(), first, w.runProgram(first)))
	w.must(w.engine.CommitProgram(t.Context(), second, w.runProgram(second)))
	w.must(w.engine.CommitProgram(t.Context(), second, w.runProgram(second)))
	if v := w.wantStatus(turn, domain.TurnWaiting); len(v.Calls) != 3 || len(w.pending()) != 2 {
		t.Errorf("%d calls, %d Requests", len(v.Calls), len(w.pending()))
	}
}

func TestAProgramThatKillsItsWorkersIsGivenUp(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), code(together))
	runs := 0
	for range 30 {
		for _, kind := range []domain.TaskKind{domain.TaskTurnStep, domain.TaskProgramRun} {
			tasks, err := w.engine.DueTasks(t.Context(), kind, 0, 10)
			w.must(err)
			for _, task := range tasks {
				if kind != domain.TaskProgramRun {
					w.work(task)
				} else if run, err := w.engine.PrepareProgram(t.Context(), domain.CallID(task.Subject), task.Revision); err != nil || run != nil {
					w.must(err)
					runs++
				}
			}
		}
		w.clock.forward(5 * time.Second)
	}
	w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(w.call(turn, 0), domain.CallFailed, "given up")
	if runs != domain.MaxProgramTries {
		t.Errorf("it was run %d times", runs)
	}
}

// other is another sandbox: programs do something else in it.
type other struct{ outcome domain.ProgramOutcome }

func (o other) Run(context.Context, domain.ProgramSource, []*domain.ProgramAnswer, domain.ProgramTrace) (domain.ProgramOutcome, error) {
	return o.outcome, nil
}

func TestAProgramThatDivergesFails(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), code(together))
	w.run()
	both := w.pending()
	w.mustAnswer(both[0], domain.DecisionAllow, "")
	w.programs = other{domain.ProgramOutcome{Status: domain.ProgramDiverged, Message: "The program diverged."}}
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(v.Calls[0], domain.CallFailed, "The program diverged.\nOf the calls that it had made, 1 ran")
	w.wantResult(v.Calls[2], domain.CallCancelled)
	_, err := w.answer(both[1], domain.DecisionAllow, "")
	w.wantCode(err, domain.CodeConflict)
}

// A run that waits for nothing would hold its Turn for ever.
func TestAProgramThatWaitsForNothingFails(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), code(together))
	w.programs = other{domain.ProgramOutcome{Status: domain.ProgramWaiting}}
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(w.call(turn, 0), domain.CallFailed, "can never come")
}

func TestAProgramWithoutRightsDoesNotGoOn(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), code(together))
	w.run()
	both := w.pending()
	w.mustAnswer(both[0], domain.DecisionDeny, "")
	w.must(w.engine.RevokeToken(t.Context(), w.me, w.me.Token.ID))
	w.run()
	w.sweepFor(2 * time.Minute)
	v := w.view(turn)
	w.wantResult(v.Calls[0], domain.CallDenied, "may not go on")
	if w.apps.total() != 0 || v.Calls[1].Open() || v.Calls[2].Open() {
		t.Errorf("%d sends, the calls are %s and %s", w.apps.total(), v.Calls[1].Status, v.Calls[2].Status)
	}
	for _, c := range v.Calls[1:] {
		if r, err := w.store.Request(t.Context(), c.Request); err != nil || r.Status == domain.RequestPending {
			t.Errorf("a Request of the program is %s, %v", r.Status, err)
		}
	}
}

func TestAProgramWaitsForAnUnknownOutcome(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), code(`return await app.call("mail", "send", {n: 1}, "why").catch(e => e.message)`))
	w.run()
	w.apps.lose = true
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.run()
	r := w.onlyPending()
	if v := w.wantStatus(turn, domain.TurnWaiting); r.Unknown == nil || r.Code == nil || v.Calls[0].Status != domain.CallWaiting {
		t.Fatalf("the person is asked %+v", r)
	}
	w.mustAnswer(r, domain.DecisionDeny, "")
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(w.call(turn, 0), domain.CallSucceeded, "Outcome unknown")
}
