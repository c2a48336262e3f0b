package engine_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// roundScript asks for one call and then says what came of it.
const roundScript = `/call mail__send {"to":"ann","openbot_reason":"she asked"}`

func TestAnApprovalRoundTakesSixCommits(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	before := w.store.count()

	turn := w.say(chat, roundScript)
	w.run()
	v := w.wantStatus(turn, domain.TurnWaiting)
	r := w.onlyPending()
	if r.Reason != "she asked" || string(r.Arguments) != `{"to":"ann"}` || r.App == nil || r.App.Connection != w.mail.ID || r.Call != v.Calls[0].ID ||
		r.Capability.Target != string(w.mail.ID)+"/send" {
		t.Errorf("the Request does not say what the call is: %+v", r)
	}
	if w.apps.total() != 0 {
		t.Fatal("the call went out before anybody decided")
	}
	w.mustAnswer(r, domain.DecisionAllow, "")
	w.run()

	v = w.wantStatus(turn, domain.TurnCompleted)
	if commits := w.store.count() - before; commits > 6 {
		t.Errorf("the round took %d commits, at most 6 are in the budget", commits)
	}
	if w.apps.total() != 1 || w.apps.args[0] != `{"to":"ann"}` {
		t.Errorf("the App got %q", w.apps.args)
	}
	c := v.Calls[0]
	if c.Status != domain.CallSucceeded || c.Decided == nil || c.Decided.Step != domain.StepDecider || c.Decided.By != domain.Person(w.me.Member.ID) || c.Decided.Request != r.ID {
		t.Errorf("the call keeps no evidence: %+v", c)
	}
	if !strings.Contains(v.Turn.Answer, "did send") {
		t.Errorf("the answer is %q", v.Turn.Answer)
	}
	chatNow, err := w.engine.Chat(t.Context(), w.me, chat)
	w.must(err)
	if chatNow.Status != domain.ChatIdle || chatNow.Turn != "" || chatNow.LastTurn != turn {
		t.Errorf("the Chat does not follow its Turn: %+v", chatNow)
	}
}

func TestADeniedCallDoesNotRunAndTheTurnGoesOn(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), roundScript)
	w.run()
	r := w.onlyPending()
	_, err := w.engine.AnswerRequest(t.Context(), w.me, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionDeny, Reason: ptr("not today")})
	w.must(err)
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	if w.apps.total() != 0 || v.Calls[0].Status != domain.CallDenied || !strings.Contains(v.Calls[0].Result, "not today") || !strings.Contains(v.Calls[0].Result, "not executed") {
		t.Errorf("the denied call is %s: %s", v.Calls[0].Status, v.Calls[0].Result)
	}
	if v.Turn.Steps != 2 {
		t.Errorf("the model must read the deny in a step of its own, took %d", v.Turn.Steps)
	}
}

func ptr[T any](v T) *T { return &v }

