package domain_test

import (
	"testing"
	"time"

	"openbot/domain"
)

func programCall(status domain.CallStatus) domain.Call {
	return domain.Call{ID: "call_1", Kind: domain.CallProgram, Status: status, Program: &domain.ProgramState{Seed: 7}}
}

// The calls of all programs of a step have places of their own, whatever their number.
func TestEveryCallOfAStepHasAPlaceOfItsOwn(t *testing.T) {
	taken := map[int]bool{}
	for position := range domain.MaxStepCalls {
		taken[position] = true
	}
	for _, program := range []int{0, 1, domain.MaxStepCalls - 1} {
		for index := range domain.MaxProgramCalls {
			place := domain.ProgramPlace(program, index)
			if taken[place] {
				t.Fatalf("two calls have the place %d", place)
			}
			taken[place] = true
		}
	}
}

func TestARunOfAProgramOutlivesItsLongestStep(t *testing.T) {
	c, err := domain.DecideCall(programCall(domain.CallAllowed), domain.ProgramStarted{At: noon})
	if err != nil || c.Status != domain.CallAllowed || c.Program.Tries != 1 {
		t.Fatalf("a started program is %s after %v", c.Status, err)
	}
	if due := c.DueAt.Sub(noon); due < 3*domain.LeaseRenewal || due+domain.RunnableGrace > 15*time.Second {
		t.Errorf("it is due after %v", due)
	}
	if again, err := domain.DecideCall(c, domain.ProgramPaused{At: noon, Again: true}); err != nil || again.Program.Tries != 0 || again.DueAt == nil || !again.Runnable() {
		t.Errorf("an end of a run leaves %+v, %v", again.Program, err)
	}
	waiting, err := domain.DecideCall(c, domain.ProgramPaused{At: noon, Trace: domain.ProgramTrace{Given: []int{0}}})
	if err != nil || waiting.DueAt != nil || waiting.Runnable() || !waiting.Open() {
		t.Errorf("a program that waits is %+v, %v", waiting, err)
	}
	if c.Program.Trace.Given != nil {
		t.Error("the call before was written over")
	}
	stopped, err := domain.DecideCall(waiting, domain.CallStopped{At: noon})
	if err != nil || stopped.Program.Trace.Given != nil || stopped.Program.Seed != 7 {
		t.Errorf("the end keeps %+v, %v", stopped.Program, err)
	}
}

func TestARunThatNeverEndsIsGivenUp(t *testing.T) {
	c := programCall(domain.CallAllowed)
	var err error
	for range domain.MaxProgramTries {
		if c, err = domain.DecideCall(c, domain.ProgramStarted{At: noon}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := domain.DecideCall(c, domain.ProgramStarted{At: noon}); !domain.IsCode(err, domain.CodePrecondition) {
		t.Errorf("one run too many gave %v", err)
	}
}

// Only programs take the events of programs: an App's call would wait for ever.
func TestOtherCallsAreNoPrograms(t *testing.T) {
	for _, ev := range []domain.CallEvent{domain.ProgramStarted{At: noon}, domain.ProgramPaused{At: noon}, domain.ProgramWoken{At: noon}} {
		for _, status := range []domain.CallStatus{domain.CallAllowed, domain.CallWaiting} {
			c := domain.Call{ID: "call_1", Kind: domain.CallApp, Status: status, Request: "req_1"}
			if next, err := domain.DecideCall(c, ev); err == nil {
				t.Errorf("%T made a call of an App %s", ev, next.Status)
			}
		}
	}
	if next, err := domain.DecideCall(programCall(domain.CallAllowed), domain.Taken{At: noon, Lease: "mine"}); err == nil {
		t.Errorf("a program went out: %s", next.Status)
	}
}
