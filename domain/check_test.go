package domain_test

import (
	"testing"
	"time"

	"openbot/domain"
)

// The first Grant and the first rights of most cases. They cover mail in chat_1 for
// mem_1 at revision 3.
func allowGrant() domain.Grant {
	return domain.Grant{ID: "grt_allow", Member: "mem_1", Bot: "bot_1", Capability: mail, Decision: domain.DecisionAllow,
		Scope: domain.ScopeLifetime, Revision: 3}
}

func denyGrant() domain.Grant {
	g := allowGrant()
	g.ID, g.Decision = "grt_deny", domain.DecisionDeny
	return g
}

func mailRule() domain.Rule {
	return domain.Rule{ID: "rul_1", Text: "Allow send_email to colleagues.", Effect: domain.EffectEither, Enabled: true, Version: 1}
}

func fullRights() domain.Rights {
	return domain.Rights{Member: domain.Member{ID: "mem_1", Permissions: domain.Permissions{"write", "*"}},
		Token: domain.Token{ID: "tok_1", Member: "mem_1", Scopes: domain.Permissions{"write", "*"}}}
}

func attempt() domain.Attempt {
	return domain.Attempt{At: noon, Bot: "bot_1", Member: "mem_1", Chat: "chat_1", Capability: mail,
		Rights: []domain.Rights{fullRights()}, Visible: true, Revision: 3}
}

// lawCase is one case of the check: what was tried, and what it must come to.
type lawCase struct {
	name    string
	because string
	change  func(*domain.Attempt)
	outcome domain.Outcome
	step    domain.Step    // of the evidence; "" when nothing decided
	grant   domain.GrantID // of the evidence
}

func grants(list ...domain.Grant) func(*domain.Attempt) {
	return func(a *domain.Attempt) { a.Grants = list }
}

func altered(g domain.Grant, change func(*domain.Grant)) domain.Grant {
	change(&g)
	return g
}

