package engine_test

import (
	"slices"
	"testing"

	"openbot/domain"
)

// A worker that goes on with the Turn itself is named the step, and nobody is rung for
// it; one that does not leaves it to the ring. A result that leaves other calls out makes
// no step due.
func TestAWorkerGoesOnWithTheTurnOfItsCall(t *testing.T) {
	stepRung := func(w *world) bool {
		return slices.ContainsFunc(w.rings.tasks, func(task domain.Task) bool { return task.Kind == domain.TaskTurnStep })
	}
	w := tagged(t)
	for _, onward := range []bool{true, false} {
		chat := w.newChat()
		w.say(chat, readMail)
		out := w.take()
		out.Onward = onward
		w.must(w.engine.SettleCall(t.Context(), out, false, "one"))
		if (out.Step != nil) != onward || stepRung(w) == onward {
			t.Fatalf("onward %v: the worker got the step %v, and one was rung: %v", onward, out.Step, stepRung(w))
		}
		if !onward {
			w.run()
			continue
		}
		step, err := w.engine.PrepareStep(t.Context(), domain.TurnID(out.Step.Subject), out.Step.Revision)
		w.must(err)
		if step == nil {
			t.Fatal("the step that was named is not due")
		}
		w.finish(step)
		if turn := w.turns(chat)[0].Turn; turn.Status != domain.TurnCompleted {
			t.Errorf("the Turn is %s", turn.Status)
		}
	}

	w.say(w.newChat(), readMail+"\n"+readMail)
	out := w.take()
	out.Onward = true
	w.must(w.engine.SettleCall(t.Context(), out, false, "one"))
	if out.Step != nil {
		t.Errorf("the step %+v is due while a call is out", out.Step)
	}
}
