package domain_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"openbot/domain"
)

func appCall() domain.Call { return domain.Call{Kind: domain.CallApp, Capability: mail} }

func TestTagsOfACall(t *testing.T) {
	yes, no := ptr(true), ptr(false)
	host := &domain.HostTool{Name: "deploy", Tags: []string{"execute_code", "network"}}
	for _, c := range []struct {
		name  string
		call  domain.Call
		given []domain.ToolTags
		hints domain.AppHints
		host  *domain.HostTool
		want  []string
	}{
		{"untagged", appCall(), nil, domain.AppHints{}, nil, []string{"write", "network"}},
		{"tagged", appCall(), []domain.ToolTags{{Tool: "con_7/*", Tags: []string{"external_send"}}}, domain.AppHints{}, nil, []string{"external_send"}},
		{"tagged with nothing", appCall(), []domain.ToolTags{{Tool: "con_7/*"}}, domain.AppHints{}, nil, []string{"write", "network"}},
		{"another tool's tags", appCall(), []domain.ToolTags{{Tool: "con_8/*", Tags: []string{"read"}}}, domain.AppHints{}, nil, []string{"write", "network"}},
		{"two patterns", appCall(), []domain.ToolTags{{Tool: "*", Tags: []string{"publish", "read"}}, {Tool: "con_7/send_email", Tags: []string{"read", "spend"}}},
			domain.AppHints{}, nil, []string{"read", "publish", "spend"}},
		{"says that it reads", appCall(), nil, domain.AppHints{ReadOnly: yes}, nil, []string{"write", "network"}},
		{"says that it writes", appCall(), []domain.ToolTags{{Tool: "*", Tags: []string{"read"}}}, domain.AppHints{ReadOnly: no}, nil, []string{"read", "write"}},
		{"says that it destroys", appCall(), nil, domain.AppHints{ReadOnly: yes, Destructive: yes}, nil, []string{"write", "delete", "network"}},
		{"says that it destroys nothing", appCall(), nil, domain.AppHints{Destructive: no, OpenWorld: no, Idempotent: yes}, nil, []string{"write", "network"}},
		{"says that it reaches out", appCall(), []domain.ToolTags{{Tool: "*", Tags: []string{"read"}}}, domain.AppHints{OpenWorld: yes}, nil, []string{"read", "network"}},
		{"a host tool", domain.Call{Kind: domain.CallHost, Capability: domain.Capability{Action: domain.ActionToolsCall, Target: "deploy"}}, nil, domain.AppHints{}, host,
			[]string{"execute_code", "network"}},
		{"a host tool without tags", domain.Call{Kind: domain.CallHost, Capability: domain.Capability{Action: domain.ActionToolsCall, Target: "deploy"}}, nil,
			domain.AppHints{}, &domain.HostTool{}, []string{}},
		{"a host tool and a pattern over all", domain.Call{Kind: domain.CallHost, Capability: domain.Capability{Action: domain.ActionToolsCall, Target: "deploy"}},
			[]domain.ToolTags{{Tool: "*", Tags: []string{"publish"}}}, domain.AppHints{}, host, []string{"publish", "execute_code", "network"}},
		{"a message to another chat of a Channel", domain.Call{Kind: domain.CallOwn, Capability: domain.Capability{Action: domain.ActionChannelsSend, Target: "chn_1"}}, nil,
			domain.AppHints{}, nil, []string{"external_send"}},
		{"a helper", domain.Call{Kind: domain.CallOwn, Capability: domain.Capability{Action: domain.ActionBotsSpawn, Target: "*"}},
			[]domain.ToolTags{{Tool: "*", Tags: []string{"publish"}}}, domain.AppHints{}, nil, []string{}},
		{"a resource", domain.Call{Kind: domain.CallResource}, []domain.ToolTags{{Tool: "*", Tags: []string{"publish"}}}, domain.AppHints{}, nil, []string{}},
	} {
		s := domain.DefaultSettings()
		s.ToolTags = c.given
		if got := s.CallTags(c.call, c.hints, c.host); !slices.Equal(got, c.want) {
			t.Errorf("%s: the tags are %v, want %v", c.name, got, c.want)
		}
	}
}

func TestThereAreElevenTags(t *testing.T) {
	if len(domain.Tags) != 11 || slices.Index(domain.Tags, "") >= 0 {
		t.Errorf("the tags are %v", domain.Tags)
	}
}

