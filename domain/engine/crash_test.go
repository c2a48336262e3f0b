package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// afterCrash lets only the sweep and a person drive the work on. The person says no
// to sending again, so that nothing may go out twice.
func (w *world) afterCrash(chat domain.ChatID, answer string) {
	w.t.Helper()
	for range 6 {
		w.sweepFor(15 * time.Second)
		if c, err := w.engine.Chat(w.t.Context(), w.me, chat); err == nil && c.Turn == "" && len(w.pending()) == 0 {
			break
		}
		for _, r := range w.pending() {
			decision := answer
			if r.Unknown != nil {
				decision = domain.DecisionDeny
			}
			if _, err := w.answer(r, decision, ""); err != nil {
				w.t.Fatalf("the answer after the crash: %v", err)
			}
		}
	}
	c, err := w.engine.Chat(w.t.Context(), w.me, chat)
	w.must(err)
	if c.Turn != "" {
		w.t.Fatalf("nothing moves the Turn on: it is %s", w.view(c.Turn).Turn.Status)
	}
	for _, kind := range domain.TaskKinds() {
		tasks, err := w.engine.DueTasks(w.t.Context(), kind, 365*24*time.Hour, 100)
		w.must(err)
		if len(tasks) > 0 {
			w.t.Errorf("something is still due: %+v", tasks)
		}
	}
}

// round plays the whole round as the program does: a person's message, workers, a
// person's answer, workers.
func (w *world) round(chat domain.ChatID, answer string) {
	ctx := context.WithoutCancel(w.t.Context())
	if _, err := w.engine.PostMessage(ctx, w.me, chat, roundScript); err != nil {
		w.t.Error(err)
		return
	}
	w.run()
	for _, r := range w.pending() {
		if _, err := w.engine.AnswerRequest(ctx, w.me, r.ID, engine.Answer{Expected: r.Revision, Decision: answer}); err != nil {
			w.t.Error(err)
		}
	}
	w.run()
}

// The process dies after each commit and after each ring of a round, and what was
// rung is lost. The end is the same, and the App is called at most once.
func TestADeathAtAnyPointOfARoundEndsTheSame(t *testing.T) {
	for _, answer := range []string{domain.DecisionAllow, domain.DecisionDeny} {
		for _, where := range []string{"commit", "ring"} {
			for n := 1; ; n++ {
				points := 0
				t.Run(fmt.Sprintf("%s, death after %s %d", answer, where, n), func(t *testing.T) {
					w := newWorldAlone(t)
					chat := w.newChat()
					start, rung := w.store.count(), w.rings.n
					hook := func(at, from int) {
						if at-from == n {
							crash()
						}
					}
					if where == "commit" {
						w.store.after = func(at int) { hook(at, start) }
					} else {
						w.rings.after = func(at int) { hook(at, rung) }
					}
					died := w.die(func() { w.round(chat, answer) })
					if !died {
						points = n - 1
					}
					sent := w.apps.total()
					w.restart()
					w.afterCrash(chat, answer)
					w.wantRoundEnd(chat, answer, sent)
				})
				if points > 0 {
					if points < map[string]int{"commit": 4, "ring": 2}[where] {
						t.Errorf("only %d points of death after a %s were found", points, where)
					}
					break
				}
				if n > 50 {
					t.Fatal("the round does not end")
				}
			}
		}
	}
}

func (w *world) wantRoundEnd(chat domain.ChatID, answer string, sentBefore int) {
	w.t.Helper()
	c, err := w.engine.Chat(w.t.Context(), w.me, chat)
	w.must(err)
	v := w.wantStatus(c.LastTurn, domain.TurnCompleted)
	if len(v.Calls) != 1 || v.Turn.Steps != 2 || strings.Count(w.texts(chat), "message:") != 1 || strings.Count(w.texts(chat), "tool_result:") != 1 {
		w.t.Fatalf("%d calls, %d steps, the history is\n%s", len(v.Calls), v.Turn.Steps, w.texts(chat))
	}
	if w.apps.most() > 1 {
		w.t.Errorf("the call went out %d times", w.apps.most())
	}
	status := v.Calls[0].Status
	switch {
	case answer == domain.DecisionDeny:
		if status != domain.CallDenied || w.apps.total() != 0 {
			w.t.Errorf("a denied call is %s after %d sends", status, w.apps.total())
		}
	case status == domain.CallSucceeded:
		if w.apps.total() != 1 {
			w.t.Errorf("a call that succeeded went out %d times", w.apps.total())
		}
	case status == domain.CallUnknown:
		// It died between sending and the result: whether it went out is what nobody knows.
		if v.Calls[0].Sends != 1 || w.apps.total() != sentBefore {
			w.t.Errorf("an unknown call was sent %d times", v.Calls[0].Sends)
		}
	default:
		w.t.Errorf("the call is %s", status)
	}
}

