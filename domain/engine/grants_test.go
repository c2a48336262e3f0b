package engine_test

import (
	"testing"
	"time"

	"openbot/domain"
)

func TestAGrantSettlesEqualRequestsAndNoOthers(t *testing.T) {
	for _, c := range []struct {
		decision, scope string
		elsewhere       domain.TurnStatus // of the same question in another Chat
		sends           int
	}{
		{domain.DecisionAllow, domain.ScopeOnce, domain.TurnWaiting, 1},
		{domain.DecisionAllow, domain.ScopeChat, domain.TurnWaiting, 2},
		{domain.DecisionAllow, domain.ScopeLifetime, domain.TurnCompleted, 3},
		{domain.DecisionDeny, domain.ScopeOnce, domain.TurnWaiting, 0},
		{domain.DecisionDeny, domain.ScopeChat, domain.TurnWaiting, 0},
		{domain.DecisionDeny, domain.ScopeLifetime, domain.TurnCompleted, 0},
	} {
		t.Run(c.decision+" "+c.scope, func(t *testing.T) {
			w := newWorld(t)
			here := w.say(w.newChat(), `/call mail__send {"to":"a"}`, `/call mail__send {"to":"b"}`)
			there := w.say(w.newChat(), roundScript)
			other := w.say(w.newChat(), `/call mail__list {}`)
			w.run()
			var first domain.Request
			for _, r := range w.pending() {
				if r.Turn == here && first.ID == "" {
					first = r
				}
			}
			w.mustAnswer(first, c.decision, c.scope)
			w.run()
			w.wantStatus(other, domain.TurnWaiting)
			w.wantStatus(there, c.elsewhere)
			want := domain.TurnCompleted
			if c.scope == domain.ScopeOnce {
				want = domain.TurnWaiting
			}
			v := w.wantStatus(here, want)
			if w.apps.total() != c.sends || w.apps.most() > 1 {
				t.Errorf("%d sends, want %d", w.apps.total(), c.sends)
			}
			if c.scope == domain.ScopeOnce {
				return
			}
			settled := w.request(v.Calls[1].Request)
			if settled.Decision == nil || settled.Decision.By.Tag != domain.TagGrant || settled.Decision.Decision != c.decision {
				t.Errorf("the equal Request ended as %+v", settled.Decision)
			}
			grant, err := w.store.Grant(t.Context(), settled.Decision.By.Grant)
			w.must(err)
			if grant.Scope != c.scope || grant.Request != first.ID {
				t.Errorf("the Grant is %+v", grant)
			}
			if w.sweepFor(10 * time.Second); w.apps.total() != c.sends {
				t.Error("sweeping settled something twice")
			}
			if grant, err = w.store.Grant(t.Context(), grant.ID); err != nil || grant.SettleDueAt != nil {
				t.Errorf("the Grant still settles: %+v %v", grant, err)
			}
		})
	}
}

func TestAKeptDecisionAnswersTheNextQuestion(t *testing.T) {
	for _, decision := range []string{domain.DecisionAllow, domain.DecisionDeny} {
		t.Run(decision, func(t *testing.T) {
			w := newWorld(t)
			chat := w.newChat()
			w.say(chat, roundScript)
			w.run()
			w.mustAnswer(w.onlyPending(), decision, domain.ScopeChat)
			w.run()
			again := w.say(chat, roundScript)
			w.run()
			v := w.wantStatus(again, domain.TurnCompleted)
			want := domain.CallSucceeded
			if decision == domain.DecisionDeny {
				want = domain.CallDenied
			}
			if v.Calls[0].Status != want || v.Calls[0].Decided.Step != domain.StepGrant || v.Calls[0].Decided.Grant == "" {
				t.Errorf("the call is %s by %+v", v.Calls[0].Status, v.Calls[0].Decided)
			}
			elsewhere := w.say(w.newChat(), roundScript)
			w.run()
			w.wantStatus(elsewhere, domain.TurnWaiting)
		})
	}
}

func TestAGrantThatIsRevokedMeanwhileDeniesAtTheLastLook(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, roundScript)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeLifetime)
	w.run()
	turn := w.say(chat, roundScript)
	task, _ := w.rings.next(w.clock.now())
	w.work(task)
	c := w.wantStatus(turn, domain.TurnRunning).Calls[0]
	grant, err := w.store.Grant(t.Context(), c.Decided.Grant)
	w.must(err)
	now := w.clock.now()
	grant.RevokedAt = &now
	w.must(w.store.Commit(t.Context(), domain.Commit{At: now, Rows: []domain.Row{&grant}}))
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	if w.apps.total() != 1 || v.Calls[0].Status != domain.CallDenied || v.Calls[0].Decided.Step != domain.StepGrant {
		t.Errorf("%d sends, the call is %s by %+v", w.apps.total(), v.Calls[0].Status, v.Calls[0].Decided)
	}
}

func TestASettledRequestWhoseDeadlinePassedIsDeniedInstead(t *testing.T) {
	w := newWorld(t)
	w.say(w.newChat(), `/call mail__send {"to":"a"}`)
	w.run()
	w.clock.forward(time.Hour)
	w.say(w.newChat(), `/call mail__send {"to":"b"}`)
	w.run()
	list := w.pending()
	w.clock.forward(list[1].ExpiresAt.Sub(w.clock.now()) - time.Second) // the first is late by now
	w.mustAnswer(list[1], domain.DecisionAllow, domain.ScopeLifetime)
	w.run()
	if got := w.request(list[0].ID); got.Status != domain.RequestPending {
		t.Fatalf("a Grant settled a Request whose time was up: %s", got.Status)
	}
	w.sweepFor(10 * time.Second)
	if got := w.request(list[0].ID); got.Status != domain.RequestDenied || got.Decision.By.Tag != domain.TagExpiry || w.apps.total() != 1 {
		t.Errorf("it is %s by %+v after %d sends", got.Status, got.Decision, w.apps.total())
	}
}

func TestNoGrantAnswersAnUnknownOutcome(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.apps.lose = true
	_, out := w.sending(chat, roundScript)
	w.carry(out)
	w.run()
	unknown := w.onlyPending()
	w.apps.lose = false
	w.say(w.newChat(), roundScript)
	w.run()
	for _, r := range w.pending() {
		if r.ID != unknown.ID {
			w.mustAnswer(r, domain.DecisionAllow, domain.ScopeLifetime)
		}
	}
	w.run()
	if w.onlyPending().ID != unknown.ID {
		t.Error("a Grant answered a question about an unknown outcome")
	}
	if w.apps.total() != 2 || w.apps.most() != 1 {
		t.Errorf("%d sends, one call %d times", w.apps.total(), w.apps.most())
	}
}
