package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"openbot/domain"
	"openbot/domain/engine"
)

func (w *world) texts(chat domain.ChatID) string {
	w.t.Helper()
	items, _, err := w.engine.Items(w.t.Context(), w.me, chat, 0, 100)
	w.must(err)
	var lines []string
	for i, item := range items {
		if item.Sequence != int64(i+1) {
			w.t.Errorf("item %d has sequence %d", i+1, item.Sequence)
		}
		lines = append(lines, string(item.Kind)+":"+item.Text)
	}
	return strings.Join(lines, "\n")
}

func TestInputDuringATurnIsReadAtItsNextStep(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, roundScript)
	w.run()
	if again := w.say(chat, "/then", "/say both are done"); again != turn {
		t.Fatalf("the message went to another Turn: %s", again)
	}
	w.run()
	w.wantStatus(turn, domain.TurnWaiting)
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	if v.Turn.Answer != "both are done" || v.Turn.Steps != 2 {
		t.Errorf("after %d steps the answer is %q", v.Turn.Steps, v.Turn.Answer)
	}
	if text := w.texts(chat); strings.Count(text, "message:") != 2 || strings.Index(text, "/say") < strings.Index(text, "tool_result:") {
		t.Errorf("the history is\n%s", text)
	}
}

func TestInputWhileTheFinalStepRunsContinuesTheTurn(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, "hello")
	task, _ := w.rings.next(w.clock.now())
	step, err := w.engine.PrepareStep(t.Context(), turn, task.Revision)
	w.must(err)
	w.say(chat, "and this")
	w.finish(step)
	w.wantStatus(turn, domain.TurnRunning)
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	if v.Turn.Steps != 2 || !strings.Contains(v.Turn.Answer, "and this") {
		t.Errorf("after %d steps the answer is %q", v.Turn.Steps, v.Turn.Answer)
	}
	if inbox, err := w.store.Inbox(t.Context(), chat); err != nil || len(inbox) != 0 {
		t.Errorf("%d inputs are left: %v", len(inbox), err)
	}
}

func TestInputInTheCommitOfTheFinalStepIsNotLost(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, "hello")
	other := engine.New(engine.Options{Store: w.store.Store, Ringer: w.rings, Live: silence{}, Models: w.models, Sealer: sealed{}, Clock: w.clock.now, DefaultModel: "playbook"})
	w.store.before = func(_ int, c domain.Commit) error {
		w.store.before = nil
		_, err := other.PostMessage(t.Context(), w.me, chat, "and this")
		return err
	}
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	if v.Turn.Steps != 2 || !strings.Contains(v.Turn.Answer, "and this") {
		t.Errorf("after %d steps the answer is %q", v.Turn.Steps, v.Turn.Answer)
	}
}

func TestInputAfterAnInterruptStartsTheNextTurn(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	first := w.say(chat, roundScript)
	w.run()
	w.say(chat, "never mind")
	w.interrupt(chat)
	w.run()
	w.wantStatus(first, domain.TurnInterrupted)
	c, err := w.engine.Chat(t.Context(), w.me, chat)
	w.must(err)
	if c.LastTurn == first {
		t.Fatal("the input that waited was lost")
	}
	if v := w.wantStatus(c.LastTurn, domain.TurnCompleted); !strings.Contains(v.Turn.Answer, "never mind") {
		t.Errorf("the answer is %q", v.Turn.Answer)
	}
}

// Two workers may hold the same step, and what one of them loads may stand between
// two commits of the other: the Turn of before, and the inbox of after.
func TestAStepThatLoadedATornInboxIsDropped(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, roundScript)
	w.run()
	w.say(chat, "/then", "/say done")
	w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
	task, _ := w.rings.next(w.clock.now())
	step, err := w.engine.PrepareStep(t.Context(), turn, task.Revision)
	w.must(err)
	w.clock.forward(domain.RunnableGrace) // so that the facts are loaded anew
	w.store.stepFacts = func(f domain.StepFacts) domain.StepFacts { f.Inbox = nil; return f }
	w.finish(step)
	w.store.stepFacts = nil
	w.sweepFor(10 * domain.RunnableGrace)
	if v := w.wantStatus(turn, domain.TurnCompleted); v.Turn.Answer != "done" {
		t.Errorf("the answer is %q", v.Turn.Answer)
	}
}

func TestOneStepTakenByTwoWorkersCountsOnce(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, roundScript)
	task, _ := w.rings.next(w.clock.now())
	one, err := w.engine.PrepareStep(t.Context(), turn, task.Revision)
	w.must(err)
	two, err := w.engine.PrepareStep(t.Context(), turn, task.Revision)
	w.must(err)
	w.finish(one)
	w.finish(two)
	if v := w.wantStatus(turn, domain.TurnWaiting); v.Turn.Steps != 1 || len(v.Calls) != 1 || len(w.pending()) != 1 {
		t.Errorf("%d steps, %d calls", v.Turn.Steps, len(v.Calls))
	}
	if late, err := w.engine.PrepareStep(t.Context(), turn, task.Revision); err != nil || late != nil {
		t.Errorf("an old task found a step: %v", err)
	}
}

