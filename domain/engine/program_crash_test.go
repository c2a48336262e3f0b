package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// inGo does what the program of two calls does, without a child: the process that dies
// in these tests is the server's.
type inGo struct{}

func (inGo) Run(_ context.Context, _ domain.ProgramSource, answers []*domain.ProgramAnswer, _ domain.ProgramTrace) (domain.ProgramOutcome, error) {
	var trace domain.ProgramTrace
	for i := range 2 {
		trace.Calls = append(trace.Calls, domain.ProgramAsked{Position: domain.ProgramPosition{Index: i, Line: i + 1, Column: 17},
			Connection: "mail", Tool: "send", Reason: "because", Arguments: fmt.Appendf(nil, `{"n":%d}`, i+1)})
		switch {
		case i >= len(answers) || answers[i] == nil:
			return domain.ProgramOutcome{Status: domain.ProgramWaiting, Trace: trace}, nil
		case !answers[i].OK:
			return domain.ProgramOutcome{Status: domain.ProgramFailed, Message: "The program failed: " + answers[i].Text, Trace: trace}, nil
		}
		trace.Given = append(trace.Given, i)
	}
	return domain.ProgramOutcome{Status: domain.ProgramFinished, Result: []byte("2"), Trace: trace}, nil
}

// programRound plays the whole round of a program: a person's message, workers, two
// answers, workers.
func (w *world) programRound(chat domain.ChatID) {
	ctx := context.WithoutCancel(w.t.Context())
	if _, err := w.engine.PostMessage(ctx, w.me, chat, code(twoCalls)); err != nil {
		w.t.Error(err)
		return
	}
	for range 2 {
		w.run()
		for _, r := range w.pending() {
			if _, err := w.engine.AnswerRequest(ctx, w.me, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow}); err != nil {
				w.t.Error(err)
			}
		}
	}
	w.run()
}

// The process dies after each commit and after each ring of a program's round, and what
// was rung is lost. The program goes on, and each of its calls goes out at most once.
func TestADeathAtAnyPointOfAProgramEndsTheSame(t *testing.T) {
	for _, where := range []string{"commit", "ring"} {
		for n := 1; ; n++ {
			points := 0
			t.Run(fmt.Sprintf("death after %s %d", where, n), func(t *testing.T) {
				w := newWorldAlone(t)
				w.programs = inGo{}
				chat := w.newChat()
				start, rung := w.store.count(), w.rings.n
				if where == "commit" {
					w.store.after = func(at int) {
						if at-start == n {
							crash()
						}
					}
				} else {
					w.rings.after = func(at int) {
						if at-rung == n {
							crash()
						}
					}
				}
				if !w.die(func() { w.programRound(chat) }) {
					points = n - 1
				}
				sent := w.apps.total()
				w.restart()
				w.afterCrash(chat, domain.DecisionAllow)
				w.wantProgramEnd(chat, sent)
			})
			if points > 0 {
				if points < map[string]int{"commit": 14, "ring": 7}[where] {
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

func (w *world) wantProgramEnd(chat domain.ChatID, sentBefore int) {
	w.t.Helper()
	c, err := w.engine.Chat(w.t.Context(), w.me, chat)
	w.must(err)
	v := w.wantStatus(c.LastTurn, domain.TurnCompleted)
	if w.apps.most() > 1 {
		w.t.Errorf("a call went out %d times", w.apps.most())
	}
	lost := 0
	for _, call := range v.Calls[1:] {
		if call.Open() {
			w.t.Errorf("a call of the program is still %s", call.Status)
		}
		if call.Status == domain.CallUnknown {
			lost++
		}
	}
	switch {
	case lost == 0 && v.Calls[0].Status == domain.CallSucceeded && len(v.Calls) == 3 && w.apps.total() == 2:
	case lost == 1 && v.Calls[0].Status == domain.CallFailed && w.apps.total() == sentBefore:
		// It died between sending and the result: whether that call went out is what nobody
		// knows, and the program was told so.
	default:
		w.t.Errorf("the program is %s (%s) with %d calls after %d sends", v.Calls[0].Status, v.Calls[0].Result, len(v.Calls), w.apps.total())
	}
}

func TestAProgramsCommitThatFailsIsMadeAgain(t *testing.T) {
	for n := 1; n <= 15; n++ {
		t.Run(fmt.Sprint("commit ", n), func(t *testing.T) {
			w := newWorld(t)
			w.programs = inGo{}
			chat := w.newChat()
			start, failed := w.store.count(), false
			w.store.before = func(at int, _ domain.Commit) error {
				if at-start == n && !failed {
					failed = true
					return domain.Errorf(domain.CodeConflict, "Conflict", "Another was faster.")
				}
				return nil
			}
			w.programRound(chat)
			if !failed {
				t.Fatal("no commit failed")
			}
			w.wantProgramEnd(chat, 2)
		})
	}
}

// Nobody rings, and the sweep alone finds all that a program needs.
func TestTheSweepAloneDrivesAProgram(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, code(together))
	for range 4 {
		w.sweepFor(15 * time.Second)
		for _, r := range w.pending() {
			w.mustAnswer(r, domain.DecisionAllow, "")
		}
	}
	w.wantStatus(turn, domain.TurnCompleted)
	w.wantResult(w.call(turn, 0), domain.CallSucceeded, "did send")
}