func TestTwoCallsOfOneStepAreAnsweredInAnyOrder(t *testing.T) {
	for name, order := range map[string][]int{"in order": {0, 1}, "the other way round": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			turn := w.say(w.newChat(), `/call mail__send {"to":"a"}`, `/call mail__list {"to":"b"}`)
			w.run()
			list := w.pending()
			if len(list) != 2 {
				t.Fatalf("%d Requests", len(list))
			}
			w.mustAnswer(list[order[0]], domain.DecisionAllow, "")
			w.run()
			v := w.wantStatus(turn, domain.TurnWaiting)
			if w.apps.total() != 1 || v.Turn.Steps != 1 || v.Turn.OpenCalls != 1 {
				t.Fatalf("after one answer: %d sends, step %d, %d open", w.apps.total(), v.Turn.Steps, v.Turn.OpenCalls)
			}
			w.mustAnswer(list[order[1]], domain.DecisionDeny, "")
			w.run()
			v = w.wantStatus(turn, domain.TurnCompleted)
			if w.apps.total() != 1 || v.Calls[order[0]].Status != domain.CallSucceeded || v.Calls[order[1]].Status != domain.CallDenied {
				t.Errorf("the calls are %s and %s", v.Calls[0].Status, v.Calls[1].Status)
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		w := newWorld(t)
		turn := w.say(w.newChat(), `/call mail__send {"to":"a"}`, `/call mail__list {"to":"b"}`)
		w.run()
		var group sync.WaitGroup
		for _, r := range w.pending() {
			group.Go(func() {
				if _, err := w.answer(r, domain.DecisionAllow, ""); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		w.run()
		w.wantStatus(turn, domain.TurnCompleted)
		if w.apps.total() != 2 || w.apps.most() != 1 {
			t.Errorf("%d sends", w.apps.total())
		}
	})
}

func TestOfFiftyAnswersAtOnceOneWins(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), roundScript)
	w.run()
	r := w.onlyPending()
	var group sync.WaitGroup
	var mu sync.Mutex
	taken, refused := map[string]int{}, 0
	for i := range 50 {
		group.Go(func() {
			decision := domain.DecisionAllow
			if i%2 == 1 {
				decision = domain.DecisionDeny
			}
			decided, err := w.answer(r, decision, "")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				taken[decided.Decision.Decision]++
			case domain.IsCode(err, domain.CodeConflict):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	// The 25 that say what was decided get the decided Request; the others a conflict.
	if len(taken) != 1 || refused != 25 {
		t.Fatalf("taken %v, refused %d", taken, refused)
	}
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	want := taken[domain.DecisionAllow] / 25
	if w.apps.total() != want || w.request(r.ID).Revision != r.Revision+1 {
		t.Errorf("%d sends, revision %d", w.apps.total(), w.request(r.ID).Revision)
	}
}

func TestTheSameAnswerAgainGivesTheDecidedRequest(t *testing.T) {
	w := newWorld(t)
	w.say(w.newChat(), roundScript)
	w.run()
	r := w.onlyPending()
	first := w.mustAnswer(r, domain.DecisionAllow, domain.ScopeChat)
	w.run()
	before := w.store.count()
	again := w.mustAnswer(r, domain.DecisionAllow, domain.ScopeChat)
	if again.Revision != first.Revision || again.Status != domain.RequestAllowed || w.store.count() != before {
		t.Errorf("the second answer changed something: %+v", again)
	}
	_, err := w.answer(r, domain.DecisionAllow, domain.ScopeOnce)
	w.wantCode(err, domain.CodeConflict)
	_, err = w.answer(r, domain.DecisionDeny, domain.ScopeChat)
	w.wantCode(err, domain.CodeConflict)
	if w.apps.total() != 1 {
		t.Errorf("%d sends", w.apps.total())
	}
}

func TestTheDeadlineIsThatOfTheClockNotOfATimer(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), roundScript)
	w.run()
	r := w.onlyPending()
	w.must(w.engine.ElapseRequest(t.Context(), r.ID))
	if w.request(r.ID).Status != domain.RequestPending {
		t.Fatal("a timer that fires early must change nothing")
	}
	w.clock.forward(r.ExpiresAt.Sub(w.clock.now()))
	_, err := w.answer(r, domain.DecisionAllow, "")
	w.wantCode(err, domain.CodeConflict) // no timer has fired yet
	if w.request(r.ID).Status != domain.RequestPending {
		t.Fatal("a late answer must change nothing")
	}
	w.sweepFor(10 * time.Second)
	v := w.wantStatus(turn, domain.TurnCompleted)
	if got := w.request(r.ID); got.Decision == nil || got.Decision.By.Tag != domain.TagExpiry {
		t.Errorf("the Request ended as %+v", got.Decision)
	}
	if w.apps.total() != 0 || !strings.HasPrefix(v.Calls[0].Result, "Not answered in time") {
		t.Errorf("%d sends, the model reads %q", w.apps.total(), v.Calls[0].Result)
	}
}

func TestAnotherMemberSeesNothing(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, roundScript)
	w.run()
	r := w.onlyPending()
	other, err := w.engine.CreateMember(t.Context(), w.me, engine.MemberFields{Name: ptr("Eve")})
	w.must(err)
	_, secret, err := w.engine.CreateToken(t.Context(), w.me, engine.NewToken{Member: other.ID, Name: "eve", Scopes: domain.Permissions{"write", "*"}})
	w.must(err)
	eve, err := w.engine.Authenticate(t.Context(), secret)
	w.must(err)
	_, err = w.engine.AnswerRequest(t.Context(), eve, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow})
	w.wantCode(err, domain.CodeNotFound)
	_, err = w.engine.Request(t.Context(), eve, r.ID)
	w.wantCode(err, domain.CodeNotFound)
	_, err = w.engine.Turn(t.Context(), eve, turn)
	w.wantCode(err, domain.CodeNotFound)
	_, err = w.engine.PostMessage(t.Context(), eve, chat, "hello")
	w.wantCode(err, domain.CodeNotFound)
	_, err = w.engine.Interrupt(t.Context(), eve, chat, false)
	w.wantCode(err, domain.CodeNotFound)
	w.wantCode(w.engine.DeleteChat(t.Context(), eve, chat), domain.CodeNotFound)
	_, err = w.engine.Connection(t.Context(), eve, w.mail.ID)
	w.wantCode(err, domain.CodeNotFound)
	list, err := w.engine.Requests(t.Context(), eve, domain.RequestFilter{}, domain.Page{Limit: 10})
	w.must(err)
	if len(list) != 0 || w.request(r.ID).Status != domain.RequestPending {
		t.Errorf("Eve sees %d Requests", len(list))
	}
	_, err = w.engine.CreateBot(t.Context(), eve, engine.BotFields{Name: ptr("x"), Owner: &w.me.Member.MainBot})
	w.wantCode(err, domain.CodeInvalid)
}
