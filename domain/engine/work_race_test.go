package engine_test

import (
	"slices"
	"testing"

	"openbot/domain"
	"openbot/domain/engine"
)

// stepIn prepares the step that is rung in a Chat and leaves all else in the queue.
func (w *world) stepIn(chat domain.ChatID) *engine.Step {
	w.t.Helper()
	w.rings.mu.Lock()
	tasks := slices.Clone(w.rings.tasks)
	w.rings.mu.Unlock()
	for _, task := range tasks {
		if task.Kind != domain.TaskTurnStep || !w.turnIn(task, chat) {
			continue
		}
		w.rings.mu.Lock()
		w.rings.tasks = slices.DeleteFunc(w.rings.tasks, func(t domain.Task) bool { return t.Subject == task.Subject && t.Revision == task.Revision })
		w.rings.mu.Unlock()
		step, err := w.engine.PrepareStep(w.t.Context(), domain.TurnID(task.Subject), task.Revision)
		w.must(err)
		if step != nil {
			return step
		}
	}
	w.t.Fatal("no step of this Chat is rung")
	return nil
}

// A giver whose Turn ends between the end of its work and the notice of it goes on with
// the result: it has not ended before it was told.
func TestAResultThatWasNotToldYetKeepsItsGiverOpen(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(nil, delegate(nil, "/say below"), "/then", "/say I wait"))
	w.finish(w.stepIn(chat))
	g := w.onlyGiven(chat)
	w.finish(w.stepIn(g.Chat)) // it gives work
	below := w.onlyGiven(g.Chat)
	w.finish(w.stepIn(below.Chat))
	w.wantWork(below.ID, domain.DelegationCompleted)
	w.finish(w.stepIn(g.Chat))
	w.wantWork(g.ID, domain.DelegationRunning)
	w.run()
	g = w.wantWork(g.ID, domain.DelegationCompleted)
	if turns := w.turns(g.Chat); len(turns) != 2 || turns[0].Turn.Answer != g.Result {
		t.Errorf("after %d Turns the result is %q", len(turns), g.Result)
	}
}
