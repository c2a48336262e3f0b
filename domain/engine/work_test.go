package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// delegate writes the directive that gives a task, whose own directives stand in it.
func delegate(fields map[string]any, task ...string) string {
	all := map[string]any{"task": strings.Join(task, "\n"), "limits": map[string]any{"timeMs": 60_000}}
	for key, value := range fields {
		all[key] = value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return "/call openbot_delegate " + string(raw)
}

// given lists the work that a Chat gave away, oldest first.
func (w *world) given(chat domain.ChatID) []domain.DelegationView {
	w.t.Helper()
	views, err := w.engine.Delegations(w.t.Context(), w.me, chat, domain.Page{Limit: 200})
	w.must(err)
	for i, j := 0, len(views)-1; i < j; i, j = i+1, j-1 {
		views[i], views[j] = views[j], views[i]
	}
	return views
}

func (w *world) onlyGiven(chat domain.ChatID) domain.Delegation {
	w.t.Helper()
	views := w.given(chat)
	if len(views) != 1 {
		w.t.Fatalf("the Chat gave %d pieces of work, want one", len(views))
	}
	return views[0].Delegation
}

// history gives what stands in a Chat's history, each with its kind.
func (w *world) history(chat domain.ChatID) []string {
	w.t.Helper()
	items, err := w.store.Items(w.t.Context(), chat, 0, 10_000)
	w.must(err)
	var out []string
	for _, i := range items {
		out = append(out, fmt.Sprintf("%s: %s", i.Kind, i.Text))
	}
	return out
}

func (w *world) wantText(chat domain.ChatID, part string) {
	w.t.Helper()
	for _, text := range w.history(chat) {
		if strings.Contains(text, part) {
			return
		}
	}
	w.t.Fatalf("nothing in the Chat says %q:\n%s", part, strings.Join(w.history(chat), "\n"))
}

func TestWorkForTheBotItselfComesBackAsANotice(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, delegate(nil, "/say found it"), "/then", "/say I gave it away")
	w.run()
	if v := w.wantStatus(turn, domain.TurnCompleted); v.Turn.Answer != "I gave it away" {
		t.Errorf("the giver answered %q", v.Turn.Answer)
	}
	g := w.onlyGiven(chat)
	if g.Status != domain.DelegationCompleted || g.Result != "found it" || g.Steps != 1 || g.LastEvent == 0 {
		t.Errorf("the work is %+v", g)
	}
	w.wantText(chat, "[OpenBot] The work "+string(g.ID)+" that you gave to")
	w.wantText(g.Chat, "gives you this task:\n/say found it")
	task, err := w.engine.Chat(t.Context(), w.me, g.Chat)
	w.must(err)
	if task.Kind != domain.ChatTask || task.Parent.Chat != chat || task.Parent.Delegation != g.ID || task.Status != domain.ChatIdle {
		t.Errorf("the task Chat is %+v", task)
	}
	turns, err := w.engine.Turns(t.Context(), w.me, chat, domain.Page{Limit: 10})
	w.must(err)
	if len(turns) != 2 {
		t.Errorf("the giving Chat has %d Turns, want the notice to start a second", len(turns))
	}
}

func TestWorkOverItsStepsPausesAndGoesOnWithAFreshWindow(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(map[string]any{"limits": map[string]any{"timeMs": 600_000, "steps": 2}},
		"/call openbot_list_bots", "/then", "/call openbot_list_bots", "/then", "/call openbot_list_bots", "/then", "/call openbot_list_bots", "/then", "/say done"))
	w.run()
	for round := 1; round <= 2; round++ {
		g := w.onlyGiven(chat)
		if g.Status != domain.DelegationPaused || g.Steps != int64(2*round) || g.Pause.Limit != domain.LimitSteps {
			t.Fatalf("after %d rounds the work is %s with %d steps", round, g.Status, g.Steps)
		}
		r := w.onlyPending()
		if r.Capability.Action != domain.ActionDelegationsContinue || r.Capability.Target != string(g.ID) || r.Limit != domain.LimitSteps {
			t.Fatalf("the Request is %+v", r)
		}
		reason := fmt.Sprintf("/say go on %d", round)
		_, err := w.engine.AnswerRequest(t.Context(), w.me, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow, Reason: &reason})
		w.must(err)
		w.run()
		w.wantText(g.Chat, "message: "+reason)
	}
	g := w.onlyGiven(chat)
	if g.Status != domain.DelegationCompleted || g.Result != "done" || g.Steps != 5 {
		t.Errorf("the work is %s: %q after %d steps", g.Status, g.Result, g.Steps)
	}
}