func TestACallIsTakenByOneWorker(t *testing.T) {
	w := newWorld(t)
	w.say(w.newChat(), roundScript)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	task, _ := w.rings.next(w.clock.now())
	var group sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for range 10 {
		group.Go(func() {
			taking, err := w.engine.TakeCall(context.Background(), domain.CallID(task.Subject), task.Revision, true)
			if err != nil {
				t.Error(err)
			}
			if taking.Sending != nil {
				mu.Lock()
				taken++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if taken != 1 {
		t.Errorf("%d workers took the call", taken)
	}
}

func TestAModelThatFailsForAWhileIsTriedAgainLater(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), "hello")
	for try := 1; try < domain.MaxModelTries; try++ {
		task, ok := w.rings.next(w.clock.now())
		if !ok {
			t.Fatalf("try %d is not rung", try)
		}
		step, err := w.engine.PrepareStep(t.Context(), turn, task.Revision)
		w.must(err)
		w.must(w.engine.FailStep(t.Context(), step, &domain.ModelError{Temporary: true, Message: "busy"}))
		w.wantStatus(turn, domain.TurnRunning)
		if _, early := w.rings.next(w.clock.now()); early {
			t.Fatal("the next try came at once")
		}
		w.clock.forward(domain.ModelRetryAfter(try))
		// The timer rings for it now. The sweep leaves it a while: each of them would ask, and
		// pay, the model.
		due, err := w.engine.DueTasks(t.Context(), domain.TaskTurnStep, 0, 10)
		w.must(err)
		if len(due) > 0 {
			t.Fatal("the sweep rings for the try together with its timer")
		}
	}
	w.run()
	if v := w.wantStatus(turn, domain.TurnCompleted); v.Turn.Steps != 1 {
		t.Errorf("%d steps", v.Turn.Steps)
	}
	failing := w.say(w.newChat(), "/fail the key is wrong")
	w.run()
	if v := w.wantStatus(failing, domain.TurnFailed); !strings.Contains(v.Turn.Error, "the key is wrong") {
		t.Errorf("the error is %q", v.Turn.Error)
	}
}

func TestCallsThatFitNoToolGiveAResultAndCreateNothing(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), `/call mail__nothing {}`, `/call mail__send {"to":7}`, `/call mail__send {"to":"a","to":"b"}`, `/call openbot_decide {}`,
		`/call openbot_bot_details {"bot":"bot_1"}`)
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	if len(v.Calls) != 5 || len(w.pending()) != 0 || w.apps.total() != 0 {
		t.Fatalf("%d calls, %d Requests, %d sends", len(v.Calls), len(w.pending()), w.apps.total())
	}
	for _, c := range v.Calls {
		if c.Status != domain.CallFailed || !strings.Contains(c.Result, "not executed") {
			t.Errorf("%s %s is %s: %s", c.Name, c.Arguments, c.Status, c.Result)
		}
	}
}

func TestAModelThatAsksForTooMuchFailsItsTurn(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), strings.Repeat("/call mail__send {}\n", domain.MaxStepCalls+1))
	w.run()
	v := w.wantStatus(turn, domain.TurnFailed)
	if len(v.Calls) != 0 || len(w.pending()) != 0 {
		t.Error("calls of a step that was refused were saved")
	}
	if v.Turn.InputTokens == 0 {
		t.Error("what the model was paid for is not counted")
	}
}

// keep is a command under an Idempotency-Key, as the API sends it.
func (w *world) keep(key, body string) (context.Context, *engine.Keeping) {
	k := &engine.Keeping{Member: w.me.Member.ID, Key: key, Fingerprint: body, Status: 202,
		Render: func(result any) ([]byte, error) { return []byte(result.(engine.Posted).Turn), nil }}
	return engine.WithKeeping(w.t.Context(), k), k
}

func TestOneKeyHasOneEffect(t *testing.T) {
	for name, engines := range map[string]int{"in one process": 1, "in two processes": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			chat := w.newChat()
			list := []*engine.Engine{w.engine}
			for len(list) < engines {
				list = append(list, engine.New(engine.Options{Store: w.store, Ringer: w.rings, Live: silence{}, Models: w.models, Sealer: sealed{}, Clock: w.clock.now, DefaultModel: "playbook"}))
			}
			var group sync.WaitGroup
			var mu sync.Mutex
			posted, kept := 0, 0
			for i := range 20 {
				group.Go(func() {
					ctx, _ := w.keep("key", "hello")
					_, err := list[i%len(list)].PostMessage(ctx, w.me, chat, "hello")
					mu.Lock()
					defer mu.Unlock()
					var before *engine.KeptError
					switch {
					case err == nil:
						posted++
					case errors.As(err, &before) && before.Answer.Status == 202 && len(before.Answer.Body) > 0:
						kept++
					default:
						t.Error(err)
					}
				})
			}
			group.Wait()
			if posted != 1 || kept != 19 {
				t.Errorf("%d posts, %d kept answers", posted, kept)
			}
			w.run()
			if text := w.texts(chat); strings.Count(text, "message:") != 1 {
				t.Errorf("the history is\n%s", text)
			}
			_, other := w.keep("key", "something else")
			w.wantCode(w.engine.Kept(t.Context(), other), domain.CodeConflict)
			w.clock.forward(engine.KeepFor)
			w.must(w.engine.Kept(t.Context(), other)) // its time is up
		})
	}
}
