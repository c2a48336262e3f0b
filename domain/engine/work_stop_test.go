package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

func TestABotStopsWorkThatItGave(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(nil, "/call openbot_list_bots", "/then", `/call mail__send {"n":1}`))
	w.run()
	g := w.onlyGiven(chat)
	turns := len(w.turns(chat))
	turn := w.say(chat, fmt.Sprintf(`/call openbot_cancel_delegation {"delegation":%q,"reason":"not needed"}`, g.ID))
	w.run()
	if c := w.view(turn).Calls[0]; c.Status != domain.CallSucceeded {
		t.Fatalf("the call is %s: %s", c.Status, c.Result)
	}
	g = w.wantWork(g.ID, domain.DelegationCancelled)
	if !strings.Contains(g.Result, "not needed") || len(w.pending()) != 0 {
		t.Errorf("the result is %q and %d Requests wait", g.Result, len(w.pending()))
	}
	if got := len(w.turns(chat)); got != turns+1 {
		t.Errorf("the giver has %d new Turns, want its own alone: it gets no notice", got-turns)
	}
	w.wantText(g.Chat, "tool_result: ") // what was found stays readable
	for id, why := range map[domain.DelegationID]string{g.ID: "cancelled already", "dlg_x": "there is no work", domain.DelegationID("dlg_" + strings.Repeat("0", 32)): "there is no work"} {
		turn := w.say(chat, fmt.Sprintf(`/call openbot_cancel_delegation {"delegation":%q}`, id))
		w.run()
		if c := w.view(turn).Calls[0]; c.Status != domain.CallFailed || !strings.Contains(c.Result, why) {
			t.Errorf("cancelling %s gives %s: %s", id, c.Status, c.Result)
		}
	}
	foreign := w.newChat()
	turn = w.say(foreign, fmt.Sprintf(`/call openbot_cancel_delegation {"delegation":%q}`, g.ID))
	w.run()
	if c := w.view(turn).Calls[0]; !strings.Contains(c.Result, "there is no work") {
		t.Errorf("another Chat's work: %s", c.Result)
	}
}

func (w *world) turns(chat domain.ChatID) []engine.TurnView {
	w.t.Helper()
	list, err := w.engine.Turns(w.t.Context(), w.me, chat, domain.Page{Limit: 200})
	w.must(err)
	return list
}

// tree makes a Chat whose work gave work, which waits for a Request.
func (w *world) tree() (chat domain.ChatID, top, below domain.Delegation) {
	w.t.Helper()
	chat = w.newChat()
	w.say(chat, delegate(nil, delegate(nil, `/call mail__send {"n":1}`), "/then", "/say I wait"))
	w.run()
	top = w.onlyGiven(chat)
	return chat, top, w.onlyGiven(top.Chat)
}

func TestAnInterruptStopsTheTurnAndWithDelegationsTheWork(t *testing.T) {
	w := newWorld(t)
	chat, top, below := w.tree()
	w.interrupt(chat)
	w.run()
	w.wantWork(top.ID, domain.DelegationRunning)
	before := len(w.turns(chat))
	_, err := w.engine.Interrupt(t.Context(), w.me, chat, true)
	w.must(err)
	w.sweepFor(6 * time.Second)
	w.run()
	w.wantWork(top.ID, domain.DelegationCancelled)
	w.wantWork(below.ID, domain.DelegationCancelled)
	if got := len(w.turns(chat)); got != before || len(w.pending()) != 0 {
		t.Errorf("the interrupted Chat started %d Turns, %d Requests wait", got-before, len(w.pending()))
	}
	w.wantText(chat, "was stopped. It is not done.")
}

func TestADeletedChatStopsItsWork(t *testing.T) {
	w := newWorld(t)
	chat, top, below := w.tree()
	w.must(w.engine.DeleteChat(t.Context(), w.me, chat))
	w.sweepFor(6 * time.Second)
	w.run()
	w.wantWork(top.ID, domain.DelegationCancelled)
	w.wantWork(below.ID, domain.DelegationCancelled)
}

func TestADeletedTaskChatEndsItsWork(t *testing.T) {
	w := newWorld(t)
	chat, top, below := w.tree()
	w.must(w.engine.DeleteChat(t.Context(), w.me, top.Chat))
	w.sweepFor(6 * time.Second)
	w.run()
	w.wantWork(top.ID, domain.DelegationCancelled)
	w.wantWork(below.ID, domain.DelegationCancelled)
	w.wantText(chat, "was stopped. It is not done.")
}

