package domain_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"openbot/domain"
	"openbot/model"
)

// decision is one case of who decides: what stands, what is tried, and what it must
// come to. The same cases are driven over HTTP against the whole program.
type decision struct {
	Name, Because string
	Scopes        []string // of the token that starts the work; write and * when absent
	Read          bool     // the organization marked the tool as a read
	Mode          string
	Asker         string // "main", or the Bot below it
	Main          string // what the Main Bot decides: the words after /decide
	Grants        []struct {
		Bot, Decision, Scope, Chat, Tool string
		Revoked, Stale                   bool
	}
	Rules []struct {
		Text, Effect, Bot string
		Off, Deleted      bool
	}
	Want struct {
		Status, Step, By, Quote string
		Endorsed                int
	}
}

func decisions(t *testing.T) []decision {
	t.Helper()
	raw, err := os.ReadFile("testdata/decisions.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []decision
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 80 {
		t.Fatalf("only %d cases are left", len(cases))
	}
	return cases
}

// cast names the Bots of a case.
var cast = map[string]domain.BotID{"main": "bot_main", "asker": "bot_1", "other": "bot_other", "": ""}

// attemptOf is what a Bot of the case tries, in a Chat.
func (c decision) attemptOf(bot domain.BotID, chat domain.ChatID) domain.Attempt {
	rights := fullRights()
	if c.Scopes != nil {
		rights.Token.Scopes = c.Scopes
	}
	a := attempt()
	a.Bot, a.Chat, a.Rights, a.Planning = bot, chat, []domain.Rights{rights}, c.Mode == domain.ModePlan
	if c.Read {
		a.Exempt = mail.Target
	}
	for i, g := range c.Grants {
		kept := domain.Grant{ID: domain.GrantID(fmt.Sprintf("grt_%d", i)), Member: "mem_1", Bot: cast[g.Bot], Capability: mail, Decision: g.Decision,
			Scope: g.Scope, Revision: 3}
		if g.Tool != "" {
			kept.Capability.Target = "con_7/" + g.Tool
		}
		if g.Stale {
			kept.Revision = 2
		}
		if g.Revoked {
			kept.RevokedAt = ptr(noon)
		}
		kept.Chat = map[string]domain.ChatID{"here": "chat_1", "elsewhere": "chat_2", "of main": "chat_3"}[g.Chat]
		if kept.Bot == bot {
			a.Grants = append(a.Grants, kept)
		}
	}
	for i, r := range c.Rules {
		kept := domain.Rule{ID: domain.RuleID(fmt.Sprintf("rul_%d", i)), Member: "mem_1", Bot: cast[r.Bot], Text: r.Text, Effect: r.Effect,
			Enabled: !r.Off, Version: 1}
		if r.Deleted {
			kept.DeletedAt = ptr(noon)
		}
		a.Rules = append(a.Rules, kept)
	}
	return a
}

// judged is the check with the playbook as judge, as often as the check asks for it.
func judged(t *testing.T, a domain.Attempt) domain.Verdict {
	t.Helper()
	v := domain.Check(a)
	if v.Outcome != domain.OutcomeJudge {
		return v
	}
	judge := domain.JudgeCase{Bot: a.Bot, Capability: a.Capability, Tool: "send_email"}
	for _, r := range a.Rules {
		if r.Applies(a.Bot, a.Member) {
			judge.Rules = append(judge.Rules, r)
		}
	}
	first := domain.ModelRequest{Model: "playbook", Purpose: domain.PurposeJudge, Script: domain.Script{Judge: &judge}}
	verdict := domain.AskJudge(first, judge.Rules, func(r domain.ModelRequest) (string, string) {
		reply, err := model.New(model.Options{}).Call(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return reply.Text, ""
	})
	a.Judged = &verdict
	return domain.Check(a)
}

// outcome is where a case ended.
type outcome struct {
	status, quote string
	by            domain.DecidedBy
	endorsed      int
}

// decide plays a case with the pure functions alone.
func (c decision) decide(t *testing.T) outcome {
	t.Helper()
	asker := cast["asker"]
	if c.Asker == "main" {
		asker = cast["main"]
	}
	a := c.attemptOf(asker, "chat_1")
	if asker != cast["main"] {
		a.Deciders = []domain.BotID{cast["main"]}
	}
	v := judged(t, a)
	switch v.Outcome {
	case domain.OutcomeAllow:
		return outcome{status: "succeeded", by: v.Decided, quote: v.Decided.Quote}
	case domain.OutcomeDeny:
		return outcome{status: "denied", by: v.Decided, quote: v.Decided.Quote}
	}
	r := pendingRequest()
	r.Approver, r.Chain = v.Approver, []domain.BotID{cast["main"], asker}
	if r.Approver.Tag == domain.TagBot {
		r.Review = "chat_9"
		r = c.review(t, r)
	}
	out := outcome{status: "waiting", endorsed: len(r.Endorsements)}
	if r.Status != domain.RequestPending {
		out.by = domain.DecidedBy{Step: domain.StepDecider, By: r.Decision.By}
		out.status = map[domain.RequestStatus]string{domain.RequestAllowed: "succeeded", domain.RequestDenied: "denied"}[r.Status]
	} else if r.Approver != domain.Person("mem_1") {
		t.Fatalf("the Request waits for %+v", r.Approver)
	}
	return out
}

func (c decision) review(t *testing.T, r domain.Request) domain.Request {
	t.Helper()
	next := r.NextDecider(func(domain.BotID) bool { return false })
	said := strings.Fields(c.Main)
	var ev domain.RequestEvent = domain.Passed{At: noon, Bot: cast["main"], Next: next}
	if len(said) == 2 {
		ev = domain.Reviewed{At: noon, Chat: r.Review, Bot: cast["main"], Decision: said[0], Scope: said[1],
			Holds: judged(t, c.attemptOf(cast["main"], "")), Next: next, GrantID: "grt_new"}
	}
	decided, _, err := domain.DecideRequest(r, ev)
	if err != nil {
		t.Fatal(err)
	}
	return decided
}

func TestWhoDecidesWhat(t *testing.T) {
	names := map[string]bool{}
	for _, c := range decisions(t) {
		t.Run(c.Name, func(t *testing.T) {
			if names[c.Name] || c.Because == "" {
				t.Fatal("the case has no name of its own, or no reason")
			}
			names[c.Name] = true
			got := c.decide(t)
			if got.status != c.Want.Status || string(got.by.Step) != c.Want.Step || got.by.By.Tag != c.Want.By || got.endorsed != c.Want.Endorsed ||
				c.Want.Quote != "" && got.quote != c.Want.Quote {
				t.Errorf("%s\ngot  %+v\nwant %+v", c.Because, got, c.Want)
			}
		})
	}
}