func TestWorkThatIsNotLetGoOnIsCancelled(t *testing.T) {
	for _, decision := range []string{domain.DecisionDeny, domain.DecisionAsk, "expire"} {
		t.Run(decision, func(t *testing.T) {
			w := newWorld(t)
			chat := w.newChat()
			w.say(chat, delegate(map[string]any{"limits": map[string]any{"timeMs": 600_000, "steps": 1}}, "/call openbot_list_bots", "/then", "/say done"))
			w.run()
			r := w.onlyPending()
			if decision == "expire" {
				w.clock.forward(25 * time.Hour)
				w.sweepFor(30 * time.Second)
			} else {
				reason := "why so long?"
				_, err := w.engine.AnswerRequest(t.Context(), w.me, r.ID, engine.Answer{Expected: r.Revision, Decision: decision, Reason: &reason})
				w.must(err)
				w.run()
				w.wantText(chat, reason)
			}
			g := w.onlyGiven(chat)
			if g.Status != domain.DelegationCancelled {
				t.Fatalf("the work is %s", g.Status)
			}
			w.wantText(chat, "was stopped. It is not done.")
		})
	}
}

func TestWorkOverItsTimePausesWhileNoStepRuns(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(map[string]any{"limits": map[string]any{"timeMs": 10_000}}, `/call mail__send {"n":1}`, "/then", "/say sent"))
	w.run()
	call := w.onlyPending()
	w.clock.forward(9 * time.Second)
	w.run()
	if g := w.onlyGiven(chat); g.Status != domain.DelegationRunning {
		t.Fatalf("after nine seconds the work is %s", g.Status)
	}
	w.clock.forward(time.Second)
	w.run()
	g := w.onlyGiven(chat)
	if g.Status != domain.DelegationPaused || g.Pause.Limit != domain.LimitTime {
		t.Fatalf("after ten seconds the work is %s", g.Status)
	}
	// The Request of the paused work is answered; its call goes out after the pause.
	w.mustAnswer(call, domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	if w.apps.total() != 0 {
		t.Fatal("a call went out while the work was paused")
	}
	w.clock.forward(time.Hour)
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	g = w.onlyGiven(chat)
	if g.Status != domain.DelegationCompleted || w.apps.total() != 1 {
		t.Fatalf("the work is %s and %d calls went out", g.Status, w.apps.total())
	}
	if used := domain.UsedTime([]domain.Delegation{g}, w.clock.now()); used != 10*time.Second {
		t.Errorf("the work ran %s, want 10s without its pause", used)
	}
}

func TestCancelStopsAllWorkBelow(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	inner := delegate(nil, `/call mail__send {"n":1}`)
	w.say(chat, delegate(nil, inner, "/then", "/say waiting"))
	w.run()
	top := w.onlyGiven(chat)
	below := w.onlyGiven(top.Chat)
	if top.Status != domain.DelegationRunning || below.Status != domain.DelegationRunning || len(w.pending()) != 1 {
		t.Fatalf("the work is %s, that below %s", top.Status, below.Status)
	}
	receipt, err := w.engine.CancelDelegation(t.Context(), w.me, top.ID, "stop-1")
	w.must(err)
	if receipt.Execution != top.Execution {
		t.Errorf("the receipt is %+v", receipt)
	}
	// What waits below is closed a little later, but from now on nobody allows it.
	_, err = w.answer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.wantCode(err, domain.CodeConflict)
	w.run()
	for _, id := range []domain.DelegationID{top.ID, below.ID} {
		v, err := w.engine.Delegation(t.Context(), w.me, id)
		w.must(err)
		if v.Delegation.Status != domain.DelegationCancelled {
			t.Errorf("%s is %s", id, v.Delegation.Status)
		}
	}
	if len(w.pending()) != 0 {
		t.Error("a Request of cancelled work waits")
	}
	w.wantText(chat, "was stopped. It is not done.")
	if _, err := w.engine.CancelDelegation(t.Context(), w.me, top.ID, "stop-2"); domain.CodeOf(err) != domain.CodeConflict {
		t.Errorf("a cancel of ended work gave %v", err)
	}
}

func TestWorkForAnotherBotWaitsForADecision(t *testing.T) {
	w := newWorld(t)
	name := "Programmer"
	shared := true
	bot, err := w.engine.CreateBot(t.Context(), w.me, engine.BotFields{Name: &name, Shared: &shared})
	w.must(err)
	chat := w.newChat()
	give := func() domain.Request {
		w.say(chat, delegate(map[string]any{"bot": bot.ID, "reason": "it writes the code"}, "/say written"))
		w.run()
		return w.onlyPending()
	}
	r := give()
	if r.Capability != (domain.Capability{Action: domain.ActionBotsDelegate, Target: string(bot.ID)}) || r.Reason != "it writes the code" {
		t.Fatalf("the Request is %+v", r)
	}
	if g := w.onlyGiven(chat); g.Status != domain.DelegationAuthorizing || g.ID != r.Delegation {
		t.Fatalf("the work is %s", g.Status)
	}
	w.interrupt(chat) // the Request belongs to the work, not to the Turn
	w.mustAnswer(r, domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	if g := w.onlyGiven(chat); g.Status != domain.DelegationCompleted || g.Result != "written" {
		t.Fatalf("the work is %s: %s", g.Status, g.Result)
	}
	r = give()
	w.mustAnswer(r, domain.DecisionDeny, domain.ScopeOnce)
	w.run()
	if g := w.given(chat)[1].Delegation; g.Status != domain.DelegationFailed || g.StartedAt != nil {
		t.Fatalf("the work is %s", g.Status)
	}
	w.wantText(chat, "was not allowed")
}