func TestACancelClosesTheQuestionWhetherWorkMayStart(t *testing.T) {
	w := newWorld(t)
	other := w.sharedBot("Programmer")
	chat := w.newChat()
	w.say(chat, delegate(map[string]any{"bot": other.ID, "reason": "it can"}, "/say done"))
	w.run()
	g, r := w.onlyGiven(chat), w.onlyPending()
	_, err := w.engine.CancelDelegation(t.Context(), w.me, g.ID, "k")
	w.must(err)
	w.run()
	w.wantWork(g.ID, domain.DelegationCancelled)
	if got := w.request(r.ID); got.Status != domain.RequestCancelled {
		t.Errorf("the Request is %s", got.Status)
	}
	if _, err := w.answer(r, domain.DecisionAllow, domain.ScopeOnce); domain.CodeOf(err) != domain.CodeConflict {
		t.Errorf("an answer afterwards gave %v", err)
	}
}

// A cancel that comes between the decision whether work may start and its start is not
// undone by it: the work ends as cancelled, not as one that was not allowed.
func TestACancelBesideTheDecisionToGiveWorkIsKept(t *testing.T) {
	for name, acts := range map[string]func(w *world, g domain.DelegationID, r domain.Request){
		"allowed, then cancelled": func(w *world, g domain.DelegationID, r domain.Request) {
			w.mustAnswer(r, domain.DecisionAllow, "")
			_, err := w.engine.CancelDelegation(t.Context(), w.me, g, "k")
			w.must(err)
		},
		"cancelled, then denied": func(w *world, g domain.DelegationID, r domain.Request) {
			_, err := w.engine.CancelDelegation(t.Context(), w.me, g, "k")
			w.must(err)
			w.mustAnswer(r, domain.DecisionDeny, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			other := w.sharedBot("Programmer")
			chat := w.newChat()
			w.say(chat, delegate(map[string]any{"bot": other.ID, "reason": "it can"}, "/say done"))
			w.run()
			g := w.onlyGiven(chat)
			acts(w, g.ID, w.onlyPending())
			w.run()
			w.sweepFor(30 * time.Second)
			w.wantWork(g.ID, domain.DelegationCancelled)
			w.wantText(chat, "was stopped. It is not done.")
		})
	}
}

func TestWorkIsCancellingUntilItsCallIsBack(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(nil, `/call mail__send {"n":1}`, "/then", "/say used it"))
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	sending := w.take()
	g := w.onlyGiven(chat)
	_, err := w.engine.CancelDelegation(t.Context(), w.me, g.ID, "k")
	w.must(err)
	w.run()
	if now := w.work1(g.ID).Delegation; !now.Open() || now.ExecutionStatus(false) != "cancelling" {
		t.Fatalf("the work is %s (%s) while its call is out", now.Status, now.ExecutionStatus(false))
	}
	w.carry(sending)
	w.run()
	g = w.wantWork(g.ID, domain.DelegationCancelled)
	if c := w.turns(g.Chat)[0].Calls[0]; c.Status != domain.CallSucceeded {
		t.Errorf("the result that came is lost: %s", c.Status)
	}
	w.wantText(chat, "was stopped. It is not done.")
}

func TestCancelledWorkWaitsForTheWordOnAnUnknownOutcome(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(nil, `/call mail__send {"n":1}`, "/then", "/say used it"))
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.take()
	g := w.onlyGiven(chat)
	_, err := w.engine.CancelDelegation(t.Context(), w.me, g.ID, "k")
	w.must(err)
	w.sweepFor(30 * time.Second)
	r := w.onlyPending()
	if r.Unknown == nil {
		t.Fatalf("the Request is %+v", r)
	}
	if now := w.work1(g.ID).Delegation; !now.Open() {
		t.Fatalf("the work is %s", now.Status)
	}
	if _, err := w.answer(r, domain.DecisionAllow, domain.ScopeOnce); domain.CodeOf(err) != domain.CodeConflict {
		t.Errorf("sending again for stopped work gave %v", err)
	}
	w.mustAnswer(r, domain.DecisionDeny, domain.ScopeOnce)
	w.run()
	w.wantWork(g.ID, domain.DelegationCancelled)
}

