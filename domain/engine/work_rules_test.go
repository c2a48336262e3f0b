package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

func (w *world) madeBot(fields engine.BotFields, name string) domain.Bot {
	w.t.Helper()
	fields.Name = &name
	bot, err := w.engine.CreateBot(w.t.Context(), w.me, fields)
	w.must(err)
	return bot
}

func (w *world) sharedBot(name string) domain.Bot {
	w.t.Helper()
	shared := true
	return w.madeBot(engine.BotFields{Shared: &shared}, name)
}

func (w *world) work1(id domain.DelegationID) domain.DelegationView {
	w.t.Helper()
	v, err := w.engine.Delegation(w.t.Context(), w.me, id)
	w.must(err)
	return v
}

func (w *world) wantWork(id domain.DelegationID, status domain.DelegationStatus) domain.Delegation {
	w.t.Helper()
	g := w.work1(id).Delegation
	if g.Status != status {
		w.t.Fatalf("the work is %s (%s), want %s", g.Status, g.Result, status)
	}
	return g
}

func limited(limits map[string]any) map[string]any { return map[string]any{"limits": limits} }

// wantRefused says that a call of openbot_delegate is a tool error that says why, and
// that nothing was created.
func (w *world) wantRefused(arguments string, why string) {
	w.t.Helper()
	chat := w.newChat()
	turn := w.say(chat, "/call openbot_delegate "+arguments)
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	if c := v.Calls[0]; c.Status != domain.CallFailed || !strings.Contains(c.Result, why) {
		w.t.Errorf("%s: the call is %s: %s; want it to say %q", arguments, c.Status, c.Result, why)
	}
	if len(w.given(chat)) != 0 || len(w.pending()) != 0 {
		w.t.Errorf("%s: something was created", arguments)
	}
}

func TestDelegateRefusesWhatDoesNotFit(t *testing.T) {
	w := newWorld(t)
	archived := w.madeBot(engine.BotFields{}, "Old")
	w.must(w.engine.ArchiveBot(t.Context(), w.me, archived.ID))
	other := w.sharedBot("Other")
	helper := domain.BotID("bot_" + strings.Repeat("0", 32))
	long, err := json.Marshal(strings.Repeat("x", domain.MaxTask+1))
	w.must(err)
	for arguments, why := range map[string]string{
		`{"limits":{"timeMs":1000}}`:                                                            "task",
		`{"task":"x"}`:                                                                          "limits",
		`{"task":"  ","limits":{"timeMs":1000}}`:                                                "task must not be empty",
		`{"task":"x","limits":{}}`:                                                              "timeMs",
		`{"task":"x","limits":{"timeMs":999}}`:                                                  "timeMs",
		`{"task":"x","limits":{"timeMs":2592000001}}`:                                           "timeMs",
		`{"task":"x","limits":{"timeMs":1000,"steps":0}}`:                                       "steps",
		`{"task":"x","limits":{"timeMs":1000,"steps":-1}}`:                                      "steps",
		`{"task":"x","limits":{"timeMs":1000,"steps":1.5}}`:                                     "steps",
		`{"task":"x","limits":{"timeMs":1000,"budgetMicros":0}}`:                                "budgetMicros",
		`{"task":"x","limits":{"timeMs":1000,"dollars":1}}`:                                     "dollars",
		`{"task":"x","limits":{"timeMs":"1000"}}`:                                               "timeMs",
		`{"task":` + string(long) + `,"limits":{"timeMs":1000}}`:                                "",
		fmt.Sprintf(`{"task":"x","limits":{"timeMs":1000},"bot":%q,"reason":"y"}`, helper):      "there is no Bot",
		fmt.Sprintf(`{"task":"x","limits":{"timeMs":1000},"bot":%q,"reason":"y"}`, archived.ID): "is archived",
		`{"task":"x","limits":{"timeMs":1000},"bot":"you","reason":"y"}`:                        "there is no Bot",
		fmt.Sprintf(`{"task":"x","limits":{"timeMs":1000},"bot":%q}`, other.ID):                 "reason is required",
		fmt.Sprintf(`{"task":"x","limits":{"timeMs":1000},"bot":%q,"reason":" "}`, other.ID):    "reason is required",
		`{"task":"x","limits":{"timeMs":1000},"delegation":"dlg_1"}`:                            "there is no work",
	} {
		w.wantRefused(arguments, why)
	}
}

