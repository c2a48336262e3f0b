package domain_test

import (
	"testing"
	"time"

	"openbot/domain"
)

func answered() domain.Answered {
	return domain.Answered{At: noon.Add(time.Minute), Expected: 1, Member: "mem_1", Decision: domain.DecisionAllow,
		Scope: domain.ScopeOnce, GrantID: "grt_1", RuleID: "rul_1"}
}

func TestAnswersThatARequestRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		request func(*domain.Request)
		answer  func(*domain.Answered)
		code    domain.Code
	}{
		{"another Member", nil, func(a *domain.Answered) { a.Member = "mem_2" }, domain.CodeConflict},
		{"nobody", nil, func(a *domain.Answered) { a.Member = "" }, domain.CodeConflict},
		{"a Bot's turn", func(r *domain.Request) { r.Approver = domain.Actor{Tag: domain.TagBot, Bot: "bot_0"} }, nil, domain.CodeConflict},
		{"a Bot's turn, and an answer of nobody", func(r *domain.Request) { r.Approver = domain.Actor{Tag: domain.TagBot, Bot: "bot_0"} },
			func(a *domain.Answered) { a.Member = "" }, domain.CodeConflict},
		{"no decider", func(r *domain.Request) { r.Approver = domain.Actor{} }, func(a *domain.Answered) { a.Member = "" }, domain.CodeConflict},
		{"an old revision", func(r *domain.Request) { r.Revision = 2 }, nil, domain.CodeConflict},
		{"a future revision", nil, func(a *domain.Answered) { a.Expected = 2 }, domain.CodeConflict},
		{"no revision", nil, func(a *domain.Answered) { a.Expected = 0 }, domain.CodeConflict},
		{"exactly at the deadline", nil, func(a *domain.Answered) { a.At = noon.Add(time.Hour) }, domain.CodeConflict},
		{"after the deadline", nil, func(a *domain.Answered) { a.At = noon.Add(2 * time.Hour) }, domain.CodeConflict},
		{"no decision", nil, func(a *domain.Answered) { a.Decision = "" }, domain.CodeInvalid},
		{"a decision that there is not", nil, func(a *domain.Answered) { a.Decision = "ALLOW" }, domain.CodeInvalid},
		{"ask for a call", nil, func(a *domain.Answered) { a.Decision = domain.DecisionAsk }, domain.CodeInvalid},
		{"no scope", nil, func(a *domain.Answered) { a.Scope = "" }, domain.CodeInvalid},
		{"a scope that there is not", nil, func(a *domain.Answered) { a.Scope = "forever" }, domain.CodeInvalid},
		{"a wide scope for an unknown outcome", func(r *domain.Request) { r.Unknown = &domain.Unknown{} }, func(a *domain.Answered) { a.Scope = domain.ScopeLifetime }, domain.CodeInvalid},
		{"a Rule for an unknown outcome", func(r *domain.Request) { r.Unknown = &domain.Unknown{} }, func(a *domain.Answered) { a.Rule = ptr("Never.") }, domain.CodeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, a := pendingRequest(), answered()
			if c.request != nil {
				c.request(&r)
			}
			if c.answer != nil {
				c.answer(&a)
			}
			before := deepCopy(r)
			next, effects, err := domain.DecideRequest(r, a)
			wantCode(t, err, c.code)
			untouched(t, before, next)
			if len(effects) != 0 {
				t.Errorf("a refusal left %d effects", len(effects))
			}
		})
	}
}

func TestAnAnswerIsTakenUntilTheDeadline(t *testing.T) {
	r, a := pendingRequest(), answered()
	a.At = r.ExpiresAt.Add(-time.Nanosecond)
	next, _, err := domain.DecideRequest(r, a)
	if err != nil || next.Status != domain.RequestAllowed || next.Revision != 2 {
		t.Fatalf("the last moment counts: %v %s %d", err, next.Status, next.Revision)
	}
	if _, _, err := domain.DecideRequest(r, domain.Elapsed{At: a.At}); !domain.IsCode(err, domain.CodePrecondition) {
		t.Errorf("an Elapsed that comes early is refused, got %v", err)
	}
	late, _, err := domain.DecideRequest(r, domain.Elapsed{At: r.ExpiresAt})
	if err != nil || late.Status != domain.RequestDenied || late.Decision.By.Tag != domain.TagExpiry {
		t.Errorf("at the deadline the Request is denied by expiry, got %v %+v", err, late.Decision)
	}
}

func TestTheSameAnswerAgainGivesTheDecidedRequest(t *testing.T) {
	a := answered()
	a.Scope, a.Reason, a.Rule = domain.ScopeChat, ptr("fine"), ptr("Allow mail to us.")
	decided, effects, err := domain.DecideRequest(pendingRequest(), a)
	if err != nil || len(effects) != 2 {
		t.Fatalf("the answer left %d effects: %v", len(effects), err)
	}
	again := a
	again.At, again.Expected, again.GrantID = noon.Add(48*time.Hour), 99, "grt_other"
	again.Reason, again.Rule = ptr("fine"), ptr("Allow mail to us.")
	next, effects, err := domain.DecideRequest(decided, again)
	if err != nil || len(effects) != 0 {
		t.Fatalf("the same answer again: %d effects, %v", len(effects), err)
	}
	untouched(t, decided, next)
	for name, change := range map[string]func(*domain.Answered){
		"decision": func(a *domain.Answered) { a.Decision = domain.DecisionDeny },
		"scope":    func(a *domain.Answered) { a.Scope = domain.ScopeOnce },
		"reason":   func(a *domain.Answered) { a.Reason = nil },
		"rule":     func(a *domain.Answered) { a.Rule = ptr("Allow all.") },
		"member":   func(a *domain.Answered) { a.Member = "mem_2" },
	} {
		other := again
		change(&other)
		if _, _, err := domain.DecideRequest(decided, other); !domain.IsCode(err, domain.CodeConflict) {
			t.Errorf("an answer with another %s gave %v, want conflict", name, err)
		}
	}
	elapsed, _, _ := domain.DecideRequest(pendingRequest(), domain.Elapsed{At: noon.Add(time.Hour)})
	deny := answered()
	deny.Decision = domain.DecisionDeny
	if _, _, err := domain.DecideRequest(elapsed, deny); !domain.IsCode(err, domain.CodeConflict) {
		t.Errorf("a deny after the expiry is not the same answer as the expiry, got %v", err)
	}
}

