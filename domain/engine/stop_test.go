package engine_test

import (
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

func (w *world) interrupt(chat domain.ChatID) {
	w.t.Helper()
	_, err := w.engine.Interrupt(w.t.Context(), w.me, chat, false)
	w.must(err)
}

func TestInterruptBeforeTheFirstStep(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, roundScript)
	w.interrupt(chat)
	w.run()
	if v := w.wantStatus(turn, domain.TurnInterrupted); v.Turn.Steps != 0 || len(v.Calls) != 0 {
		t.Errorf("a stopped Turn took a step")
	}
	before := w.store.count()
	w.interrupt(chat)
	if w.store.count() != before {
		t.Error("a Chat without a Turn stays as it is")
	}
}

func TestInterruptWhileTheModelAnswers(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, roundScript)
	task, _ := w.rings.next(w.clock.now())
	step, err := w.engine.PrepareStep(t.Context(), turn, task.Revision)
	w.must(err)
	w.interrupt(chat)
	if wanted, err := w.engine.PushStep(t.Context(), step); err != nil || wanted {
		t.Errorf("the worker does not learn that its step is not wanted: %v %v", wanted, err)
	}
	w.finish(step)
	v := w.wantStatus(turn, domain.TurnInterrupted)
	if len(v.Calls) != 0 || len(w.pending()) != 0 {
		t.Error("the step of a stopped Turn was saved")
	}
}

func TestInterruptWhileARequestWaits(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, roundScript)
	w.run()
	r := w.onlyPending()
	w.interrupt(chat)
	w.run()
	v := w.wantStatus(turn, domain.TurnInterrupted)
	if got := w.request(r.ID); got.Status != domain.RequestCancelled || got.Revision != r.Revision+1 {
		t.Errorf("the Request is %s", got.Status)
	}
	if v.Calls[0].Status != domain.CallCancelled || !strings.Contains(v.Calls[0].Result, "not executed") {
		t.Errorf("the call is %s: %s", v.Calls[0].Status, v.Calls[0].Result)
	}
	_, err := w.answer(r, domain.DecisionAllow, "")
	w.wantCode(err, domain.CodeConflict)
	w.run()
	if w.apps.total() != 0 {
		t.Error("a stopped call went out")
	}
	next := w.say(chat, "hello")
	w.run()
	w.wantStatus(next, domain.TurnCompleted)
}

func TestInterruptAfterTheAllowAndBeforeTheSend(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, roundScript)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.interrupt(chat)
	w.run()
	if v := w.wantStatus(turn, domain.TurnInterrupted); v.Calls[0].Status != domain.CallCancelled || w.apps.total() != 0 {
		t.Errorf("the call is %s after %d sends", v.Calls[0].Status, w.apps.total())
	}
}

// sending brings a Chat to a call that its worker has taken and not yet settled.
func (w *world) sending(chat domain.ChatID, lines ...string) (domain.TurnID, *engine.Sending) {
	w.t.Helper()
	turn := w.say(chat, lines...)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	task, ok := w.rings.next(w.clock.now())
	if !ok || task.Kind != domain.TaskCallSend {
		w.t.Fatalf("rung was %v", task)
	}
	taking, err := w.engine.TakeCall(w.t.Context(), domain.CallID(task.Subject), task.Revision, true)
	w.must(err)
	if taking.Sending == nil {
		w.t.Fatal("the call was not taken")
	}
	return turn, taking.Sending
}

func TestInterruptWhileTheCallIsOutKeepsItsResult(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn, out := w.sending(chat, roundScript)
	w.interrupt(chat)
	if _, ours, err := w.engine.RenewCall(t.Context(), out); err != nil || !ours {
		t.Errorf("the call that is out lost its lease with the stop of its Turn: %v %v", ours, err)
	}
	w.carry(out)
	w.run()
	v := w.wantStatus(turn, domain.TurnInterrupted)
	if v.Calls[0].Status != domain.CallSucceeded || v.Turn.Steps != 1 {
		t.Errorf("the call that was out is %s, the Turn took %d steps", v.Calls[0].Status, v.Turn.Steps)
	}
}