func TestOnlyWorkOfTheSameChatTakesOneMoreTask(t *testing.T) {
	w := newWorld(t)
	first := w.newChat()
	w.say(first, delegate(nil, "/say one"))
	w.run()
	g := w.onlyGiven(first)
	w.wantRefused(fmt.Sprintf(`{"task":"x","limits":{"timeMs":1000},"delegation":%q}`, g.ID), "there is no work")
}

func TestWorkForABotThatItOwnsNeedsNoDecision(t *testing.T) {
	w := newWorld(t)
	owned := w.madeBot(engine.BotFields{}, "Programmer") // owned by the Main Bot
	chat := w.newChat()
	turn := w.say(chat, delegate(map[string]any{"bot": owned.ID}, "/say by the owned one"))
	w.run()
	g := w.onlyGiven(chat)
	if g.Status != domain.DelegationCompleted || g.Bot != owned.ID {
		t.Fatalf("the work is %s for %s", g.Status, g.Bot)
	}
	c := w.view(turn).Calls[0]
	var out struct{ Delegation, Status, Note string }
	w.must(json.Unmarshal([]byte(c.Result), &out))
	if out.Delegation != string(g.ID) || out.Status != "queued" || out.Note == "" {
		t.Errorf("the tool gave %s", c.Result)
	}
	if c.Decided == nil || c.Decided.Step != domain.StepExemption {
		t.Errorf("the call was decided by %+v", c.Decided)
	}
}

func TestAKeptDecisionLetsTheSecondTimeStartAtOnce(t *testing.T) {
	w := newWorld(t)
	other := w.sharedBot("Programmer")
	chat := w.newChat()
	give := delegate(map[string]any{"bot": other.ID, "reason": "it can"}, "/say done")
	w.say(chat, give)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeLifetime)
	w.run()
	w.say(chat, give)
	w.run()
	if len(w.pending()) != 0 {
		t.Fatal("the second time asks again")
	}
	for _, v := range w.given(chat) {
		if v.Delegation.Status != domain.DelegationCompleted {
			t.Errorf("the work is %s", v.Delegation.Status)
		}
	}
}

func TestPolicyDeniesGivingWorkAtOnce(t *testing.T) {
	w := newWorld(t)
	other := w.sharedBot("Programmer")
	chat := w.newChat()
	turn := w.sayAs(w.narrowed("write", "apps.call:*"), chat, delegate(map[string]any{"bot": other.ID, "reason": "it can"}, "/say done"))
	w.run()
	if c := w.view(turn).Calls[0]; c.Status != domain.CallDenied || len(w.given(chat)) != 0 || len(w.pending()) != 0 {
		t.Errorf("the call is %s and %d pieces of work were made", c.Status, len(w.given(chat)))
	}
}

// narrowed is the same Member by a token of these scopes.
func (w *world) narrowed(scopes ...string) domain.Principal {
	w.t.Helper()
	made, secret, err := w.engine.CreateToken(w.t.Context(), w.me, engine.NewToken{Name: "narrow", Scopes: scopes})
	w.must(err)
	p, err := w.engine.Authenticate(w.t.Context(), secret)
	w.must(err)
	if p.Token.ID != made.ID {
		w.t.Fatal("the secret is another token's")
	}
	return p
}

func (w *world) sayAs(p domain.Principal, chat domain.ChatID, lines ...string) domain.TurnID {
	w.t.Helper()
	posted, err := w.engine.PostMessage(w.t.Context(), p, chat, strings.Join(lines, "\n"))
	w.must(err)
	return posted.Turn
}

func TestTheRightsOfThePersonGoOnBelow(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.sayAs(w.narrowed("write", "bots.delegate:*"), chat, delegate(nil, `/call mail__send {"n":1}`))
	w.run()
	g := w.onlyGiven(chat)
	turns, err := w.engine.Turns(t.Context(), w.me, g.Chat, domain.Page{Limit: 5})
	w.must(err)
	if c := turns[0].Calls[0]; c.Status != domain.CallDenied || c.Decided.Step != domain.StepPolicy {
		t.Errorf("work of a token that may call no App: its call is %s", c.Status)
	}
}

