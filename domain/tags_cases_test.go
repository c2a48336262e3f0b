package domain_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"openbot/domain"
)

// tagCase is one case of tags and taint: what stands, what the Chat has read, and what a
// call of send_email must come to. Part of them are driven over HTTP as well.
type tagCase struct {
	Name, Because string
	HTTP          bool
	Tags          []string // that the organization gave the tool
	Hints         domain.AppHints
	Policy        map[string]string // lines over the defaults
	TaintedTags   *[]string
	Read          bool // the organization marked the tool as a read
	Mode          string
	Taint         string // what the Chat has read: "", "app", "two" Apps, or a "trusted" one
	Asker         string // "" is the Main Bot, "below" a Bot that it owns
	Main          string // what the Main Bot decides: the words after /decide
	Grants        []struct{ Bot, Decision, Scope, Given string }
	Rules         []struct{ Text, Effect string }
	Want          struct {
		Status, Step, By, Pattern, Line string
		Tags                            []string
		Endorsed                        int
	}
}

func tagCases(t *testing.T) []tagCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/tags.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []tagCase
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 60 {
		t.Fatalf("only %d cases are left", len(cases))
	}
	return cases
}

// fromApp is the taint of an answer of a Connection.
func fromApp(connection domain.ConnectionID, chat domain.ChatID) domain.Taint {
	return domain.DefaultSettings().Source(domain.Call{Kind: domain.CallApp, Connection: connection, Chat: chat}, nil, noon.UnixMilli())
}

// caution is what the tags and the taint of the case come to.
func (c tagCase) caution() domain.Caution {
	s := domain.DefaultSettings()
	s.ToolTags = []domain.ToolTags{{Tool: mail.Target, Tags: c.Tags}}
	for tag, effect := range c.Policy {
		s.TagPolicy[tag] = effect
	}
	if c.TaintedTags != nil {
		s.TaintedTags = *c.TaintedTags
	}
	if c.Taint == "trusted" {
		s.TrustedSources = []string{"con_7"}
	}
	var taint domain.Taint
	if c.Taint != "" {
		taint = s.Source(domain.Call{Kind: domain.CallApp, Connection: "con_7", Chat: "chat_1"}, nil, noon.UnixMilli())
	}
	if c.Taint == "two" {
		taint = taint.With(fromApp("con_8", "chat_1")...)
	}
	return s.Caution(s.CallTags(domain.Call{Kind: domain.CallApp, Capability: mail}, c.Hints, nil), taint)
}

func (c tagCase) attemptOf(bot domain.BotID, chat domain.ChatID) domain.Attempt {
	a := attempt()
	a.Bot, a.Chat, a.Caution, a.Planning = bot, chat, c.caution(), c.Mode == domain.ModePlan
	if c.Read {
		a.Exempt = mail.Target
	}
	for i, g := range c.Grants {
		kept := domain.Grant{ID: domain.GrantID(fmt.Sprintf("grt_%d", i)), Member: "mem_1", Bot: "bot_main", Capability: mail, Decision: g.Decision,
			Scope: g.Scope, Revision: 3, Source: domain.SourceRequest}
		if kept.Scope == domain.ScopeChat {
			kept.Chat = "chat_1"
		}
		switch g.Given {
		case "by hand":
			kept.Source = domain.SourcePerson
		case "here tainted":
			kept.Shown, kept.ShownIn = fromApp("con_7", "chat_1"), "chat_1"
		case "elsewhere tainted":
			kept.Shown, kept.ShownIn = fromApp("con_7", "chat_2"), "chat_2"
		}
		if kept.Bot == bot {
			a.Grants = append(a.Grants, kept)
		}
	}
	for i, r := range c.Rules {
		a.Rules = append(a.Rules, domain.Rule{ID: domain.RuleID(fmt.Sprintf("rul_%d", i)), Text: r.Text, Effect: r.Effect, Enabled: true, Version: 1})
	}
	return a
}