// A worker that dies between the commit of sending and the first byte, or between
// the answer and its commit, leaves the same question.
func TestADeathAroundTheSendAsksThePerson(t *testing.T) {
	for _, sent := range []bool{false, true} {
		t.Run(fmt.Sprintf("sent %v", sent), func(t *testing.T) {
			w := newWorld(t)
			chat := w.newChat()
			turn, out := w.sending(chat, roundScript)
			if sent {
				if _, err := w.apps.send(out.Call); err != nil {
					t.Fatal(err)
				}
			}
			w.restart()
			w.sweepFor(15 * time.Second)
			r := w.onlyPending()
			if r.Unknown == nil {
				t.Fatalf("the person is asked %+v", r)
			}
			w.mustAnswer(r, domain.DecisionAllow, "")
			w.run()
			w.wantStatus(turn, domain.TurnCompleted)
			want := 1
			if sent {
				want = 2
			}
			if w.apps.total() != want {
				t.Errorf("%d sends, want %d", w.apps.total(), want)
			}
		})
	}
}

func TestACommitThatFailsHalfChangesNothing(t *testing.T) {
	for n := 1; n <= 6; n++ {
		t.Run(fmt.Sprint("commit ", n), func(t *testing.T) {
			w := newWorld(t)
			chat := w.newChat()
			start := w.store.count()
			failed := false
			w.store.before = func(at int, _ domain.Commit) error {
				if at-start == n && !failed {
					failed = true
					return domain.Errorf(domain.CodeConflict, "Conflict", "Another was faster.")
				}
				return nil
			}
			w.round(chat, domain.DecisionAllow)
			if !failed {
				t.Fatal("no commit failed")
			}
			w.wantRoundEnd(chat, domain.DecisionAllow, 1)
		})
	}
	t.Run("the database is away", func(t *testing.T) {
		w := newWorld(t)
		chat := w.newChat()
		turn := w.say(chat, roundScript)
		w.run()
		r := w.onlyPending()
		w.store.before = func(int, domain.Commit) error {
			return domain.Errorf(domain.CodeUnavailable, "Unavailable", "The database cannot be reached.")
		}
		_, err := w.answer(r, domain.DecisionAllow, domain.ScopeLifetime)
		w.wantCode(err, domain.CodeUnavailable)
		_, err = w.engine.PostMessage(t.Context(), w.me, chat, "hello")
		w.wantCode(err, domain.CodeUnavailable)
		w.store.before = nil
		if got := w.request(r.ID); got.Status != domain.RequestPending {
			t.Errorf("an answer that was not saved made the Request %s", got.Status)
		}
		if _, rung := w.rings.next(w.clock.now()); rung {
			t.Error("something was rung for what was not saved")
		}
		w.mustAnswer(r, domain.DecisionAllow, "")
		w.run()
		w.wantStatus(turn, domain.TurnCompleted)
	})
}

// A conflict that never ends is said to the caller instead of being tried for ever.
func TestConflictsWithoutAnEndAreSaid(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	tries := 0
	w.store.before = func(int, domain.Commit) error {
		tries++
		return domain.Errorf(domain.CodeConflict, "Conflict", "Another was faster.")
	}
	_, err := w.engine.PostMessage(t.Context(), w.me, chat, "hello")
	w.wantCode(err, domain.CodeConflict)
	if tries < 2 || tries > 100 {
		t.Errorf("tried %d times", tries)
	}
}