func TestACycleOfBotsEnds(t *testing.T) {
	w := newWorld(t)
	b := w.madeBot(engine.BotFields{}, "B") // A owns B
	chat := w.newChat()
	inner := delegate(map[string]any{"bot": w.me.Member.MainBot, "reason": "back to you"}, "/say back at A")
	outer := delegate(map[string]any{"bot": b.ID}, inner)
	w.say(chat, outer)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce) // B does not own A
	w.run()
	top := w.onlyGiven(chat)
	below := w.onlyGiven(top.Chat)
	if top.Status != domain.DelegationCompleted || below.Status != domain.DelegationCompleted || below.Bot != w.me.Member.MainBot {
		t.Errorf("A gave B work that is %s, B gave A work that is %s", top.Status, below.Status)
	}
}

func TestARunningWorkTakesOneMoreTask(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(nil, `/call mail__send {"n":1}`))
	w.run()
	g := w.onlyGiven(chat)
	w.say(chat, delegate(map[string]any{"delegation": g.ID, "limits": map[string]any{"timeMs": 5000}}, `/call mail__send {"n":2}`, "/then", "/say both"))
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	after := w.onlyGiven(chat)
	if after.ID != g.ID || after.Status != domain.DelegationCompleted || after.Result != "both" || after.Limits.TimeMs != 60_000 {
		t.Errorf("the work is %s: %q with %+v", after.Status, after.Result, after.Limits)
	}
	if w.apps.total() != 2 {
		t.Errorf("%d calls went out, want both tasks'", w.apps.total())
	}
	w.wantText(g.Chat, "gives you one more task:")
}

func TestAnEndedWorkGoesOnInItsChatWithNewLimits(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(nil, "/say first"))
	w.run()
	g := w.onlyGiven(chat)
	w.say(chat, delegate(map[string]any{"delegation": g.ID, "limits": map[string]any{"timeMs": 5000, "steps": 7}}, "/say second"))
	w.run()
	rounds := w.given(chat)
	if len(rounds) != 2 {
		t.Fatalf("there are %d pieces of work", len(rounds))
	}
	second := rounds[1].Delegation
	if second.ID == g.ID || second.Chat != g.Chat || second.Limits.Steps != 7 || second.Result != "second" || second.Execution == g.Execution {
		t.Errorf("the second is %+v", second)
	}
	if old := w.work1(g.ID).Delegation; old.Result != "first" {
		t.Errorf("the first has the result %q", old.Result)
	}
	turns, err := w.engine.Turns(t.Context(), w.me, g.Chat, domain.Page{Limit: 5})
	w.must(err)
	if len(turns) != 2 {
		t.Errorf("the task Chat has %d Turns", len(turns))
	}
}

func TestAddingToAuthorizingWorkIsRefused(t *testing.T) {
	w := newWorld(t)
	other := w.sharedBot("Programmer")
	chat := w.newChat()
	w.say(chat, delegate(map[string]any{"bot": other.ID, "reason": "it can"}, "/say done"))
	w.run()
	g := w.onlyGiven(chat)
	turn := w.say(chat, delegate(map[string]any{"delegation": g.ID, "reason": "more"}, "/say more"))
	w.run()
	if c := w.view(turn).Calls[0]; c.Status != domain.CallFailed || !strings.Contains(c.Result, "waits for a decision") {
		t.Errorf("the call is %s: %s", c.Status, c.Result)
	}
	if len(w.given(chat)) != 1 {
		t.Error("work was made")
	}
}