func TestWorkThatStartsWhileTheWorkAboveIsStoppedNeverRuns(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(nil, delegate(nil, "/say escaped"), "/then", "/say I wait"))
	stopped := false
	w.store.before = func(_ int, c domain.Commit) error {
		for _, row := range c.Rows {
			g, ok := row.(*domain.Delegation)
			if !ok || g.Above == "" || g.Version > 0 || stopped {
				continue
			}
			stopped = true
			w.store.before = nil
			top := w.onlyGiven(chat)
			// Another process: in this one the step would be waited for.
			other := engine.New(engine.Options{Store: w.store, Ringer: w.rings, Live: silence{}, Models: w.models, Sealer: sealed{}, Clock: w.clock.now})
			_, err := other.CancelDelegation(t.Context(), w.me, top.ID, "k")
			w.must(err)
		}
		return nil
	}
	w.run()
	if !stopped {
		t.Fatal("the work above was never stopped")
	}
	top := w.wantWork(w.onlyGiven(chat).ID, domain.DelegationCancelled)
	if below := w.given(top.Chat); len(below) != 0 {
		t.Errorf("work below was made: %s", below[0].Delegation.Status)
	}
}

func TestAGrantForALimitLetsTheSameWorkGoOn(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	steps := strings.TrimSuffix(strings.Repeat("/call openbot_list_bots\n/then\n", 6), "\n")
	w.say(chat, delegate(limited(map[string]any{"timeMs": 20_000, "steps": 2}), steps, `/call mail__send {"n":1}`, "/then", "/say done"))
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeChat)
	w.run()
	g := w.onlyGiven(chat)
	r := w.onlyPending()
	if r.Capability.Action != domain.ActionAppsCall || g.Steps != 7 {
		t.Fatalf("after %d steps %s is asked", g.Steps, r.Capability)
	}
	told := 0
	events, err := w.store.ChatEvents(t.Context(), g.Chat, 0, 1000)
	w.must(err)
	for _, ev := range events {
		if ev.Kind == domain.EventDelegation && strings.Contains(string(ev.Data), `"continued":"steps"`) {
			told++
		}
	}
	if told != 2 {
		t.Errorf("%d events say that a Grant let the work go on, want 2", told)
	}
	// The Grant is for the limit of steps: that of time asks.
	w.clock.forward(20 * time.Second)
	w.run()
	w.wantWork(g.ID, domain.DelegationPaused)
	if !slices.ContainsFunc(w.pending(), func(r domain.Request) bool { return r.Limit == domain.LimitTime }) {
		t.Error("the limit of time asks nobody")
	}
}

func TestABudgetCountsAllWorkBelow(t *testing.T) {
	w := newWorld(t)
	w.price(1) // a micro-USD for each word
	chat := w.newChat()
	inner := delegate(nil, "/call openbot_list_bots", "/then", "/call openbot_list_bots", "/then", "/call openbot_list_bots", "/then", "/say below")
	w.say(chat, delegate(limited(map[string]any{"timeMs": 60_000, "budgetMicros": 150}), inner, "/then", "/say I wait"))
	w.run()
	top := w.wantWork(w.onlyGiven(chat).ID, domain.DelegationPaused)
	if top.Pause.Limit != domain.LimitBudget {
		t.Fatalf("the limit is %s", top.Pause.Limit)
	}
	for range 20 {
		if len(w.pending()) == 0 {
			break
		}
		w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
		w.run()
	}
	top = w.wantWork(top.ID, domain.DelegationCompleted)
	below := w.wantWork(w.onlyGiven(top.Chat).ID, domain.DelegationCompleted)
	var own, all int64
	for _, v := range w.turns(top.Chat) {
		own += v.Turn.CostNanos
	}
	for _, v := range w.turns(below.Chat) {
		all += v.Turn.CostNanos
	}
	if below.CostNanos != all || top.CostNanos != own+all || all == 0 {
		t.Errorf("the cost is %d above and %d below, want %d and %d", top.CostNanos, below.CostNanos, own+all, all)
	}
}

// price makes the playbook cost something for each word that it reads or says, in
// micro-USD.
func (w *world) price(micros float64) {
	w.t.Helper()
	org, err := w.store.Organization(w.t.Context(), w.me.Organization)
	w.must(err)
	org.Settings.ModelPrices = map[string]domain.SettingPrice{"playbook": {InputMicrosPerToken: micros, OutputMicrosPerToken: micros}}
	w.must(w.store.Commit(w.t.Context(), domain.Commit{At: w.clock.now(), Rows: []domain.Row{&org}}))
}

