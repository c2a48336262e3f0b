package domain_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"openbot/domain"
)

// update writes the golden files and the generated documents anew.
var update = flag.Bool("update", false, "write golden files and generated documents anew")

// golden compares a text with the file that is kept.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test ./domain -update", err)
	}
	if string(want) != got {
		t.Errorf("%s is old; run go test ./domain -update and read the difference.\ngot:\n%s", path, got)
	}
}

// told is one thing that a model is told about a call.
type told struct {
	name, text string
	ran        string // no, maybe or yes: what the text must make plain
}

func tolds() []told {
	by := func(step domain.Step, a domain.Actor) domain.DecidedBy { return domain.DecidedBy{Step: step, By: a} }
	rule := by(domain.StepRule, domain.Actor{Tag: domain.TagRule, Rule: "rul_1"})
	rule.Quote = "Never send mail to strangers."
	return []told{
		{"denied by a person", domain.TextDenied(by(domain.StepDecider, domain.Person("mem_1")), ""), "no"},
		{"denied by a person with a reason", domain.TextDenied(by(domain.StepDecider, domain.Person("mem_1")), "  ask legal first "), "no"},
		{"denied by a person with a sentence", domain.TextDenied(by(domain.StepDecider, domain.Person("mem_1")), "Ask legal first."), "no"},
		{"denied by a Bot", domain.TextDenied(by(domain.StepDecider, domain.Actor{Tag: domain.TagBot, Bot: "bot_1"}), "out of scope"), "no"},
		{"denied by a Grant", domain.TextDenied(by(domain.StepGrant, domain.ByGrant("grt_1")), "a kept decision denies it"), "no"},
		{"settled by a deny Grant", domain.TextDenied(by(domain.StepDecider, domain.ByGrant("grt_1")), ""), "no"},
		{"denied by a Rule", domain.TextDenied(rule, ""), "no"},
		{"denied by policy", domain.TextDenied(by(domain.StepPolicy, domain.Actor{Tag: domain.TagPolicy}), "the member is disabled"), "no"},
		{"denied by nothing known", domain.TextDenied(domain.DecidedBy{}, ""), "no"},
		{"not answered in time", domain.TextDenied(by(domain.StepDecider, domain.Actor{Tag: domain.TagExpiry}), "ignored"), "no"},
		{"cancelled", domain.TextCancelled(), "no"},
		{"connection changed", domain.TextRevisionChanged(), "no"},
		{"no such tool", domain.TextNoTool(`a"b`), "no"},
		{"bad arguments", domain.TextBadArguments("to is missing"), "no"},
		{"denied in plan mode", domain.TextDenied(by(domain.StepPolicy, domain.Actor{Tag: domain.TagPolicy}), domain.PlanModeOnly), "no"},
		{"a plan without plan mode", domain.TextNoPlanMode(), "no"},
		{"an own tool that cannot be carried out", domain.TextOwnFailed("there is no helper bot_1 in this Chat"), "no"},
		{"a decision that comes late", domain.TextDecisionLate("The Request is already denied. Read it again."), "no"},
		{"a plan that is allowed", domain.TextPlanAllowed(), "yes"},
		{"a helper", domain.TextSpawned("bot_1", "Ann"), "yes"},
		{"a lasting Bot", domain.TextCreated("bot_1", "Ann"), "yes"},
		{"a promoted helper", domain.TextPromoted("bot_1", "Ann"), "yes"},
		{"a program that ended", domain.TextProgram(domain.ProgramOutcome{Status: domain.ProgramFinished, Result: []byte(`{"sent":2}`), Output: "one\ntwo\n"}, nil), "yes"},
		{"a program that ended with nothing", domain.TextProgram(domain.ProgramOutcome{Status: domain.ProgramFinished, Result: []byte("null"), Output: "one", Cut: true}, nil), "yes"},
		{"a program that failed", domain.TextProgram(domain.ProgramOutcome{Status: domain.ProgramFailed, Message: "The program failed: no"}, nil), "yes"},
		{"a program that failed half-way", domain.TextProgram(domain.ProgramOutcome{Status: domain.ProgramTimedOut, Message: "The program was stopped.", Output: "one\n"}, programCalls()), "yes"},
		{"a program that is stuck", domain.TextProgramStuck(programCalls()), "yes"},
		{"a program that lost its rights", domain.TextProgramRefused(domain.TextCancelled(), programCalls()), "yes"},
		{"a program that never had any", domain.TextProgramRefused(domain.TextDenied(by(domain.StepPolicy, domain.Actor{Tag: domain.TagPolicy}), "the member is disabled"), nil), "no"},
		{"a Bot's deny", domain.TextDecisionTaken(domain.DecisionDeny, true), "yes"},
		{"a Bot's allow", domain.TextDecisionTaken(domain.DecisionAllow, true), "yes"},
		{"a Bot's support", domain.TextDecisionTaken(domain.DecisionAllow, false), "yes"},
		{"outcome unknown", domain.TextUnknown(), "maybe"},
		{"still out", domain.TextStillOut(), "maybe"},
		{"no answer in stopped work", domain.TextNoAnswer(1), "maybe"},
		{"no answer after tries", domain.TextNoAnswer(5), "maybe"},
		{"the App failed", domain.TextAppFailed("disk full"), "yes"},
	}
}

// programCalls is one call of each way to end, one that is out and one that waited.
func programCalls() []domain.Call {
	return []domain.Call{{Status: domain.CallSucceeded}, {Status: domain.CallFailed}, {Status: domain.CallDenied},
		{Status: domain.CallUnknown}, {Status: domain.CallSending}, {Status: domain.CallWaiting}}
}

// A model that is not told that a call did not run believes that it did; one that is
// told so wrongly does it twice.
func TestResultsSayWhetherTheCallRan(t *testing.T) {
	var all strings.Builder
	for _, c := range tolds() {
		all.WriteString(c.name + "\n    " + c.text + "\n")
		says := strings.Contains(c.text, "It was not executed.")
		if says != (c.ran == "no") {
			t.Errorf("%s: says not executed: %v, but whether it ran is %q: %s", c.name, says, c.ran, c.text)
		}
		if strings.Contains(c.text, "  ") || strings.Contains(c.text, "..") {
			t.Errorf("%s: %q is not well written", c.name, c.text)
		}
	}
	golden(t, "testdata/outcomes.golden", all.String())
}

func TestDeniedCallsAreNotWorthRepeating(t *testing.T) {
	for _, c := range tolds() {
		denied := strings.HasPrefix(c.name, "denied") || strings.HasPrefix(c.name, "settled") || strings.HasPrefix(c.name, "not answered") || c.name == "cancelled"
		if denied && !strings.Contains(c.text, "Asking again in the same way is pointless.") {
			t.Errorf("%s: %q invites the same call again", c.name, c.text)
		}
	}
}
