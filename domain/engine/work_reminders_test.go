package engine_test

import (
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

const remindInAMinute = `/call openbot_remind {"text":"look again","afterMs":60000}`

// An open reminder keeps work open: it ends with the Turn that the reminder starts.
func TestWorkWaitsForItsReminders(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 600_000}), remindInAMinute))
	w.run()
	g := w.onlyGiven(chat)
	if g.Status != domain.DelegationRunning || w.chat(g.Chat).Turn != "" || w.open(g.Chat) != 1 {
		t.Fatalf("the work is %s, %d reminders are open", g.Status, w.open(g.Chat))
	}
	w.clock.forward(time.Minute)
	w.run()
	if g = w.onlyGiven(chat); g.Status != domain.DelegationCompleted || g.Steps != 3 || w.open(g.Chat) != 0 {
		t.Fatalf("the work is %s after %d steps", g.Status, g.Steps)
	}
	w.wantText(g.Chat, "[OpenBot] Reminder: look again")
}

// Work whose last reminder was cancelled ends with its Turn.
func TestWorkEndsWhenItsLastReminderIsCancelled(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 600_000}), remindInAMinute))
	w.run()
	g := w.onlyGiven(chat)
	id := domain.ReminderID(reminderID.FindString(strings.Join(w.history(g.Chat), "\n")))
	w.say(g.Chat, `/call openbot_cancel_reminder {"reminder":"`+string(id)+`"}`)
	w.run()
	if g = w.onlyGiven(chat); g.Status != domain.DelegationCompleted {
		t.Errorf("the work is %s", g.Status)
	}
}

// Work that is stopped takes its reminders with it, and none of them comes.
func TestStoppedWorkDropsItsReminders(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 600_000}), remindInAMinute))
	w.run()
	g := w.onlyGiven(chat)
	id := domain.ReminderID(reminderID.FindString(strings.Join(w.history(g.Chat), "\n")))
	_, err := w.engine.CancelDelegation(t.Context(), w.me, g.ID, "k")
	w.must(err)
	w.clock.forward(time.Minute)
	w.must(w.engine.FireReminder(t.Context(), id)) // before the work is closed
	w.run()
	w.sweepFor(15 * time.Second)
	if g = w.onlyGiven(chat); g.Status != domain.DelegationCancelled || w.open(g.Chat) != 0 {
		t.Errorf("the work is %s, %d reminders are open", g.Status, w.open(g.Chat))
	}
	if text := strings.Join(w.history(g.Chat), "\n"); strings.Contains(text, "Reminder:") {
		t.Errorf("it came into stopped work:\n%s", text)
	}

	// And one whose time has not come goes when the work is closed.
	second := w.newChat()
	w.say(second, delegate(limited(map[string]any{"timeMs": 600_000}), remindInAMinute))
	w.run()
	g = w.onlyGiven(second)
	_, err = w.engine.CancelDelegation(t.Context(), w.me, g.ID, "k")
	w.must(err)
	w.run()
	if g = w.onlyGiven(second); g.Status != domain.DelegationCancelled || w.open(g.Chat) != 0 {
		t.Errorf("the work is %s, %d reminders are open", g.Status, w.open(g.Chat))
	}
}

// In paused work a reminder waits with all other input until the work goes on.
func TestAReminderWaitsWhileItsWorkIsPaused(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 600_000, "steps": 2}), remindInAMinute))
	w.run()
	if g := w.onlyGiven(chat); g.Status != domain.DelegationRunning || g.Steps != 2 {
		t.Fatalf("the work is %s after %d steps", g.Status, g.Steps)
	}
	w.clock.forward(time.Minute)
	w.run()
	g := w.onlyGiven(chat)
	turn := w.chat(g.Chat).LastTurn
	if g.Status != domain.DelegationPaused || g.Steps != 2 || w.view(turn).Turn.ParkedBy != g.ID {
		t.Fatalf("the work is %s after %d steps", g.Status, g.Steps)
	}
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.run()
	if g = w.onlyGiven(chat); g.Status != domain.DelegationCompleted || g.Steps != 3 || g.Result != w.view(turn).Turn.Answer {
		t.Errorf("the work is %s after %d steps", g.Status, g.Steps)
	}
}

// The cost of given-away work stands in the ledger as it stands with the work; a reply
// that was held during a pause is in it once.
func TestTheLedgerAgreesWithTheWork(t *testing.T) {
	w := newWorld(t)
	w.priced()
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 10_000}), "/say done"))
	given, _ := w.rings.next(w.clock.now())
	w.work(given)
	step := w.takeStepOf(chat)
	w.clock.forward(10 * time.Second)
	w.must(w.engine.ElapseWork(t.Context(), w.onlyGiven(chat).ID))
	w.finish(step) // and its reply comes back into the pause
	g := w.onlyGiven(chat)
	held := w.view(w.chat(g.Chat).Turn).Turn.Held
	if g.Status != domain.DelegationPaused || held == nil {
		t.Fatalf("the work is %s, and %v is held", g.Status, held)
	}
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.run()
	if g = w.onlyGiven(chat); g.Status != domain.DelegationCompleted {
		t.Fatalf("the work is %s", g.Status)
	}
	for _, sum := range w.used(domain.UsageByDelegation) {
		if sum.Key == string(g.ID) && (sum.CostNanos != g.CostNanos || sum.Steps != g.Steps || sum.CostNanos == 0) {
			t.Errorf("the ledger says %+v, the work cost %d in %d steps", sum, g.CostNanos, g.Steps)
		}
	}
	if sums := w.used(domain.UsageByDelegation); len(sums) != 2 {
		t.Errorf("the ledger says %+v", sums)
	}
}

// takeStepOf prepares the step of the work that a Chat gave away.
func (w *world) takeStepOf(chat domain.ChatID) *engine.Step {
	w.t.Helper()
	turn := w.chat(w.onlyGiven(chat).Chat).Turn
	step, err := w.engine.PrepareStep(w.t.Context(), turn, w.view(turn).Turn.Version)
	w.must(err)
	if step == nil {
		w.t.Fatal("the step of the work is not wanted")
	}
	return step
}