func lawCases() []lawCase {
	deny, ask, allow := domain.OutcomeDeny, domain.OutcomeAsk, domain.OutcomeAllow
	return []lawCase{
		{"nothing decides", "what nothing decides goes to the decider above, it never just runs",
			func(*domain.Attempt) {}, ask, "", ""},
		{"an allow Grant decides", "a person answered this question before",
			grants(allowGrant()), allow, domain.StepGrant, "grt_allow"},
		{"a deny Grant decides", "a kept deny spares the person the same question",
			grants(denyGrant()), deny, domain.StepGrant, "grt_deny"},
		{"deny beats allow, deny first", "the order of rows must not matter",
			grants(denyGrant(), allowGrant()), deny, domain.StepGrant, "grt_deny"},
		{"deny beats allow, allow first", "the order of rows must not matter, the other way round",
			grants(allowGrant(), denyGrant()), deny, domain.StepGrant, "grt_deny"},
		{"a narrow deny beats a wide allow", "a deny for this Chat is the newer thought about this place",
			grants(allowGrant(), altered(denyGrant(), func(g *domain.Grant) { g.Scope, g.Chat = domain.ScopeChat, "chat_1" })), deny, domain.StepGrant, "grt_deny"},
		{"a wide deny beats a narrow allow", "no scope lifts a deny",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Scope, g.Chat = domain.ScopeChat, "chat_1" }), denyGrant()), deny, domain.StepGrant, "grt_deny"},
		{"deny beats an exemption", "a tool that is marked as a read can still be denied to one Bot",
			func(a *domain.Attempt) { a.Exempt, a.Grants = "con_7/*", []domain.Grant{denyGrant()} }, deny, domain.StepGrant, "grt_deny"},
		{"another Member's allow", "a Grant counts only in work for the Member who gave it",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Member = "mem_2" })), ask, "", ""},
		{"another Member's deny", "nor does another Member's deny bind this one",
			grants(altered(denyGrant(), func(g *domain.Grant) { g.Member = "mem_2" })), ask, "", ""},
		{"another Bot's allow", "a decision about one Bot says nothing about the next",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Bot = "bot_2" })), ask, "", ""},
		{"an allow of an older revision", "the App may do something else by now under the same name",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Revision = 2 })), ask, "", ""},
		{"an allow of a newer revision", "a decision about what comes later does not reach back to a saved call",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Revision = 4 })), ask, "", ""},
		{"an allow without a revision", "a missing revision is no wildcard",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Revision = 0 })), ask, "", ""},
		{"an allow for another tool", "a capability is exact",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Capability.Target = "con_7/send_emails" })), ask, "", ""},
		{"an allow that looks like a pattern", "only permissions and settings hold patterns; a star in a Grant is a letter",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Capability.Target = "con_7/*" })), ask, "", ""},
		{"an allow for another Connection", "the same tool name on another App is another capability",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Capability.Target = "con_8/send_email" })), ask, "", ""},
		{"an allow for another action", "the target alone is half a capability",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Capability.Action = domain.ActionToolsCall })), ask, "", ""},
		{"a chat allow in its Chat", "that is what the scope promises",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Scope, g.Chat = domain.ScopeChat, "chat_1" })), allow, domain.StepGrant, "grt_allow"},
		{"a chat allow elsewhere", "and no more than that",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Scope, g.Chat = domain.ScopeChat, "chat_2" })), ask, "", ""},
		{"a chat allow without its Chat", "a lost Chat must not read as every Chat",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Scope = domain.ScopeChat })), ask, "", ""},
		{"a chat allow and an attempt, both without a Chat", "two empty names are not the same Chat",
			func(a *domain.Attempt) {
				a.Chat = ""
				a.Grants = []domain.Grant{altered(allowGrant(), func(g *domain.Grant) { g.Scope = domain.ScopeChat })}
			}, ask, "", ""},
		{"a lifetime allow in another Chat", "lifetime is wherever the Bot works for this Member",
			func(a *domain.Attempt) { a.Chat, a.Grants = "chat_9", []domain.Grant{allowGrant()} }, allow, domain.StepGrant, "grt_allow"},
		{"an allow of scope once", "once leaves nothing behind; a row that says so is damage and allows nothing",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Scope = domain.ScopeOnce })), ask, "", ""},
		{"an allow without a scope", "a zero value never allows",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Scope = "" })), ask, "", ""},
		{"a Grant without a decision", "a zero value never allows",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Decision = "" })), ask, "", ""},
		{"a Grant that asks", "ask is an answer about work at a limit, never a permission",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.Decision = domain.DecisionAsk })), ask, "", ""},
		{"an empty Grant", "a zero value never allows", grants(domain.Grant{}), ask, "", ""},
		{"a revoked allow", "what was taken back is gone",
			grants(altered(allowGrant(), func(g *domain.Grant) { g.RevokedAt = ptr(noon.Add(-time.Hour)) })), ask, "", ""},
		{"a revoked deny beside an allow", "and so is a deny that was taken back",
			grants(altered(denyGrant(), func(g *domain.Grant) { g.RevokedAt = ptr(noon) }), allowGrant()), allow, domain.StepGrant, "grt_allow"},
		{"a revoked token", "the work that a revoked token started does nothing more, whatever was granted",
			func(a *domain.Attempt) {
				a.Grants = []domain.Grant{allowGrant()}
				a.Rights[0].Token.RevokedAt = ptr(noon)
			}, deny, domain.StepPolicy, ""},
		{"a disabled Member", "nor does the work of a disabled Member",
			func(a *domain.Attempt) {
				a.Grants = []domain.Grant{allowGrant()}
				a.Rights[0].Member.DisabledAt = ptr(noon)
			}, deny, domain.StepPolicy, ""},
		{"an expired token that covers", "expiry closes the door to new work, it does not stop what runs",
			func(a *domain.Attempt) { a.Rights[0].Token.ExpiresAt = ptr(noon.Add(-time.Hour)) }, ask, "", ""},
		{"an expired token that does not cover", "but its scopes go on narrowing the work that it started",
			func(a *domain.Attempt) {
				a.Rights[0].Token.ExpiresAt, a.Rights[0].Token.Scopes = ptr(noon.Add(-time.Hour)), domain.Permissions{"write", "tools.call:*"}
			}, deny, domain.StepPolicy, ""},
		{"a token without a pattern", "a role opens routes, it gives no capability",
			func(a *domain.Attempt) { a.Rights[0].Token.Scopes = domain.Permissions{"admin"} }, deny, domain.StepPolicy, ""},
		{"a Member without a pattern", "a token cannot widen its Member",
			func(a *domain.Attempt) { a.Rights[0].Member.Permissions = domain.Permissions{"admin"} }, deny, domain.StepPolicy, ""},
		{"a Member with another tool only", "a denied capability is never sent to a decider",
			func(a *domain.Attempt) {
				a.Rights[0].Member.Permissions = domain.Permissions{"apps.call:con_7/read_email"}
			}, deny, domain.StepPolicy, ""},
		{"a Member with this tool only", "the narrowest pattern is enough",
			func(a *domain.Attempt) {
				a.Rights[0].Member.Permissions = domain.Permissions{"apps.call:con_7/send_email"}
			}, ask, "", ""},
		{"a pattern over the App's name", "patterns match Connection IDs, never names",
			func(a *domain.Attempt) {
				a.Rights[0].Member.Permissions = domain.Permissions{"apps.call:mail/*"}
			}, deny, domain.StepPolicy, ""},
		{"a second, narrower token", "rights are the intersection of everybody whose input the Turn took",
			func(a *domain.Attempt) {
				narrow := fullRights()
				narrow.Token.ID, narrow.Token.Scopes = "tok_2", domain.Permissions{"write"}
				a.Rights = append(a.Rights, narrow)
			}, deny, domain.StepPolicy, ""},
		{"a second, revoked token", "one revoked source is enough",
			func(a *domain.Attempt) {
				revoked := fullRights()
				revoked.Token.RevokedAt = ptr(noon)
				a.Rights = append(a.Rights, revoked)
				a.Grants = []domain.Grant{allowGrant()}
			}, deny, domain.StepPolicy, ""},
		{"no rights at all", "an empty list is nobody, and nobody may do anything",
			func(a *domain.Attempt) { a.Rights = nil; a.Grants = []domain.Grant{allowGrant()} }, deny, domain.StepPolicy, ""},
		{"rights that were not loaded", "zero values never allow",
			func(a *domain.Attempt) { a.Rights = []domain.Rights{{}} }, deny, domain.StepPolicy, ""},
		{"an exempt call without rights", "an exemption is from the decision, not from policy",
			func(a *domain.Attempt) { a.Exempt, a.Rights = "con_7/*", nil }, deny, domain.StepPolicy, ""},
		{"an exempt call", "the organization said that this tool only reads",
			func(a *domain.Attempt) { a.Exempt = "con_7/*" }, allow, domain.StepExemption, ""},
		{"an exempt call on what the Member cannot see", "visibility is policy too",
			func(a *domain.Attempt) { a.Exempt, a.Visible = "con_7/*", false }, deny, domain.StepPolicy, ""},
		{"a target out of sight", "a Connection of another Member does not exist for this one",
			func(a *domain.Attempt) { a.Visible, a.Grants = false, []domain.Grant{allowGrant()} }, deny, domain.StepPolicy, ""},
		{"Rules that nobody has read", "the judge reads before anybody is asked",
			func(a *domain.Attempt) { a.Rules = []domain.Rule{mailRule()} }, domain.OutcomeJudge, "", ""},
		{"Rules beside an allow Grant", "the Grant stands before the Rules",
			func(a *domain.Attempt) { a.Rules, a.Grants = []domain.Rule{mailRule()}, []domain.Grant{allowGrant()} }, allow, domain.StepGrant, "grt_allow"},
		{"Rules beside a deny Grant", "and a deny before everything",
			func(a *domain.Attempt) { a.Rules, a.Grants = []domain.Rule{mailRule()}, []domain.Grant{denyGrant()} }, deny, domain.StepGrant, "grt_deny"},
		{"a host tool's Grant at any revision", "only App Grants are bound to a revision",
			func(a *domain.Attempt) {
				a.Capability = domain.Capability{Action: domain.ActionToolsCall, Target: "deploy"}
				a.Grants = []domain.Grant{altered(allowGrant(), func(g *domain.Grant) { g.Capability, g.Revision = a.Capability, 0 })}
			}, allow, domain.StepGrant, "grt_allow"},
		{"a read of an App without a capability", "resources need no decision",
			func(a *domain.Attempt) { a.Capability, a.Exempt = domain.Capability{}, "reads of Apps" }, allow, domain.StepExemption, ""},
		{"a read of an App under a revoked token", "revoking a token denies every later call, reads as well",
			func(a *domain.Attempt) {
				a.Capability, a.Exempt = domain.Capability{}, "reads of Apps"
				a.Rights[0].Token.RevokedAt = ptr(noon)
			}, deny, domain.StepPolicy, ""},
		{"a read of an App for a disabled Member", "disabling a Member stops its work, reads as well",
			func(a *domain.Attempt) {
				a.Capability, a.Exempt = domain.Capability{}, "reads of Apps"
				a.Rights[0].Member.DisabledAt = ptr(noon)
			}, deny, domain.StepPolicy, ""},
		{"a read of an App that nobody stands behind", "nobody reads nothing",
			func(a *domain.Attempt) {
				a.Capability, a.Exempt, a.Rights = domain.Capability{}, "reads of Apps", nil
			}, deny, domain.StepPolicy, ""},
		{"a read of an App out of sight", "another Member's App does not exist for this one",
			func(a *domain.Attempt) {
				a.Capability, a.Exempt, a.Visible = domain.Capability{}, "reads of Apps", false
			}, deny, domain.StepPolicy, ""},
		{"an attempt that was never filled", "there is no way from a zero value to allow",
			func(a *domain.Attempt) { *a = domain.Attempt{} }, deny, domain.StepPolicy, ""},
	}
}