func TestAnUnknownOutcomeAsksThePerson(t *testing.T) {
	for _, c := range []struct {
		name     string
		decision string
		stopped  bool
		sends    int
		status   domain.CallStatus
	}{
		{"allow sends again", domain.DecisionAllow, false, 2, domain.CallSucceeded},
		{"deny ends it", domain.DecisionDeny, false, 1, domain.CallUnknown},
		{"its time is up", "", false, 1, domain.CallUnknown},
		{"deny in stopped work", domain.DecisionDeny, true, 1, domain.CallUnknown},
		{"its time is up in stopped work", "", true, 1, domain.CallUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			chat := w.newChat()
			w.apps.lose = true
			turn, out := w.sending(chat, roundScript)
			w.carry(out)
			w.run()
			w.apps.lose = false
			v := w.wantStatus(turn, domain.TurnWaiting)
			r := w.onlyPending()
			if r.Unknown == nil || r.Call != v.Calls[0].ID || v.Calls[0].Status != domain.CallUnknown || r.Unknown.SentAtMs != w.clock.now().UnixMilli() {
				t.Fatalf("the question is %+v about a call that is %s", r, v.Calls[0].Status)
			}
			if c.stopped {
				w.interrupt(chat)
				if w.onlyPending().ID != r.ID {
					t.Fatal("the question about an unknown outcome must stay open")
				}
				_, err := w.answer(r, domain.DecisionAllow, "")
				w.wantCode(err, domain.CodeConflict)
			}
			_, err := w.answer(r, domain.DecisionAllow, domain.ScopeLifetime)
			w.wantCode(err, domain.CodeInvalid)
			if c.decision == "" {
				w.clock.forward(r.ExpiresAt.Sub(w.clock.now()))
				w.sweepFor(10 * time.Second)
			} else {
				w.mustAnswer(r, c.decision, "")
				w.run()
			}
			want := domain.TurnCompleted
			if c.stopped {
				want = domain.TurnInterrupted
			}
			v = w.wantStatus(turn, want)
			if v.Calls[0].Status != c.status || v.Calls[0].Open() || w.apps.most() != c.sends {
				t.Errorf("the call is %s after %d sends", v.Calls[0].Status, w.apps.most())
			}
			if c.status == domain.CallUnknown && v.Calls[0].Result != domain.TextUnknown() {
				t.Errorf("the model reads %q", v.Calls[0].Result)
			}
			if len(w.pending()) != 0 {
				t.Error("a question stays open")
			}
		})
	}
}

// A call that is to go out again and is stopped before that may have run the first time.
func TestACallOfUnknownOutcomeThatIsStoppedStaysUnknownToTheModel(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.apps.lose = true
	turn, out := w.sending(chat, roundScript)
	w.carry(out)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.interrupt(chat)
	w.run()
	if c := w.wantStatus(turn, domain.TurnInterrupted).Calls[0]; c.Status != domain.CallCancelled || c.Result != domain.TextUnknown() || w.apps.total() != 1 {
		t.Errorf("the call is %s after %d sends: %s", c.Status, w.apps.total(), c.Result)
	}
}

func TestACallWhoseWorkerDiedIsUnknownWithinFifteenSeconds(t *testing.T) {
	w := newWorld(t)
	turn, out := w.sending(w.newChat(), roundScript)
	w.rings.lose()
	w.clock.forward(domain.LeaseTime - time.Second)
	w.sweep()
	w.wantStatus(turn, domain.TurnRunning)
	w.clock.forward(time.Second)
	w.sweep()
	v := w.wantStatus(turn, domain.TurnWaiting)
	if v.Calls[0].Status != domain.CallUnknown || w.onlyPending().Unknown == nil {
		t.Errorf("the call is %s", v.Calls[0].Status)
	}
	// The worker was only slow. Its answer comes too late: the person has been asked.
	w.carry(out)
	if v = w.view(turn); v.Calls[0].Status != domain.CallUnknown {
		t.Errorf("a late answer made the call %s", v.Calls[0].Status)
	}
}

func TestALeaseThatIsRenewedHolds(t *testing.T) {
	w := newWorld(t)
	turn, out := w.sending(w.newChat(), roundScript)
	for range 20 {
		w.clock.forward(domain.LeaseRenewal)
		until, ours, err := w.engine.RenewCall(t.Context(), out)
		if err != nil || !ours || !until.After(w.clock.now()) {
			t.Fatalf("the lease is not renewed: %v %v %v", until, ours, err)
		}
		w.sweep()
	}
	w.carry(out)
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	if w.apps.most() != 1 {
		t.Errorf("%d sends", w.apps.most())
	}
}

func TestACallThatIsSafeToRepeatGoesOutAgainByItself(t *testing.T) {
	w := newWorld(t)
	_, err := w.engine.ChangeSettings(t.Context(), w.me, func(s *domain.Settings) error {
		s.AppReadRules = []string{string(w.mail.ID) + "/list"}
		return nil
	})
	w.must(err)
	w.apps.lose = true
	turn := w.say(w.newChat(), `/call mail__list {}`)
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	if w.apps.most() != domain.MaxSends || v.Calls[0].Status != domain.CallFailed || len(w.pending()) != 0 {
		t.Errorf("a read without an answer went out %d times and is %s", w.apps.most(), v.Calls[0].Status)
	}
	if v.Calls[0].Decided.Step != domain.StepExemption || v.Calls[0].Decided.Pattern != string(w.mail.ID)+"/list" {
		t.Errorf("its evidence is %+v", v.Calls[0].Decided)
	}
}