func TestALineThatCannotBeReadDenies(t *testing.T) {
	s := domain.DefaultSettings()
	s.TagPolicy = map[string]string{"read": "allow"}
	if line := s.TagLine([]string{"write", "read"}); line != (domain.TagLine{Tag: "read", Effect: domain.TagEffectDeny}) {
		t.Errorf("the line is %s", line)
	}
	if line := s.TagLine(nil); line != (domain.TagLine{}) {
		t.Errorf("without tags the line is %s", line)
	}
}

var (
	someTags  = rapid.SliceOfNDistinct(rapid.SampledFrom(domain.Tags), 0, 4, rapid.ID[string])
	anEffect  = rapid.SampledFrom([]string{"ask", "release", "human", "deny"})
	someHint  = rapid.SampledFrom([]*bool{nil, ptr(true), ptr(false)})
	strictest = []domain.TagEffect{"", domain.TagEffectRelease, domain.TagEffectAsk, domain.TagEffectHuman, domain.TagEffectDeny}
)

func drawSettings(t *rapid.T) domain.Settings {
	s := domain.DefaultSettings()
	s.TagPolicy = rapid.MapOfN(rapid.SampledFrom(domain.Tags), anEffect, 0, 6).Draw(t, "policy")
	s.TaintedTags = rapid.SliceOfNDistinct(rapid.SampledFrom(domain.Tags), 0, 6, rapid.ID[string]).Draw(t, "tainted tags")
	if given := someTags.Draw(t, "given"); len(given) > 0 {
		s.ToolTags = []domain.ToolTags{{Tool: mail.Target, Tags: given}}
	}
	return s
}

func drawHints(t *rapid.T) domain.AppHints {
	return domain.AppHints{ReadOnly: someHint.Draw(t, "readOnly"), Destructive: someHint.Draw(t, "destructive"),
		Idempotent: someHint.Draw(t, "idempotent"), OpenWorld: someHint.Draw(t, "openWorld")}
}

// An App gains nothing by its hints: whatever it says of itself, its calls have the tags
// that they had, and the line of the tag policy is never milder.
func TestHintsNeverHelpTheApp(t *testing.T) {
	added := 0
	rapid.Check(t, func(t *rapid.T) {
		s, hints := drawSettings(t), drawHints(t)
		plain, hinted := s.CallTags(appCall(), domain.AppHints{}, nil), s.CallTags(appCall(), hints, nil)
		for _, tag := range plain {
			if !slices.Contains(hinted, tag) {
				t.Fatalf("the hints %+v took %s away from %v", hints, tag, plain)
			}
		}
		if len(hinted) > len(plain) {
			added++
		}
		if slices.Contains(hinted, "read") && !slices.Contains(plain, "read") {
			t.Fatal("an App gave itself the tag read")
		}
		if before, after := s.TagLine(plain), s.TagLine(hinted); slices.Index(strictest, after.Effect) < slices.Index(strictest, before.Effect) {
			t.Fatalf("the hints made %s of %s", after, before)
		}
		if before, after := s.Caution(plain, fromApp("con_7", "chat_1")), s.Caution(hinted, fromApp("con_7", "chat_1")); before.TaintedTag != "" && after.TaintedTag == "" {
			t.Fatal("the hints took the call off the list of tags that taint touches")
		}
	})
	if added == 0 {
		t.Error("no hint added a tag")
	}
}

