package domain_test

import (
	"testing"
	"time"

	"openbot/domain"
)

func forPeople() domain.Request {
	r := pendingRequest()
	r.Tags, r.TagLine = []string{"spend"}, domain.TagLine{Tag: "spend", Effect: domain.TagEffectHuman}
	return r
}

func TestATagForPeopleTakesOnceAlone(t *testing.T) {
	human := domain.TagLine{Tag: "spend", Effect: domain.TagEffectHuman}
	for _, c := range []struct {
		name     string
		request  domain.Request
		line     domain.TagLine // of the tag policy as it is now
		decision string
		scope    string
		rule     *string
		fault    string
	}{
		{"once", forPeople(), human, "allow", "once", nil, ""},
		{"for the Chat", forPeople(), human, "allow", "chat", nil, "scope"},
		{"for life", forPeople(), human, "allow", "lifetime", nil, "scope"},
		{"for life, by the policy of then", forPeople(), domain.TagLine{}, "allow", "lifetime", nil, "scope"},
		{"for life, by the policy of now", pendingRequest(), human, "allow", "lifetime", nil, "scope"},
		{"once with a Rule", forPeople(), human, "allow", "once", ptr("Allow it."), "rule"},
		{"a deny for life", forPeople(), human, "deny", "lifetime", nil, ""},
		{"a deny with a Rule", forPeople(), human, "deny", "once", ptr("Never do it."), ""},
	} {
		a := answered()
		a.Decision, a.Scope, a.Rule, a.TagLine = c.decision, c.scope, c.rule, c.line
		next, effects, err := domain.DecideRequest(c.request, a)
		if c.fault == "" {
			if err != nil || next.Status == domain.RequestPending {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		wantCode(t, err, domain.CodeInvalid)
		if failure, ok := err.(*domain.Error); !ok || len(failure.Faults) != 1 || failure.Faults[0].Path != c.fault || len(effects) != 0 {
			t.Errorf("%s: %v with %d effects", c.name, err, len(effects))
		}
	}
}

// No kept decision and no Bot allows what a person must, however it comes.
func TestNothingButAPersonAllowsATagForPeople(t *testing.T) {
	r := forPeople()
	if _, _, err := domain.DecideRequest(r, domain.Settled{At: noon, Grant: allowGrant()}); !domain.IsCode(err, domain.CodeConflict) {
		t.Errorf("a Grant settled it: %v", err)
	}
	if next, _, err := domain.DecideRequest(r, domain.Settled{At: noon, Grant: denyGrant()}); err != nil || next.Status != domain.RequestDenied {
		t.Errorf("a deny Grant did not: %v", err)
	}
	r.Approver, r.Review = domain.ByBot("bot_0"), "chat_9"
	next, effects, err := domain.DecideRequest(r, domain.Reviewed{At: noon, Chat: "chat_9", Bot: "bot_0", Decision: "allow", Scope: "lifetime",
		Holds: domain.Verdict{Outcome: domain.OutcomeAllow, Decided: domain.DecidedBy{Step: domain.StepGrant, Scope: "lifetime"}}, Next: domain.Person("mem_1")})
	if err != nil || next.Status != domain.RequestPending || len(next.Endorsements) != 1 || len(effects) != 0 {
		t.Fatalf("a Bot that says that it may came to %v %s", err, next.Status)
	}
	a := answered()
	a.Expected, a.Endorsed = next.Revision, []domain.GrantID{"grt_2"}
	if _, effects, err = domain.DecideRequest(next, a); err != nil || len(effects) != 0 {
		t.Errorf("the Bot that endorsed got %v (%v)", effects, err)
	}
}

// A Grant remembers the taint that a person saw; one that a Bot gave, and one of a Bot
// that endorsed, remember none.
func TestAGrantRemembersTheTaintThatAPersonSaw(t *testing.T) {
	tainted := pendingRequest()
	tainted.Tags, tainted.Taint, tainted.TaintedTag = []string{"external_send"}, fromApp("con_7", "chat_1"), "external_send"
	tainted.Endorsements = []domain.Endorsement{{Bot: "bot_0", Scope: "lifetime"}}
	a := answered()
	a.Scope, a.Endorsed = "lifetime", []domain.GrantID{"grt_2"}
	_, effects, err := domain.DecideRequest(tainted, a)
	if err != nil || len(effects) != 2 {
		t.Fatalf("%v %v", err, effects)
	}
	own, endorsing := effects[0].(domain.KeepGrant).Grant, effects[1].(domain.KeepGrant).Grant
	if own.ShownIn != "chat_1" || len(own.Shown) != 1 || endorsing.ShownIn != "" || endorsing.Shown != nil {
		t.Errorf("the Grants are %+v and %+v", own, endorsing)
	}
	if next, _, err := domain.DecideRequest(tainted, domain.Settled{At: noon, Grant: own}); err != nil || next.Status != domain.RequestAllowed {
		t.Errorf("the same question in the same Chat stays open: %v", err)
	}
	elsewhere := tainted
	elsewhere.Chat = "chat_2"
	more := tainted
	more.Taint = tainted.Taint.With(fromApp("con_8", "chat_1")...)
	for name, r := range map[string]domain.Request{"another Chat": elsewhere, "more taint": more} {
		if _, _, err := domain.DecideRequest(r, domain.Settled{At: noon, Grant: own}); !domain.IsCode(err, domain.CodeConflict) {
			t.Errorf("%s: the Grant settles it: %v", name, err)
		}
	}
	a.Decision = "deny"
	if _, effects, _ = domain.DecideRequest(tainted, a); effects[0].(domain.KeepGrant).Grant.ShownIn != "" {
		t.Error("a deny remembers taint")
	}
	byBot := tainted
	byBot.Approver, byBot.Review = domain.ByBot("bot_0"), "chat_9"
	_, effects, err = domain.DecideRequest(byBot, domain.Reviewed{At: noon, Chat: "chat_9", Bot: "bot_0", Decision: "allow", Scope: "lifetime", GrantID: "grt_3",
		Holds: domain.Verdict{Outcome: domain.OutcomeAllow, Decided: domain.DecidedBy{Step: domain.StepGrant, Scope: "lifetime"}}})
	if err != nil || len(effects) != 1 || effects[0].(domain.KeepGrant).Grant.ShownIn != "" {
		t.Errorf("a Bot's allow left %+v (%v)", effects, err)
	}
}

// A Rule is tried on earlier Requests as it would have counted then.
func TestAPreviewKnowsWhatNoRuleCanAllow(t *testing.T) {
	p := domain.Preview{Text: "Allow send_email.", Effect: "allow"}
	says := domain.RulesVerdict{Decision: "allow", Rule: "rul_preview", Quote: "Allow send_email."}
	if got := p.Result(forPeople(), says); got.Would != "" || got.Why == "" {
		t.Errorf("a Rule would allow what is for people alone: %+v", got)
	}
	if got := p.Result(pendingRequest(), says); got.Would != "allow" {
		t.Errorf("an ordinary Request: %+v", got)
	}
	says.Decision = "deny"
	if got := p.Result(forPeople(), says); got.Would != "deny" {
		t.Errorf("a Rule can deny: %+v", got)
	}
}

// A call that taint sends back is checked again from the start.
func TestADoubtedCallIsCheckedAgain(t *testing.T) {
	c := domain.Call{ID: "call_1", Kind: domain.CallApp, Status: domain.CallAllowed, Decided: &domain.DecidedBy{Step: domain.StepGrant},
		Evidence: []domain.Finding{{Step: domain.StepGrant, Found: "allowed"}}}
	next, err := domain.DecideCall(c, domain.Doubted{At: noon, Evidence: []domain.Finding{{Step: domain.StepExemption, Found: "tainted"}}})
	if err != nil || next.Status != domain.CallChecking || next.Decided != nil || len(next.Evidence) != 2 || next.DueAt == nil || !next.DueAt.After(noon) {
		t.Fatalf("%v %+v", err, next)
	}
	for _, status := range domain.CallStatuses() {
		c.Status = status
		if _, err := domain.DecideCall(c, domain.Doubted{At: noon.Add(time.Second)}); (err == nil) != (status == domain.CallAllowed) {
			t.Errorf("a call that is %s took it: %v", status, err)
		}
	}
}