func TestDeletingAChatStopsItsWork(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, roundScript)
	w.run()
	r := w.onlyPending()
	w.say(chat, "and then?")
	w.must(w.engine.DeleteChat(t.Context(), w.me, chat))
	w.run()
	_, err := w.engine.Chat(t.Context(), w.me, chat)
	w.wantCode(err, domain.CodeNotFound)
	_, err = w.engine.PostMessage(t.Context(), w.me, chat, "hello")
	w.wantCode(err, domain.CodeNotFound)
	stored, err := w.store.Turn(t.Context(), turn)
	w.must(err)
	if stored.Status != domain.TurnInterrupted || w.request(r.ID).Status != domain.RequestCancelled {
		t.Errorf("the work of a deleted Chat is %s, its Request %s", stored.Status, w.request(r.ID).Status)
	}
	w.sweepFor(10 * time.Second)
	if w.apps.total() != 0 {
		t.Error("a call of a deleted Chat went out")
	}
}

// Another process may end the Turn between two looks of a stop at it. That is no
// error of the person who stops it.
func TestInterruptThatLosesTheRaceAgainstTheEnd(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, "hello")
	task, _ := w.rings.next(w.clock.now())
	step, err := w.engine.PrepareStep(t.Context(), turn, task.Revision)
	w.must(err)
	other := engine.New(engine.Options{Store: w.store, Ringer: w.rings, Live: silence{}, Models: w.models, Sealer: sealed{}, Clock: w.clock.now, DefaultModel: "playbook"})
	w.store.beforeTurn = func(domain.TurnID) {
		w.must(other.CommitStep(t.Context(), step, domain.ModelReply{Text: "done"}))
	}
	if _, err := w.engine.Interrupt(t.Context(), w.me, chat, false); err != nil {
		t.Errorf("the stop of a Turn that has just ended gave %v", err)
	}
	w.wantStatus(turn, domain.TurnCompleted)
}

// A read that gave no sign has done nothing that a person would have to judge.
func TestAReadThatIsLostInStoppedWorkAsksNobody(t *testing.T) {
	w := newWorld(t)
	_, err := w.engine.ChangeSettings(t.Context(), w.me, func(s *domain.Settings) error {
		s.AppReadRules = []string{string(w.mail.ID) + "/list"}
		return nil
	})
	w.must(err)
	chat := w.newChat()
	turn := w.say(chat, `/call mail__list {}`)
	task, _ := w.rings.next(w.clock.now())
	w.work(task)
	task, _ = w.rings.next(w.clock.now())
	taking, err := w.engine.TakeCall(t.Context(), domain.CallID(task.Subject), task.Revision, true)
	w.must(err)
	if taking.Sending == nil {
		t.Fatal("the read was not taken")
	}
	w.interrupt(chat)
	w.sweepFor(2 * domain.LeaseTime)
	v := w.wantStatus(turn, domain.TurnInterrupted)
	if len(w.pending()) != 0 || v.Calls[0].Open() || v.Calls[0].Status != domain.CallFailed || w.apps.total() != 0 {
		t.Errorf("%d questions, the call is %s", len(w.pending()), v.Calls[0].Status)
	}
}

// The answer of an App is saved on what stood when its call went out, without asking
// the database again; what moved in the Chat meanwhile is seen all the same.
func TestAnAnswerIsSavedWithoutReadingUnlessTheChatMoved(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn, s := w.sending(chat, roundScript)
	loads := w.store.callFacts
	w.carry(s)
	if more := w.store.callFacts - loads; more != 0 {
		t.Errorf("the answer was saved after %d loads, want none", more)
	}
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)

	turn, s = w.sending(chat, roundScript)
	w.say(chat, "and one thing more")
	loads = w.store.callFacts
	w.carry(s)
	if more := w.store.callFacts - loads; more != 1 {
		t.Errorf("the answer was saved after %d loads, want one", more)
	}
	w.run()
	if v := w.wantStatus(turn, domain.TurnCompleted); v.Calls[0].Status != domain.CallSucceeded {
		t.Errorf("the call is %s", v.Calls[0].Status)
	}
	if !strings.Contains(w.texts(chat), "and one thing more") {
		t.Errorf("the message that came meanwhile is lost: %s", w.texts(chat))
	}
}