func TestCheckDecidesLikeTheLaw(t *testing.T) {
	cases := lawCases()
	if len(cases) < 40 {
		t.Fatalf("only %d cases are left", len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := attempt()
			c.change(&a)
			before := deepCopy(a)
			v := domain.Check(a)
			untouched(t, before, a)
			if v.Outcome != c.outcome || v.Decided.Step != c.step || v.Decided.Grant != c.grant {
				t.Fatalf("the check came to %q by %q %q, want %q by %q %q: %s",
					v.Outcome, v.Decided.Step, v.Decided.Grant, c.outcome, c.step, c.grant, c.because)
			}
			switch v.Outcome {
			case domain.OutcomeAsk:
				if v.Approver != domain.Person(a.Member) || v.Decided != (domain.DecidedBy{}) {
					t.Errorf("a question names its decider and no decision, got %+v", v)
				}
			case domain.OutcomeAllow, domain.OutcomeDeny:
				if v.Decided.AtMs != a.At.UnixMilli() || v.Decided.By.Tag == "" {
					t.Errorf("a decision keeps when and by whom, got %+v", v.Decided)
				}
			}
			if v.Outcome == domain.OutcomeDeny && v.Reason == "" {
				t.Error("a deny says why")
			}
		})
	}
}

// What the check denies, the last look denies too, whatever allowed the call before.
func TestRecheckDeniesWhatTheCheckDenies(t *testing.T) {
	person := domain.DecidedBy{Step: domain.StepDecider, By: domain.Person("mem_1"), Request: "req_1"}
	denied := 0
	for _, c := range lawCases() {
		a := attempt()
		c.change(&a)
		v := domain.Recheck(a, &person, domain.Strength{})
		if c.outcome == domain.OutcomeDeny {
			denied++
			if v.Outcome != domain.OutcomeDeny || v.Decided.Step != c.step {
				t.Errorf("%s: the last look came to %q by %q", c.name, v.Outcome, v.Decided.Step)
			}
		} else if v.Outcome != domain.OutcomeAllow || v.Decided != person {
			t.Errorf("%s: a person's answer is not judged again, but the last look came to %q", c.name, v.Outcome)
		}
	}
	if denied == 0 {
		t.Fatal("no case was denied")
	}
}

