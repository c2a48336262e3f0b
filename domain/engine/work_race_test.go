package engine_test

import (
	"slices"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// rungIn takes the step that is rung in a Chat and leaves all else in the queue.
func (w *world) rungIn(chat domain.ChatID) domain.Task {
	w.t.Helper()
	w.rings.mu.Lock()
	defer w.rings.mu.Unlock()
	for i, task := range w.rings.tasks {
		if task.Kind == domain.TaskTurnStep && w.turnIn(task, chat) {
			w.rings.tasks = slices.Delete(w.rings.tasks, i, i+1)
			return task
		}
	}
	w.t.Fatal("no step of this Chat is rung")
	return domain.Task{}
}

// stepIn prepares the step that is rung in a Chat.
func (w *world) stepIn(chat domain.ChatID) *engine.Step {
	w.t.Helper()
	task := w.rungIn(chat)
	step, err := w.engine.PrepareStep(w.t.Context(), domain.TurnID(task.Subject), task.Revision)
	w.must(err)
	if step == nil {
		w.t.Fatal("the step of this Chat may not be taken")
	}
	return step
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

// endedBelow brings about work whose work, and the work below that, have ended, while the work
// itself goes on.
func (w *world) endedBelow() (top, middle, low domain.Delegation) {
	w.t.Helper()
	chat := w.newChat()
	w.say(chat, delegate(nil, delegate(nil, delegate(nil, "/say low"), "/then", "/say middle"), `/call mail__send {"n":1}`, "/then", "/say top"))
	w.run()
	top = w.onlyGiven(chat)
	middle = w.wantWork(w.onlyGiven(top.Chat).ID, domain.DelegationCompleted)
	return w.wantWork(top.ID, domain.DelegationRunning), middle, w.wantWork(w.onlyGiven(middle.Chat).ID, domain.DelegationCompleted)
}

// A round that a person starts below ended work belongs to the nearest open work above:
// that is open until the round has ended, and a cancel of it stops the round.
func TestARoundBelowEndedWorkBelongsToOpenWorkAbove(t *testing.T) {
	t.Run("the work above ends after it", func(t *testing.T) {
		w := newWorld(t)
		top, middle, low := w.endedBelow()
		turn := w.say(low.Chat, `/call mail__send {"n":2}`, "/then", "/say again")
		w.run()
		round := w.given(middle.Chat)[1].Delegation
		if round.Above != top.ID || round.Chat != low.Chat {
			t.Fatalf("the round is %+v", round)
		}
		for _, r := range w.pending() {
			if r.Chat == top.Chat {
				w.mustAnswer(r, domain.DecisionDeny, "")
			}
		}
		w.run()
		w.wantWork(top.ID, domain.DelegationRunning)
		w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
		w.run()
		w.wantStatus(turn, domain.TurnCompleted)
		w.wantWork(round.ID, domain.DelegationCompleted)
		if g := w.wantWork(top.ID, domain.DelegationCompleted); g.Result != "top" {
			t.Errorf("the result is %q", g.Result)
		}
		w.wantText(middle.Chat, "notice: [OpenBot] The work "+string(round.ID)+" that you gave to")
	})
	t.Run("a cancel above stops it", func(t *testing.T) {
		w := newWorld(t)
		top, middle, low := w.endedBelow()
		w.say(low.Chat, `/call mail__send {"n":2}`)
		w.run()
		_, err := w.engine.CancelDelegation(t.Context(), w.me, top.ID, "stop")
		w.must(err)
		w.run()
		w.wantWork(w.given(middle.Chat)[1].Delegation.ID, domain.DelegationCancelled)
		w.wantWork(top.ID, domain.DelegationCancelled)
		if len(w.pending()) != 0 {
			t.Error("a Request of cancelled work waits")
		}
	})
	t.Run("it keeps work open that is just ending", func(t *testing.T) {
		w := newWorld(t)
		chat := w.newChat()
		w.say(chat, delegate(nil, delegate(nil, "/say low"), "/then", "/say first"))
		w.finish(w.stepIn(chat))
		top := w.onlyGiven(chat)
		w.finish(w.stepIn(top.Chat)) // it gives work
		w.finish(w.stepIn(top.Chat)) // its Turn ends
		low := w.onlyGiven(top.Chat)
		w.finish(w.stepIn(low.Chat))
		for task, ok := w.rings.next(w.clock.now()); ok && task.Kind != domain.TaskWorkNotify; task, ok = w.rings.next(w.clock.now()) {
			w.t.Logf("left %s", task.Kind)
		}
		w.must(w.engine.NotifyWork(t.Context(), low.ID)) // starts its last Turn
		last := w.stepIn(top.Chat)
		other := engine.New(engine.Options{Store: w.store, Ringer: w.rings, Live: silence{}, Models: w.models, Clock: w.clock.now, DefaultModel: "playbook"})
		w.store.before = func(int, domain.Commit) error {
			w.store.before = nil
			_, err := other.PostMessage(t.Context(), w.me, low.Chat, "/say once more")
			return err
		}
		w.finish(last)
		w.wantWork(top.ID, domain.DelegationRunning)
		w.run()
		w.wantWork(top.ID, domain.DelegationCompleted)
		w.wantWork(w.given(top.Chat)[1].Delegation.ID, domain.DelegationCompleted)
	})
}

// Between a cancel and the close that follows it a call of unknown outcome is not sent
// again.
func TestAnUnknownOutcomeOfWorkThatIsBeingStoppedIsNotSentAgain(t *testing.T) {
	for name, stop := range map[string]func(w *world, chat domain.ChatID, id domain.DelegationID) error{
		"cancel": func(w *world, _ domain.ChatID, id domain.DelegationID) error {
			_, err := w.engine.CancelDelegation(t.Context(), w.me, id, "stop")
			return err
		},
		"interrupt above": func(w *world, chat domain.ChatID, _ domain.DelegationID) error {
			_, err := w.engine.Interrupt(t.Context(), w.me, chat, true)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			chat := w.newChat()
			w.apps.lose = true
			w.say(chat, delegate(nil, `/call mail__send {"n":1}`))
			w.run()
			w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
			w.run()
			r := w.onlyPending()
			g := w.onlyGiven(chat)
			if r.Unknown == nil || r.Chat != g.Chat {
				t.Fatalf("the question is %+v", r)
			}
			w.must(stop(w, chat, g.ID))
			_, err := w.answer(r, domain.DecisionAllow, "")
			w.wantCode(err, domain.CodeConflict)
			w.run()
			w.sweepFor(30 * time.Second)
			w.wantWork(g.ID, domain.DelegationRunning)
			w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
			w.run()
			w.wantWork(g.ID, domain.DelegationCancelled)
			if w.apps.total() != 1 {
				t.Errorf("the call went out %d times", w.apps.total())
			}
		})
	}
}

// What waits in the inbox of a task Chat whose Bot is archived does not keep the work
// open.
func TestWorkOfAnArchivedBotEndsWithInputInItsInbox(t *testing.T) {
	w := newWorld(t)
	owned := w.bot("Own", "", w.main())
	chat := w.newChat()
	w.say(chat, delegate(map[string]any{"bot": owned}, `/call mail__send {"n":1}`))
	w.run()
	g := w.onlyGiven(chat)
	w.say(g.Chat, "and one thing more")
	w.must(w.engine.ArchiveBot(t.Context(), w.me, owned))
	w.run()
	if g = w.onlyGiven(chat); g.Open() {
		t.Fatalf("the work is %s", g.Status)
	}
	w.wantText(chat, "[OpenBot] The work "+string(g.ID))
}

// Work that pauses again before what its last pause parked was set free takes that over:
// setting it free now would have it park and be set free for as long as the pause lasts.
func TestAPauseTakesOverWhatTheLastOneParked(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 60_000, "steps": 1}), delegate(nil, "/say below"), "/then", "/say top"))
	w.finish(w.stepIn(chat))
	top := w.onlyGiven(chat)
	w.finish(w.stepIn(top.Chat)) // it gives work
	below := w.onlyGiven(top.Chat)
	w.work(w.rungIn(top.Chat)) // it pauses
	w.work(w.rungIn(below.Chat))
	parked := func() {
		t.Helper()
		for _, id := range []domain.ChatID{top.Chat, below.Chat} {
			if turn, err := w.store.Turn(t.Context(), w.chat(id).Turn); err != nil || turn.ParkedBy != top.ID {
				t.Fatalf("the Turn is %s, parked by %q: %v", turn.Status, turn.ParkedBy, err)
			}
		}
	}
	parked()
	r := w.onlyPending()
	w.mustAnswer(r, domain.DecisionAllow, "")
	call, err := w.store.CallFacts(t.Context(), r.Call)
	w.must(err)
	_, err = w.engine.TakeCall(t.Context(), r.Call, call.Call.Version, true)
	w.must(err)
	w.wantWork(top.ID, domain.DelegationRunning)
	w.clock.forward(time.Minute)
	w.must(w.engine.ElapseWork(t.Context(), top.ID))
	w.wantWork(top.ID, domain.DelegationPaused)
	w.must(w.engine.ResumeWork(t.Context(), top.ID))
	parked()
	for len(w.pending()) > 0 {
		w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
		w.run()
	}
	w.wantWork(top.ID, domain.DelegationCompleted)
}

// Work whose Turn was interrupted in its pause has nothing left to do when it is let go
// on: it ends then, as interrupted work does.
func TestInterruptedWorkEndsWhenItsPauseIsOver(t *testing.T) {
	for name, reason := range map[string]*string{"without a reason": nil, "with one": ptr("go on")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			chat := w.newChat()
			w.say(chat, delegate(limited(map[string]any{"timeMs": 600_000, "steps": 1}), "/call openbot_list_bots", "/then", "/say done"))
			w.run()
			g := w.wantWork(w.onlyGiven(chat).ID, domain.DelegationPaused)
			w.interrupt(g.Chat)
			w.wantWork(g.ID, domain.DelegationPaused)
			r := w.onlyPending()
			_, err := w.engine.AnswerRequest(t.Context(), w.me, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow, Reason: reason})
			w.must(err)
			w.run()
			want := domain.DelegationCancelled
			if reason != nil {
				want = domain.DelegationCompleted // it reads the reason and goes on
			}
			w.wantWork(g.ID, want)
		})
	}
}