func TestEachAddedTaskIsDecidedAgain(t *testing.T) {
	w := newWorld(t)
	other := w.sharedBot("Programmer")
	chat := w.newChat()
	w.say(chat, delegate(map[string]any{"bot": other.ID, "reason": "it can"}, `/call mail__send {"n":1}`))
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	g := w.wantWork(w.onlyGiven(chat).ID, domain.DelegationRunning)
	more := delegate(map[string]any{"delegation": g.ID, "reason": "more of it"}, `/call mail__send {"n":2}`)
	byAction := func(action string) domain.Request {
		t.Helper()
		i := slices.IndexFunc(w.pending(), func(r domain.Request) bool { return r.Capability.Action == action })
		if i < 0 {
			t.Fatalf("no Request of %s waits", action)
		}
		return w.pending()[i]
	}
	w.say(chat, more)
	w.run()
	denied := byAction(domain.ActionBotsDelegate)
	reason := "not that"
	_, err := w.engine.AnswerRequest(t.Context(), w.me, denied.ID, engine.Answer{Expected: denied.Revision, Decision: domain.DecisionDeny, Reason: &reason})
	w.must(err)
	w.run()
	w.wantText(chat, "The task that you wanted to add to the work "+string(g.ID)+" was not allowed.")
	w.wantText(chat, reason)
	w.wantWork(g.ID, domain.DelegationRunning)
	w.say(chat, more)
	w.run()
	w.mustAnswer(byAction(domain.ActionBotsDelegate), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	w.mustAnswer(byAction(domain.ActionAppsCall), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	w.mustAnswer(byAction(domain.ActionAppsCall), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	if w.wantWork(g.ID, domain.DelegationCompleted); w.apps.total() != 2 {
		t.Errorf("%d calls went out", w.apps.total())
	}
}

func TestAPersonWritesToATaskChat(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(nil, `/call mail__send {"n":1}`))
	w.run()
	g := w.onlyGiven(chat)
	turn := w.say(g.Chat, "/then", "/say as you wish")
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	if g = w.wantWork(g.ID, domain.DelegationCompleted); g.Result != "as you wish" {
		t.Errorf("the result is %q", g.Result)
	}
}

func TestAMessageToEndedWorkStartsANewRound(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.sayAs(w.narrowed("write", "apps.call:*"), chat, delegate(map[string]any{"limits": map[string]any{"timeMs": 60_000, "steps": 3}}, "/say first"))
	w.run()
	old := w.onlyGiven(chat)
	before := w.store.count()
	posted, err := w.engine.PostMessage(t.Context(), w.narrowed("write", "bots.spawn:*", "apps.call:*"), old.Chat, `/call mail__send {"n":1}`)
	w.must(err)
	if got := w.store.count() - before; got != 2 { // the token, and the round with its Turn
		t.Errorf("a token and a new round took %d commits", got)
	}
	if posted.Delegation == "" || posted.Delegation == old.ID || posted.Turn == "" {
		t.Fatalf("the message gave %+v", posted)
	}
	w.run()
	round := w.work1(posted.Delegation).Delegation
	if round.Status != domain.DelegationRunning || round.Limits != old.Limits || round.Chat != old.Chat || round.Parent.Chat != chat || round.Parent.Turn != "" {
		t.Errorf("the round is %+v", round)
	}
	if v := w.view(posted.Turn); len(v.Turn.Authority) != 2 {
		t.Errorf("the Turn rests on %d authorities, want the caller's and the original's", len(v.Turn.Authority))
	}
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	w.wantWork(round.ID, domain.DelegationCompleted)
	if kept := w.work1(old.ID).Delegation; kept.Result != "first" || kept.Status != domain.DelegationCompleted {
		t.Errorf("the old work is %s: %q", kept.Status, kept.Result)
	}
	w.wantText(chat, "The work "+string(round.ID)) // the giving Chat hears of the round too
}

func TestAWorkStaysOpenWhileSomethingOfItIsOpen(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(nil, delegate(nil, `/call mail__send {"n":1}`), "/then", "/say I wait"))
	w.run()
	top := w.wantWork(w.onlyGiven(chat).ID, domain.DelegationRunning) // its Turn has ended
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	w.wantWork(top.ID, domain.DelegationCompleted)
	below := w.onlyGiven(top.Chat)
	w.wantText(top.Chat, "The work "+string(below.ID)+" that you gave to")
}

func TestHowTheLastTurnEndsIsHowTheWorkEnds(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(nil, "/fail the model is gone"))
	w.run()
	g := w.onlyGiven(chat)
	if w.wantWork(g.ID, domain.DelegationFailed); !strings.Contains(g.Result, "the model is gone") {
		t.Errorf("the error is %q", g.Result)
	}
	w.wantText(chat, "failed.\n\nError:\n")
	chat = w.newChat()
	w.say(chat, delegate(nil, `/call mail__send {"n":1}`))
	w.run()
	g = w.onlyGiven(chat)
	w.interrupt(g.Chat)
	w.run()
	if g = w.wantWork(g.ID, domain.DelegationCancelled); g.Result == "" {
		t.Error("cancelled work says nothing")
	}
	w.wantText(chat, "was stopped. It is not done.")
}