func TestRecheckOfWhatAllowedTheCall(t *testing.T) {
	byGrant := domain.DecidedBy{Step: domain.StepGrant, By: domain.ByGrant("grt_allow"), Grant: "grt_allow"}
	settled := domain.DecidedBy{Step: domain.StepDecider, By: domain.ByGrant("grt_allow"), Grant: "grt_allow", Request: "req_1"}
	for _, c := range []struct {
		name, because string
		by            *domain.DecidedBy
		grants        []domain.Grant
		want          domain.Outcome
	}{
		{"no evidence", "a call without a kept decision does not go out", nil, []domain.Grant{allowGrant()}, domain.OutcomeDeny},
		{"empty evidence", "a zero value is no decision", &domain.DecidedBy{}, []domain.Grant{allowGrant()}, domain.OutcomeDeny},
		{"evidence of a deny", "policy only ever denies, so it cannot have allowed", &domain.DecidedBy{Step: domain.StepPolicy, By: domain.Actor{Tag: domain.TagPolicy}}, nil, domain.OutcomeDeny},
		{"an expiry", "nobody answered, so nobody allowed", &domain.DecidedBy{Step: domain.StepDecider, By: domain.Actor{Tag: domain.TagExpiry}}, nil, domain.OutcomeDeny},
		{"an unknown step", "what this binary does not know does not allow", &domain.DecidedBy{Step: "oracle", By: domain.Person("mem_1")}, nil, domain.OutcomeDeny},
		{"its Grant stands", "nothing was taken away", &byGrant, []domain.Grant{allowGrant()}, domain.OutcomeAllow},
		{"its Grant is gone", "a revoked Grant is not loaded any more", &byGrant, nil, domain.OutcomeDeny},
		{"its Grant was revoked", "or it is loaded and says so", &byGrant, []domain.Grant{altered(allowGrant(), func(g *domain.Grant) { g.RevokedAt = ptr(noon) })}, domain.OutcomeDeny},
		{"another Grant stands", "the evidence names one Grant; another was not what allowed it", &byGrant, []domain.Grant{altered(allowGrant(), func(g *domain.Grant) { g.ID = "grt_other" })}, domain.OutcomeDeny},
		{"its Grant holds for another revision", "the Connection changed under the call", &byGrant, []domain.Grant{altered(allowGrant(), func(g *domain.Grant) { g.Revision = 4 })}, domain.OutcomeDeny},
		{"its Grant now denies", "a deny never allows", &byGrant, []domain.Grant{altered(allowGrant(), func(g *domain.Grant) { g.Decision = domain.DecisionDeny })}, domain.OutcomeDeny},
		{"a settled Request, Grant stands", "settling is a Grant's decision too", &settled, []domain.Grant{allowGrant()}, domain.OutcomeAllow},
		{"a settled Request, Grant gone", "so it falls with the Grant", &settled, nil, domain.OutcomeDeny},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := attempt()
			a.Grants = c.grants
			if v := domain.Recheck(a, c.by, domain.Strength{}); v.Outcome != c.want {
				t.Fatalf("the last look came to %q, want %q: %s", v.Outcome, c.want, c.because)
			}
		})
	}
}