func (c tagCase) decide(t *testing.T) (outcome, domain.Verdict) {
	t.Helper()
	asker := domain.BotID("bot_main")
	if c.Asker == "below" {
		asker = "bot_1"
	}
	a := c.attemptOf(asker, "chat_1")
	if c.Asker == "below" {
		a.Deciders = []domain.BotID{"bot_main"}
	}
	v := judged(t, a)
	switch v.Outcome {
	case domain.OutcomeAllow:
		return outcome{status: "succeeded", by: v.Decided}, v
	case domain.OutcomeDeny:
		return outcome{status: "denied", by: v.Decided}, v
	}
	r := pendingRequest()
	r.Approver, r.Chain, r.Bot = v.Approver, []domain.BotID{"bot_main", asker}, asker
	r.Tags, r.TagLine, r.Taint, r.TaintedTag = v.Caution.Tags, v.Caution.TagLine, v.Caution.Taint, v.Caution.TaintedTag
	if said := strings.Fields(c.Main); len(said) == 2 && r.Approver == domain.ByBot("bot_main") {
		r.Review = "chat_9"
		next := r.NextDecider(func(domain.BotID) bool { return false })
		decided, _, err := domain.DecideRequest(r, domain.Reviewed{At: noon, Chat: r.Review, Bot: "bot_main", Decision: said[0], Scope: said[1],
			Holds: judged(t, c.attemptOf("bot_main", "").Asked()), Next: next, GrantID: "grt_new"})
		if err != nil {
			t.Fatal(err)
		}
		r = decided
	}
	out := outcome{status: "waiting", endorsed: len(r.Endorsements)}
	if r.Status != domain.RequestPending {
		out.by = domain.DecidedBy{Step: domain.StepDecider, By: r.Decision.By}
		out.status = map[domain.RequestStatus]string{domain.RequestAllowed: "succeeded", domain.RequestDenied: "denied"}[r.Status]
	}
	return out, v
}

func TestWhatTagsAndTaintComeTo(t *testing.T) {
	names := map[string]bool{}
	for _, c := range tagCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			if names[c.Name] || c.Because == "" {
				t.Fatal("the case has no name of its own, or no reason")
			}
			names[c.Name] = true
			got, v := c.decide(t)
			want := c.Want
			if got.status != want.Status || string(got.by.Step) != want.Step || got.by.By.Tag != want.By || got.endorsed != want.Endorsed ||
				want.Pattern != "" && got.by.Pattern != want.Pattern {
				t.Errorf("%s\ngot  %+v\nwant %+v", c.Because, got, want)
			}
			if want.Status == "waiting" && !slices.Equal(v.Caution.Tags, want.Tags) || want.Line != "" && v.Caution.TagLine.String() != want.Line {
				t.Errorf("%s\nthe Request shows %v by %s", c.Because, v.Caution.Tags, v.Caution.TagLine)
			}
			explained := slices.ContainsFunc(v.Evidence, func(f domain.Finding) bool {
				return strings.Contains(f.Found, "tagPolicy") || strings.Contains(f.Found, "tag policy")
			})
			if !explained && got.by.Pattern == "" {
				t.Errorf("no finding names the line of the tag policy: %+v", v.Evidence)
			}
		})
	}
}

// What must be decided anew is decided by the check: no call goes round and round.
func TestTheLastLookAndTheCheckAgree(t *testing.T) {
	anew := 0
	for _, c := range tagCases(t) {
		a := c.attemptOf("bot_main", "chat_1")
		for _, by := range []domain.DecidedBy{
			{Step: domain.StepExemption, By: domain.Actor{Tag: domain.TagExemption}},
			{Step: domain.StepGrant, By: domain.ByGrant("grt_0"), Grant: "grt_0"},
			{Step: domain.StepDecider, By: domain.ByGrant("grt_0"), Grant: "grt_0"},
			{Step: domain.StepDecider, By: domain.ByBot("bot_main")},
			{Step: domain.StepDecider, By: domain.Person("mem_1")},
		} {
			v := domain.Recheck(a, &by, domain.Strength{})
			if checked := judged(t, a); v.Outcome == domain.OutcomeAsk && checked.Outcome == domain.OutcomeAllow {
				if again := domain.Recheck(a, &checked.Decided, domain.Strength{}); again.Outcome == domain.OutcomeAsk {
					t.Errorf("%s: what %+v allowed is checked anew for ever", c.Name, checked.Decided)
				}
			}
			if v.Outcome == domain.OutcomeAsk {
				anew++
				if by.By.Tag == domain.TagPerson {
					t.Errorf("%s: a person's answer is asked for again", c.Name)
				}
			}
		}
	}
	if anew < 20 {
		t.Errorf("only %d last looks came to a question", anew)
	}
}
