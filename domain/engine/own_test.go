package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

const spawnScript = `/call openbot_spawn {"name":"Helper","role":"Helps.","instructions":"Help.","reason":"much to do"}`

func (w *world) bots() []domain.Bot {
	w.t.Helper()
	list, err := w.engine.Bots(w.t.Context(), w.me, domain.Page{Limit: 200})
	w.must(err)
	return list
}

// What does not fit creates nothing: no Bot, no Request.
func TestOwnToolsThatDoNotFitCreateNothing(t *testing.T) {
	for name, call := range map[string]string{
		"no reason":             `/call openbot_spawn {"name":"A","role":"","instructions":""}`,
		"an empty reason":       `/call openbot_spawn {"name":"A","role":"","instructions":"","reason":""}`,
		"no name":               `/call openbot_create_bot {"name":"","role":"","instructions":"","reason":"r"}`,
		"a long name":           `/call openbot_create_bot {"name":"` + strings.Repeat("é", 150) + `","role":"","instructions":"","reason":"r"}`,
		"an unknown field":      `/call openbot_create_bot {"name":"A","role":"","instructions":"","reason":"r","owner":"bot_1"}`,
		"no such helper":        `/call openbot_promote_bot {"bot":"bot_00000000000000000000000000000001","reason":"r"}`,
		"no ID":                 `/call openbot_promote_bot {"bot":"x","reason":"r"}`,
		"a plan without a mode": `/call openbot_plan {"plan":"p"}`,
		"a decision elsewhere":  `/call openbot_decide {"decision":"allow"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := len(w.bots())
			turn := w.say(w.newChat(), call)
			w.run()
			v := w.wantStatus(turn, domain.TurnCompleted)
			if v.Calls[0].Status != domain.CallFailed || len(w.pending()) != 0 || len(w.bots()) != before {
				t.Fatalf("the call is %s: %s", v.Calls[0].Status, v.Calls[0].Result)
			}
		})
	}
}

// A Main Bot and a lasting Bot are no helpers of this Chat, and neither is a helper
// of another Chat.
func TestOnlyAHelperOfTheChatIsPromoted(t *testing.T) {
	w := newWorld(t)
	first := w.newChat()
	turn := w.say(first, spawnScript)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	helper := w.bots()[0]
	if helper.Kind != domain.BotSession || helper.Chat != first || helper.Owner != w.main() || helper.Member != w.me.Member.ID {
		t.Fatalf("the helper is %+v", helper)
	}
	other := w.newChat()
	for _, target := range []domain.BotID{w.main(), w.bot("Lasting", "", ""), helper.ID} {
		turn := w.say(other, `/call openbot_promote_bot {"bot":"`+string(target)+`","reason":"r"}`)
		w.run()
		if call := w.wantStatus(turn, domain.TurnCompleted).Calls[0]; call.Status != domain.CallFailed || len(w.pending()) != 0 {
			t.Errorf("%s: the call is %s", target, call.Status)
		}
	}
	// Archived between the Request and the answer, it is promoted no more.
	turn = w.say(first, `/call openbot_promote_bot {"bot":"`+string(helper.ID)+`","reason":"r"}`)
	w.run()
	w.must(w.engine.ArchiveBot(t.Context(), w.me, helper.ID))
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.run()
	if call := w.wantStatus(turn, domain.TurnCompleted).Calls[0]; call.Status != domain.CallFailed || !strings.Contains(call.Result, "not executed") {
		t.Errorf("the call is %s: %s", call.Status, call.Result)
	}
}

// A Bot is made once, also when the process dies around the commit that makes it.
func TestABotIsMadeOnce(t *testing.T) {
	for n := 1; n <= 6; n++ {
		w := newWorldAlone(t)
		chat := w.newChat()
		turn := w.say(chat, strings.Replace(spawnScript, "openbot_spawn", "openbot_create_bot", 1))
		w.run()
		start, before := w.store.count(), len(w.bots())
		w.store.after = func(at int) {
			if at-start == n {
				crash()
			}
		}
		r := w.onlyPending()
		w.die(func() {
			if _, err := w.engine.AnswerRequest(context.WithoutCancel(t.Context()), w.me, r.ID, engine.Answer{Decision: domain.DecisionAllow}); err != nil {
				t.Error(err)
			}
			w.run()
		})
		w.restart()
		if r := w.request(r.ID); r.Status == domain.RequestPending {
			w.mustAnswer(r, domain.DecisionAllow, "")
		}
		w.sweepFor(30 * time.Second)
		if w.wantStatus(turn, domain.TurnCompleted); len(w.bots()) != before+1 {
			t.Fatalf("death after %d: %d Bots were made", n, len(w.bots())-before)
		}
	}
}

// A denied, cancelled or revoked call makes nothing.
func TestWhatIsNotAllowedMakesNothing(t *testing.T) {
	w := newWorld(t)
	before := len(w.bots())
	chat := w.newChat()
	w.say(chat, spawnScript)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
	w.run()
	w.say(chat, spawnScript)
	w.run()
	_, err := w.engine.Interrupt(t.Context(), w.me, chat, false)
	w.must(err)
	w.sweepFor(10 * time.Second)
	if len(w.bots()) != before || len(w.pending()) != 0 {
		t.Errorf("%d Bots were made", len(w.bots())-before)
	}
}

// An owner that owns the asking Bot may let it carry out a plan and promote a helper.
func TestOwnersHoldPlansAndPromotions(t *testing.T) {
	w := newWorld(t)
	w.instruct(w.main(), yes)
	worker := w.bot("Worker", "", "")
	chat, err := w.engine.CreateChat(t.Context(), w.me, engine.NewChat{Bot: worker, Mode: domain.ModePlan})
	w.must(err)
	turn := w.say(chat.ID, `/call openbot_plan {"plan":"Send it."}`)
	w.run()
	call := w.wantStatus(turn, domain.TurnCompleted).Calls[0]
	if call.Status != domain.CallSucceeded || call.Decided.By != domain.ByBot(w.main()) {
		t.Fatalf("the plan is %s by %+v", call.Status, call.Decided)
	}
	now, err := w.engine.Chat(t.Context(), w.me, chat.ID)
	w.must(err)
	if now.Mode != "" {
		t.Error("the Chat is still in plan mode")
	}
	// Spawning is nothing that an owner holds by owning.
	turn = w.say(chat.ID, spawnScript)
	w.run()
	if r := w.theRequest(turn); r.Approver != domain.Person(w.me.Member.ID) || len(r.Endorsements) != 1 {
		t.Errorf("the Request waits for %+v with %+v", r.Approver, r.Endorsements)
	}
}

// In plan mode only reads and the plan run, also what was allowed before.
func TestPlanModeLetsOnlyReadsRun(t *testing.T) {
	w := newWorld(t)
	w.grant(w.main(), domain.DecisionAllow)
	chat, err := w.engine.CreateChat(t.Context(), w.me, engine.NewChat{Mode: domain.ModePlan})
	w.must(err)
	turn := w.say(chat.ID, `/call mail__send {"to":"a"}`, `/call openbot_remember {"memory":"x"}`, `/call openbot_list_bots {}`, spawnScript)
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	for i, want := range []domain.CallStatus{domain.CallDenied, domain.CallDenied, domain.CallSucceeded, domain.CallDenied} {
		if v.Calls[i].Status != want {
			t.Errorf("%s is %s, want %s", v.Calls[i].Name, v.Calls[i].Status, want)
		}
	}
	if w.apps.total() != 0 {
		t.Error("a call went out in plan mode")
	}
	// A call that was allowed before the Chat went into plan mode does not go out in it.
	chat2 := w.newChat()
	turn = w.say(chat2, sendScript)
	task, _ := w.rings.next(w.clock.now())
	w.work(task)
	_, err = w.engine.ChangeChat(t.Context(), w.me, chat2, engine.ChatFields{Mode: ptr(domain.ModePlan)})
	w.must(err)
	w.run()
	if call := w.view(turn).Calls[0]; call.Status != domain.CallDenied || w.apps.total() != 0 {
		t.Errorf("the call is %s", call.Status)
	}
}

// A plan that nobody answers ends as the person set it; time without a server does
// not count towards an allow.
func TestAPlanThatNobodyAnswers(t *testing.T) {
	for _, c := range []struct {
		name     string
		onExpire string
		down     time.Duration // without a server, just after the plan was handed in
		wait     time.Duration // with one
		status   domain.RequestStatus
	}{
		{"denied by default", "", 0, 11 * time.Minute, domain.RequestDenied},
		{"denied when set", domain.DecisionDeny, 0, 11 * time.Minute, domain.RequestDenied},
		{"not before its time", domain.DecisionAllow, 0, 9 * time.Minute, domain.RequestPending},
		{"allowed when set", domain.DecisionAllow, 0, 11 * time.Minute, domain.RequestAllowed},
		{"the time of a stop does not count", domain.DecisionAllow, time.Hour, 9 * time.Minute, domain.RequestPending},
		{"and the rest of it does", domain.DecisionAllow, time.Hour, 11 * time.Minute, domain.RequestAllowed},
		{"for a deny it counts", domain.DecisionDeny, time.Hour, time.Second, domain.RequestDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.must(w.engine.Beat(t.Context()))
			chat, err := w.engine.CreateChat(t.Context(), w.me, engine.NewChat{Mode: domain.ModePlan,
				Plan: domain.PlanTerms{TimeoutMs: (10 * time.Minute).Milliseconds(), OnExpire: c.onExpire}})
			w.must(err)
			w.say(chat.ID, `/call openbot_plan {"plan":"Send it."}`)
			w.run()
			r := w.onlyPending()
			w.rings.lose()
			w.clock.forward(c.down)
			// The first thing after the stop is a worker with the old timer.
			w.must(w.engine.ElapseRequest(t.Context(), r.ID))
			for end := w.clock.now().Add(c.wait); w.clock.now().Before(end); w.clock.forward(5 * time.Second) {
				w.must(w.engine.Beat(t.Context()))
				w.sweep()
				w.run()
			}
			if now := w.request(r.ID); now.Status != c.status {
				t.Fatalf("the Request is %s, want %s; it ends at %s and it is %s", now.Status, c.status, now.ExpiresAt, w.clock.now())
			}
			now, err := w.engine.Chat(t.Context(), w.me, chat.ID)
			w.must(err)
			if (now.Mode == "") != (c.status == domain.RequestAllowed) {
				t.Errorf("the mode is %q", now.Mode)
			}
		})
	}
}

// A person sets the terms; what does not fit is refused.
func TestTheTermsOfAPlan(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	for _, bad := range []engine.ChatFields{{TimeoutMs: ptr(int64(1))}, {TimeoutMs: ptr(int64(1) << 50)}, {OnExpire: ptr("maybe")}, {Mode: ptr("fast")}} {
		_, err := w.engine.ChangeChat(t.Context(), w.me, chat, bad)
		w.wantCode(err, domain.CodeInvalid)
	}
	got, err := w.engine.ChangeChat(t.Context(), w.me, chat, engine.ChatFields{TimeoutMs: ptr(int64(5000)), OnExpire: ptr("allow"), Title: ptr("Plans")})
	w.must(err)
	if got.Plan != (domain.PlanTerms{TimeoutMs: 5000, OnExpire: "allow"}) || got.Title != "Plans" || got.Mode != "" {
		t.Errorf("the Chat is %+v", got)
	}
}

// A message to an archived Bot is taken and its Turn says why nothing comes of it.
func TestATurnOfAnArchivedBotFails(t *testing.T) {
	w := newWorld(t)
	bot := w.bot("Gone", "", "")
	chat := w.chatWith(bot)
	w.must(w.engine.ArchiveBot(t.Context(), w.me, bot))
	w.run()
	turn := w.say(chat, sendScript)
	w.run()
	if v := w.wantStatus(turn, domain.TurnFailed); v.Turn.Error != "The Bot is archived." || len(v.Calls) != 0 {
		t.Errorf("the Turn ended with %q", v.Turn.Error)
	}
	_, err := w.engine.CreateChat(t.Context(), w.me, engine.NewChat{Bot: bot})
	w.wantCode(err, domain.CodeConflict)
}

// What the last look refused is kept beside what the check had found.
func TestTheLastLookLeavesEvidence(t *testing.T) {
	w := newWorld(t)
	grant := w.grant(w.main(), domain.DecisionAllow)
	turn := w.say(w.newChat(), sendScript)
	task, _ := w.rings.next(w.clock.now())
	for task.Kind != domain.TaskTurnStep {
		task, _ = w.rings.next(w.clock.now())
	}
	w.work(task)
	w.must(w.engine.RevokeGrant(t.Context(), w.me, grant.ID))
	w.run()
	call := w.view(turn).Calls[0]
	last := call.Evidence[len(call.Evidence)-1]
	if call.Status != domain.CallDenied || last.Step != domain.StepGrant || last.Found != "the Grant that allowed it was revoked" {
		t.Fatalf("the call is %s with %+v", call.Status, call.Evidence)
	}
}