func TestTheOwnerBotDecidesWhetherWorkGoesOn(t *testing.T) {
	w := newWorld(t)
	instructions := "/decide allow once look at the second file"
	_, err := w.engine.ChangeBot(t.Context(), w.me, w.me.Member.MainBot, engine.BotFields{Instructions: &instructions})
	w.must(err)
	owned := w.madeBot(engine.BotFields{}, "Programmer")
	chat := w.newChat()
	w.say(chat, delegate(map[string]any{"bot": owned.ID, "limits": map[string]any{"timeMs": 60_000, "steps": 1}}, "/call openbot_list_bots", "/then", "/say done"))
	w.run()
	if len(w.pending()) != 0 {
		t.Fatal("the person is asked")
	}
	g := w.wantWork(w.onlyGiven(chat).ID, domain.DelegationCompleted)
	w.wantText(g.Chat, "message: look at the second file")
}

func TestPolicyThatForbidsGoingOnStopsTheWork(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.sayAs(w.narrowed("write", "bots.*:*"), chat, delegate(limited(map[string]any{"timeMs": 60_000, "steps": 1}), "/call openbot_list_bots", "/then", "/say done"))
	w.run()
	g := w.wantWork(w.onlyGiven(chat).ID, domain.DelegationCancelled)
	if len(w.pending()) != 0 || !strings.Contains(g.Result, "limit of steps") {
		t.Errorf("the result is %q", g.Result)
	}
}

func TestALateNoticeOnlyAddsToTheHistory(t *testing.T) {
	w := newWorld(t)
	_, top, below := w.tree()
	_, err := w.engine.CancelDelegation(t.Context(), w.me, top.ID, "k")
	w.must(err)
	w.run()
	turns := len(w.turns(top.Chat))
	posted, err := w.engine.PostMessage(t.Context(), w.me, below.Chat, "/say after all")
	w.must(err)
	w.run()
	w.wantWork(posted.Delegation, domain.DelegationCompleted)
	w.wantText(top.Chat, "Result:\nafter all")
	if got := len(w.turns(top.Chat)); got != turns {
		t.Errorf("the notice started %d Turns in the Chat of ended work", got-turns)
	}
	w.wantWork(top.ID, domain.DelegationCancelled)
}

func TestANewRoundWaitsForOpenPausedWorkAbove(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 10_000}), delegate(nil, "/say first"), "/then", `/call mail__send {"n":1}`))
	w.run()
	top := w.onlyGiven(chat)
	below := w.wantWork(w.onlyGiven(top.Chat).ID, domain.DelegationCompleted)
	w.clock.forward(10 * time.Second)
	w.run()
	w.wantWork(top.ID, domain.DelegationPaused)
	posted, err := w.engine.PostMessage(t.Context(), w.me, below.Chat, "/say second")
	w.must(err)
	w.run()
	round := w.work1(posted.Delegation)
	if held := domain.HeldBy(append([]domain.Delegation{round.Delegation}, round.Above...)); held.Paused != top.ID || round.Delegation.Steps != 0 {
		t.Errorf("the round took %d steps and is held by %+v", round.Delegation.Steps, held)
	}
	i := slices.IndexFunc(w.pending(), func(r domain.Request) bool { return r.Limit != "" })
	w.mustAnswer(w.pending()[i], domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	w.wantWork(posted.Delegation, domain.DelegationCompleted)
}

func TestStopsAndPausesSurviveLostRings(t *testing.T) {
	w := newWorld(t)
	chat, top, below := w.tree()
	_, err := w.engine.CancelDelegation(t.Context(), w.me, top.ID, "k")
	w.must(err)
	w.sweepFor(30 * time.Second)
	w.wantWork(top.ID, domain.DelegationCancelled)
	w.wantWork(below.ID, domain.DelegationCancelled)
	w.say(chat, delegate(limited(map[string]any{"timeMs": 10_000, "steps": 1}), "/call openbot_list_bots", "/then", "/say done"))
	w.sweepFor(20 * time.Second)
	g := w.given(chat)[1].Delegation
	w.wantWork(g.ID, domain.DelegationPaused)
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.sweepFor(30 * time.Second)
	w.wantWork(g.ID, domain.DelegationCompleted)
	w.wantText(chat, "Result:\ndone")
}