func TestManyResultsComeBackEachByItself(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	var lines []string
	for i := range 20 {
		lines = append(lines, delegate(nil, fmt.Sprintf("/say result %d.", i)))
	}
	w.say(chat, lines...)
	w.run()
	for i := range 20 {
		n := 0
		for _, text := range w.history(chat) {
			if strings.HasPrefix(text, "notice: ") && strings.Contains(text, fmt.Sprintf("Result:\nresult %d.", i)) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("result %d came %d times", i, n)
		}
	}
}

func TestThePauseOfWorkHoldsAllBelow(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 10_000}), delegate(nil, `/call mail__send {"n":1}`), "/then", "/say I wait"))
	w.run()
	call := w.onlyPending()
	w.clock.forward(10 * time.Second)
	w.run()
	top := w.wantWork(w.onlyGiven(chat).ID, domain.DelegationPaused)
	below := w.work1(w.onlyGiven(top.Chat).ID)
	held := domain.HeldBy(append([]domain.Delegation{below.Delegation}, below.Above...))
	if held.Paused != top.ID || below.Delegation.Pause != nil || below.Request != "" {
		t.Errorf("the work below is held by %+v", held)
	}
	if len(w.pending()) != 2 {
		t.Fatalf("%d Requests wait, want the call's and the limit's", len(w.pending()))
	}
	chats, err := w.engine.ShownChats(t.Context(), w.theChat(top.Chat), w.theChat(below.Delegation.Chat))
	w.must(err)
	if chats[0].Status != domain.ChatPaused || chats[1].Status != domain.ChatPaused {
		t.Errorf("the Chats are %s and %s", chats[0].Status, chats[1].Status)
	}
	w.mustAnswer(call, domain.DecisionAllow, domain.ScopeOnce)
	turn := w.say(below.Delegation.Chat, "/then", "/say late input") // waits with the work
	w.run()
	if v := w.view(turn); v.Turn.Status != domain.TurnWaiting || w.apps.total() != 0 {
		t.Fatalf("the Turn below is %s and %d calls went out", v.Turn.Status, w.apps.total())
	}
	w.clock.forward(time.Hour)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	w.wantWork(top.ID, domain.DelegationCompleted)
	g := w.wantWork(below.Delegation.ID, domain.DelegationCompleted)
	if w.apps.total() != 1 || g.Result != "late input" {
		t.Errorf("%d calls went out; the result below is %q", w.apps.total(), g.Result)
	}
	if used := domain.UsedTime([]domain.Delegation{g}, w.clock.now()); used > 11*time.Second {
		t.Errorf("the clock below ran %s during the pause", used)
	}
}

func (w *world) theChat(id domain.ChatID) domain.Chat {
	w.t.Helper()
	c, err := w.engine.Chat(w.t.Context(), w.me, id)
	w.must(err)
	return c
}