// drawAttempt is an attempt with tags, taint, Grants and what exempts it.
func drawAttempt(t *rapid.T) domain.Attempt {
	s := drawSettings(t)
	a := attempt()
	var taint domain.Taint
	for _, connection := range rapid.SliceOfNDistinct(rapid.SampledFrom([]domain.ConnectionID{"con_1", "con_2", "con_3"}), 0, 3, rapid.ID[domain.ConnectionID]).Draw(t, "taint") {
		taint = taint.With(fromApp(connection, "chat_1")...)
	}
	a.Caution = s.Caution(s.CallTags(appCall(), drawHints(t), nil), taint)
	if rapid.Bool().Draw(t, "exempt") {
		a.Exempt = "con_7/*"
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "grants") {
		g := allowGrant()
		g.ID = domain.GrantID(fmt.Sprintf("grt_%d", i))
		g.Source = rapid.SampledFrom([]string{domain.SourceRequest, domain.SourceRequest, domain.SourcePerson, domain.SourceEndorsement}).Draw(t, "source")
		if rapid.Bool().Draw(t, "shown") {
			g.ShownIn = rapid.SampledFrom([]domain.ChatID{"chat_1", "chat_1", "chat_2"}).Draw(t, "shown in")
			g.Shown = fromApp("con_1", g.ShownIn)
			if rapid.Bool().Draw(t, "all shown") {
				g.Shown = taint
			}
		}
		if rapid.IntRange(0, 5).Draw(t, "deny") == 0 {
			g.Decision = domain.DecisionDeny
		}
		a.Grants = append(a.Grants, g)
	}
	if rapid.Bool().Draw(t, "rules") {
		rule := mailRule()
		judged := domain.ReadVerdict([]domain.Rule{rule}, `{"quotes":[{"rule":"rul_1","verdict":"allow","quote":"Allow send_email to colleagues."}]}`)
		a.Rules, a.Judged = []domain.Rule{rule}, &judged
	}
	return a
}

// What keeps a call with a decider keeps it there, whatever else stands.
func TestNothingReleasesWhatIsHeldBack(t *testing.T) {
	reached := map[string]int{}
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		a := drawAttempt(t)
		before := deepCopy(a)
		v := domain.Check(a)
		untouched(t, before, a)
		line, tainted := a.TagLine.Effect, len(a.Taint) > 0 && a.TaintedTag != ""
		reached[string(v.Outcome)]++
		switch {
		case line == domain.TagEffectDeny:
			if v.Outcome != domain.OutcomeDeny || v.Decided.Step != domain.StepPolicy || v.Decided.Pattern != a.TagLine.String() {
				t.Fatalf("the tag policy denies, and the check came to %+v", v)
			}
		case line == domain.TagEffectHuman:
			reached["human"]++
			if v.Outcome == domain.OutcomeAllow {
				t.Fatalf("a call for people alone was allowed by %+v", v.Decided)
			}
		case tainted && v.Outcome == domain.OutcomeAllow:
			reached["shown"]++
			at := slices.IndexFunc(a.Grants, func(g domain.Grant) bool { return g.ID == v.Decided.Grant })
			if v.Decided.Step != domain.StepGrant || at < 0 {
				t.Fatalf("a tainted call was allowed by %+v", v.Decided)
			}
			if g := a.Grants[at]; g.ShownIn != a.Chat || g.Source != domain.SourceRequest || !a.Taint.Within(g.Shown) {
				t.Fatalf("a tainted call was allowed by %+v", g)
			}
		case tainted:
			reached["tainted"]++
		}
		if v.Outcome == domain.OutcomeAllow && v.Decided.Step == domain.StepExemption && a.Exempt == "" {
			reached["released"]++
			for _, tag := range a.Tags {
				if tag != "" && line != domain.TagEffectRelease {
					t.Fatalf("%v was released by %s", a.Tags, a.TagLine)
				}
			}
		}
		// Less taint and fewer tags on the list never make the outcome stricter.
		clean := a
		clean.Taint = nil
		if v.Outcome == domain.OutcomeAllow && domain.Check(clean).Outcome != domain.OutcomeAllow {
			t.Fatal("a clean Chat may do less than a tainted one")
		}
		// The last look never lets through what the check would not, but for a person.
		by := domain.DecidedBy{Step: domain.StepDecider, By: domain.ByBot("bot_0")}
		if last := domain.Recheck(a, &by, domain.Strength{}); (tainted || line == domain.TagEffectHuman) && last.Outcome == domain.OutcomeAllow {
			t.Fatal("the last look let a Bot's allow through")
		}
		by.By = domain.Person("mem_1")
		if last := domain.Recheck(a, &by, domain.Strength{}); last.Outcome == domain.OutcomeAsk {
			t.Fatal("the last look asks again after a person's answer")
		}
		if v.Outcome == domain.OutcomeAllow {
			if last := domain.Recheck(a, &v.Decided, domain.Strength{Rule: ptr(mailRule())}); last.Outcome != domain.OutcomeAllow {
				t.Fatalf("what %+v allowed is %s at the last look", v.Decided, last.Outcome)
			}
		}
	})
	reachedAll(t, reached, checks, "allow", "deny", "ask", "human", "shown", "tainted", "released")
}