func TestWhatAnAnswerLeavesBehind(t *testing.T) {
	for _, c := range []struct {
		decision, scope string
		kept            bool
		chat            domain.ChatID
	}{
		{domain.DecisionAllow, domain.ScopeOnce, false, ""},
		{domain.DecisionDeny, domain.ScopeOnce, false, ""},
		{domain.DecisionAllow, domain.ScopeChat, true, "chat_1"},
		{domain.DecisionDeny, domain.ScopeChat, true, "chat_1"},
		{domain.DecisionAllow, domain.ScopeLifetime, true, ""},
		{domain.DecisionDeny, domain.ScopeLifetime, true, ""},
	} {
		a := answered()
		a.Decision, a.Scope = c.decision, c.scope
		_, effects, err := domain.DecideRequest(pendingRequest(), a)
		if err != nil {
			t.Fatal(err)
		}
		if !c.kept {
			if len(effects) != 0 {
				t.Errorf("%s once left %v", c.decision, effects)
			}
			continue
		}
		g := effects[0].(domain.KeepGrant).Grant
		if len(effects) != 1 || g.Decision != c.decision || g.Scope != c.scope || g.Chat != c.chat || g.Revision != 3 || g.Bot != "bot_1" ||
			g.Member != "mem_1" || g.Capability != mail || g.Request != "req_1" || g.Source != domain.SourceRequest || g.SettleDueAt == nil {
			t.Errorf("%s %s kept %+v", c.decision, c.scope, g)
		}
	}
	a := answered()
	a.Decision, a.Rule = domain.DecisionDeny, ptr("Never send mail.")
	_, effects, _ := domain.DecideRequest(pendingRequest(), a)
	if rule := effects[0].(domain.KeepRule).Rule; rule.Effect != domain.DecisionDeny || rule.Bot != "bot_1" || rule.Member != "mem_1" || !rule.Enabled {
		t.Errorf("a Rule has the effect of its answer and counts for its Bot and Member, got %+v", rule)
	}
}

func TestOnlyAGrantThatCoversTheRequestSettlesIt(t *testing.T) {
	fits := domain.Grant{ID: "grt_2", Member: "mem_1", Bot: "bot_1", Capability: mail, Decision: domain.DecisionAllow, Scope: domain.ScopeLifetime, Revision: 3}
	for name, change := range map[string]func(*domain.Grant, *domain.Request){
		"another Member":     func(g *domain.Grant, _ *domain.Request) { g.Member = "mem_2" },
		"another Bot":        func(g *domain.Grant, _ *domain.Request) { g.Bot = "bot_2" },
		"another capability": func(g *domain.Grant, _ *domain.Request) { g.Capability.Target = "con_7/delete_all" },
		"another revision":   func(g *domain.Grant, _ *domain.Request) { g.Revision = 4 },
		"another Chat":       func(g *domain.Grant, _ *domain.Request) { g.Scope, g.Chat = domain.ScopeChat, "chat_2" },
		"scope once":         func(g *domain.Grant, _ *domain.Request) { g.Scope = domain.ScopeOnce },
		"revoked":            func(g *domain.Grant, _ *domain.Request) { g.RevokedAt = ptr(noon) },
		"an unknown outcome": func(_ *domain.Grant, r *domain.Request) { r.Unknown = &domain.Unknown{} },
		"time is up":         func(_ *domain.Grant, r *domain.Request) { r.ExpiresAt = noon },
	} {
		t.Run(name, func(t *testing.T) {
			g, r := fits, pendingRequest()
			change(&g, &r)
			next, _, err := domain.DecideRequest(r, domain.Settled{At: noon, Grant: g})
			wantCode(t, err, domain.CodeConflict)
			untouched(t, r, next)
		})
	}
	next, effects, err := domain.DecideRequest(pendingRequest(), domain.Settled{At: noon, Grant: fits})
	if err != nil || len(effects) != 0 || next.Status != domain.RequestAllowed || next.Decision.By != domain.ByGrant("grt_2") {
		t.Errorf("a Grant that covers settles without effects of its own: %v %+v", err, next.Decision)
	}
}

func TestAskIsADenyWithAQuestion(t *testing.T) {
	r, a := pendingRequest(), answered()
	r.Capability = domain.Capability{Action: domain.ActionDelegationsContinue, Target: "dlg_1"}
	r.App = nil
	a.Decision, a.Scope = domain.DecisionAsk, domain.ScopeChat
	next, effects, err := domain.DecideRequest(r, a)
	if err != nil || next.Status != domain.RequestDenied || next.Decision.Decision != domain.DecisionAsk {
		t.Fatalf("ask gives %s: %v", next.Status, err)
	}
	if g := effects[0].(domain.KeepGrant).Grant; g.Decision != domain.DecisionDeny {
		t.Errorf("what is kept of a question is a deny, got %q", g.Decision)
	}
}