func TestACallThatIsOutKeepsItsResultUntilTheDecision(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 10_000}), `/call mail__send {"n":1}`, "/then", "/say used it"))
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	sending := w.take()
	w.clock.forward(10 * time.Second)
	for { // the time limit comes while the call is out
		task, ok := w.rings.next(w.clock.now())
		if !ok {
			break
		}
		if task.Kind != domain.TaskCallLapse {
			w.work(task)
		}
	}
	g := w.wantWork(w.onlyGiven(chat).ID, domain.DelegationPaused)
	w.carry(sending)
	w.run()
	turns, err := w.engine.Turns(t.Context(), w.me, g.Chat, domain.Page{Limit: 5})
	w.must(err)
	if c := turns[0].Calls[0]; c.Status != domain.CallSucceeded || turns[0].Turn.Steps != 1 || turns[0].Turn.Status != domain.TurnWaiting {
		t.Fatalf("the call is %s and the Turn took %d steps", c.Status, turns[0].Turn.Steps)
	}
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeOnce)
	w.run()
	if g = w.wantWork(g.ID, domain.DelegationCompleted); g.Result != "used it" || w.apps.total() != 1 {
		t.Errorf("the result is %q after %d calls", g.Result, w.apps.total())
	}
}

// take takes the call that is rung as a worker does, and does not send it.
func (w *world) take() *engine.Sending {
	w.t.Helper()
	for {
		task, ok := w.rings.next(w.clock.now())
		if !ok {
			w.t.Fatal("no call is rung")
		}
		if task.Kind != domain.TaskCallSend {
			w.work(task)
			continue
		}
		taking, err := w.engine.TakeCall(w.t.Context(), domain.CallID(task.Subject), task.Revision, true)
		w.must(err)
		if taking.Sending != nil {
			return taking.Sending
		}
	}
}

func TestAModelReplyOfPausedWorkIsUsedAfterTheDecision(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.say(chat, delegate(limited(map[string]any{"timeMs": 10_000, "steps": 5}), "/say answered before the pause"))
	task, _ := w.rings.next(w.clock.now())
	w.work(task) // the giver's first step
	g := w.onlyGiven(chat)
	var step *engine.Step
	for step == nil {
		task, ok := w.rings.next(w.clock.now())
		if !ok {
			t.Fatal("the work takes no step")
		}
		if task.Kind == domain.TaskTurnStep && w.turnIn(task, g.Chat) {
			var err error
			step, err = w.engine.PrepareStep(t.Context(), domain.TurnID(task.Subject), task.Revision)
			w.must(err)
			continue
		}
		w.work(task)
	}
	w.clock.forward(10 * time.Second)
	w.run()
	w.wantWork(g.ID, domain.DelegationPaused)
	w.finish(step)
	if g = w.wantWork(g.ID, domain.DelegationPaused); g.Steps != 1 {
		t.Fatalf("the reply that came is %d steps", g.Steps)
	}
	for _, text := range w.history(g.Chat) {
		if strings.Contains(text, "answer: answered before") {
			t.Fatal("the reply was used while the work was paused")
		}
	}
	w.models = refusing{} // the model must not be asked again
	reason := "go on"
	r := w.onlyPending()
	_, err := w.engine.AnswerRequest(t.Context(), w.me, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow, Reason: &reason})
	w.must(err)
	for {
		task, ok := w.rings.next(w.clock.now())
		if !ok {
			break
		}
		if task.Kind == domain.TaskTurnStep && w.turnIn(task, g.Chat) {
			step, err := w.engine.PrepareStep(t.Context(), domain.TurnID(task.Subject), task.Revision)
			w.must(err)
			if step == nil {
				continue
			}
			if step.Reply == nil {
				break // the next one reads the reason
			}
			w.must(w.engine.CommitStep(t.Context(), step, *step.Reply))
			continue
		}
		w.work(task)
	}
	w.wantText(g.Chat, "answer: answered before the pause")
	if g = w.work1(g.ID).Delegation; g.Steps != 1 {
		t.Errorf("the reply was counted as %d steps", g.Steps)
	}
}

func (w *world) turnIn(task domain.Task, chat domain.ChatID) bool {
	w.t.Helper()
	turn, err := w.store.Turn(w.t.Context(), domain.TurnID(task.Subject))
	w.must(err)
	return turn.Chat == chat
}

// refusing is a model that must not be asked.
type refusing struct{}

func (refusing) Call(context.Context, domain.ModelRequest) (domain.ModelReply, error) {
	return domain.ModelReply{}, &domain.ModelError{Message: "the model was asked again"}
}

func (refusing) Price(string) (domain.ModelPrice, bool) { return domain.ModelPrice{}, false }