func TestPolicyNamesWhatCoveredOrWhyNot(t *testing.T) {
	pattern, ok := domain.Policy([]domain.Rights{fullRights()}, mail)
	if !ok || pattern != "*" {
		t.Errorf("Policy gives %q %v", pattern, ok)
	}
	narrow := fullRights()
	narrow.Token.Scopes = domain.Permissions{"write", "tools.call:*", "apps.call:con_7/*", "*"}
	if pattern, _ := domain.Policy([]domain.Rights{narrow}, mail); pattern != "apps.call:con_7/*" {
		t.Errorf("the first pattern of the token that covers is shown, got %q", pattern)
	}
	if why, ok := domain.Policy(nil, mail); ok || why == "" {
		t.Error("nobody covers nothing, and the reason is said")
	}
}

func TestAuthoritiesAreASet(t *testing.T) {
	list := []domain.Authority{{Member: "mem_1", Token: "tok_1"}}
	before := deepCopy(list)
	more := domain.AddAuthority(list, domain.Authority{Member: "mem_1", Token: "tok_1"}, domain.Authority{Member: "mem_1", Token: "tok_2"}, domain.Authority{Member: "mem_1", Token: "tok_2"})
	untouched(t, before, list)
	if len(more) != 2 || more[1].Token != "tok_2" {
		t.Errorf("the set is %v", more)
	}
}

func TestATokenIsAliveUntilItsEnd(t *testing.T) {
	end := noon.Add(time.Hour)
	token := domain.Token{ExpiresAt: &end}
	if !token.Alive(end.Add(-time.Nanosecond)) || token.Alive(end) || token.Alive(end.Add(1)) {
		t.Error("a token is alive while the time is before its end, and not at it")
	}
	token = domain.Token{RevokedAt: ptr(noon)}
	if token.Alive(noon.Add(-time.Hour)) {
		t.Error("a revoked token is dead whatever the time")
	}
	if !(domain.Token{}).Alive(noon) {
		t.Error("a token without an end lives")
	}
}
