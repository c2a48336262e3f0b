package domain_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"openbot/domain"
)

func TestDefaultSettingsFit(t *testing.T) {
	if faults := domain.DefaultSettings().Faults(); faults != nil {
		t.Fatalf("the defaults have faults: %v", faults)
	}
}

func TestSettingsThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		path   string
		change func(*domain.Settings)
	}{
		{"requestTimeoutMs", func(s *domain.Settings) { s.RequestTimeoutMs = 999 }},
		{"requestTimeoutMs", func(s *domain.Settings) { s.RequestTimeoutMs = 30*24*3600*1000 + 1 }},
		{"requestTimeoutMs", func(s *domain.Settings) { s.RequestTimeoutMs = 0 }},
		{"requestTimeoutMs", func(s *domain.Settings) { s.RequestTimeoutMs = -1 }},
		{"delegationTimeLimitMs", func(s *domain.Settings) { s.DelegationTimeLimitMs = 0 }},
		{"appReadRules[0]", func(s *domain.Settings) { s.AppReadRules = []string{"list"} }},
		{"appReadRules[1]", func(s *domain.Settings) { s.AppReadRules = []string{"con_7/list_*", ""} }},
		{"appReadRules[0]", func(s *domain.Settings) { s.AppReadRules = []string{"/list"} }},
		{"appReadRules[0]", func(s *domain.Settings) { s.AppReadRules = []string{"con_7/"} }},
		{"repeatSafeRules[0]", func(s *domain.Settings) { s.RepeatSafeRules = []string{"con_7/" + strings.Repeat("x", 500)} }},
		{"toolTags[0].tool", func(s *domain.Settings) { s.ToolTags = []domain.ToolTags{{Tool: "x", Tags: []string{"read"}}} }},
		{"toolTags[0].tags[0]", func(s *domain.Settings) { s.ToolTags = []domain.ToolTags{{Tool: "*", Tags: []string{"reading"}}} }},
		{"tagPolicy.spending", func(s *domain.Settings) { s.TagPolicy = map[string]string{"spending": "ask"} }},
		{"tagPolicy.spend", func(s *domain.Settings) { s.TagPolicy = map[string]string{"spend": "allow"} }},
		{"tagPolicy.spend", func(s *domain.Settings) { s.TagPolicy = map[string]string{"spend": ""} }},
		{"taintedTags[0]", func(s *domain.Settings) { s.TaintedTags = []string{"*"} }},
		{"trustedSources[0]", func(s *domain.Settings) { s.TrustedSources = []string{"con_7"} }},
		{"resourceTemplates[0].template", func(s *domain.Settings) { s.ResourceTemplates = []domain.ResourceTemplate{{Tool: "con_7/x"}} }},
		{"toolTags[0].tags", func(s *domain.Settings) {
			s.ToolTags = []domain.ToolTags{{Tool: "*", Tags: append([]string{"read"}, domain.Tags...)}}
		}},
		{"toolTags", func(s *domain.Settings) {
			s.ToolTags = slices.Repeat([]domain.ToolTags{{Tool: "*", Tags: []string{"read"}}}, 1001)
		}},
		{"taintedTags", func(s *domain.Settings) { s.TaintedTags = append([]string{"read"}, domain.Tags...) }},
		{"trustedSources", func(s *domain.Settings) { s.TrustedSources = slices.Repeat([]string{"con_" + hex32}, 1001) }},
		{"trustedSources[1]", func(s *domain.Settings) { s.TrustedSources = []string{"hook_" + hex32, "bot_" + hex32} }},
		{"resourceTemplates[0].tool", func(s *domain.Settings) {
			s.ResourceTemplates = []domain.ResourceTemplate{{Tool: "mail", Template: "mail:{to}"}}
		}},
		{"resourceTemplates", func(s *domain.Settings) {
			s.ResourceTemplates = slices.Repeat([]domain.ResourceTemplate{{Tool: "*", Template: "x"}}, 1001)
		}},
		{"redaction.keys[0]", func(s *domain.Settings) { s.Redaction.Keys = []string{""} }},
		{"redaction.keys[1]", func(s *domain.Settings) { s.Redaction.Keys = []string{"pin", strings.Repeat("x", 101)} }},
		{"redaction.keys", func(s *domain.Settings) { s.Redaction.Keys = slices.Repeat([]string{"pin"}, 1001) }},
		{"rateLimits.approvalsPerOrganization", func(s *domain.Settings) { s.RateLimits.ApprovalsPerOrganization = 1_000_001 }},
		{"modelPrices.m", func(s *domain.Settings) {
			s.ModelPrices = map[string]domain.SettingPrice{"m": {InputMicrosPerToken: -0.1}}
		}},
		{"modelPrices.m", func(s *domain.Settings) {
			s.ModelPrices = map[string]domain.SettingPrice{"m": {OutputMicrosPerToken: math.NaN()}}
		}},
		{"modelPrices.m", func(s *domain.Settings) {
			s.ModelPrices = map[string]domain.SettingPrice{"m": {CachedInputMicrosPerToken: ptr(math.Inf(1))}}
		}},
		{"rateLimits.approvalsPerKey", func(s *domain.Settings) { s.RateLimits.ApprovalsPerKey = 0 }},
		{"rateLimits.v1PerKey", func(s *domain.Settings) { s.RateLimits.V1PerKey = ptr(0) }},
		{"rateLimits.failedAuthPerAddress", func(s *domain.Settings) { s.RateLimits.FailedAuthPerAddress = -5 }},
		{"escalation.afterMs", func(s *domain.Settings) {
			s.Escalation = &domain.Escalation{Member: domain.MemberID("mem_" + strings.Repeat("0", 32))}
		}},
		{"escalation.member", func(s *domain.Settings) { s.Escalation = &domain.Escalation{AfterMs: 60_000, Member: "mem_1"} }},
	} {
		s := domain.DefaultSettings()
		c.change(&s)
		faults := s.Faults()
		if len(faults) != 1 || faults[0].Path != c.path || faults[0].Message == "" {
			t.Errorf("want one fault at %s, got %v", c.path, faults)
		}
	}
}

func TestEverySettingFaultIsListedAtOnceAndInOrder(t *testing.T) {
	s := domain.Settings{TagPolicy: map[string]string{"b": "x", "a": "y"}}
	first := s.Faults()
	if len(first) < 8 {
		t.Fatalf("only %d faults of empty settings: %v", len(first), first)
	}
	for i := 1; i < len(first); i++ {
		if first[i-1].Path > first[i].Path {
			t.Errorf("%s stands before %s", first[i-1].Path, first[i].Path)
		}
	}
}

func TestReadsAreSafeToRepeat(t *testing.T) {
	s := domain.DefaultSettings()
	s.AppReadRules, s.RepeatSafeRules = []string{"con_7/list_*"}, []string{"con_7/create_*"}
	for target, want := range map[string][2]bool{
		"con_7/list_all": {true, true}, "con_7/create_one": {false, true}, "con_7/delete": {false, false}, "con_8/list_all": {false, false}, "": {false, false},
	} {
		if s.IsRead(target) != want[0] || s.IsRepeatSafe(target) != want[1] {
			t.Errorf("%q: read %v, repeat %v", target, s.IsRead(target), s.IsRepeatSafe(target))
		}
	}
}

func TestPricesAreExact(t *testing.T) {
	s := domain.DefaultSettings()
	s.ModelPrices = map[string]domain.SettingPrice{"m": {InputMicrosPerToken: 0.000001, OutputMicrosPerToken: 1.1, CachedInputMicrosPerToken: ptr(0.0)}}
	p, ok := s.Price("m")
	if !ok || p.Input != 1 || p.Output != 1_100_000 || *p.CachedInput != 0 || p.CacheWrite != nil {
		t.Fatalf("the price is %+v", p)
	}
	if _, ok := s.Price("other"); ok {
		t.Error("a model without a price has none")
	}
	for _, c := range []struct {
		price domain.ModelPrice
		usage domain.ModelUsage
		nanos int64
	}{
		{domain.ModelPrice{}, domain.ModelUsage{InputTokens: 1e6, OutputTokens: 1e6}, 0},
		{domain.ModelPrice{Input: 499}, domain.ModelUsage{InputTokens: 1}, 0},
		{domain.ModelPrice{Input: 500}, domain.ModelUsage{InputTokens: 1}, 1}, // half up
		{domain.ModelPrice{Input: 1}, domain.ModelUsage{InputTokens: 1499}, 1},
		{domain.ModelPrice{Input: 1}, domain.ModelUsage{InputTokens: 1500}, 2}, // rounded once, not for each token
		{domain.ModelPrice{Input: 1000, Output: 3000}, domain.ModelUsage{InputTokens: 10, OutputTokens: 5}, 25},
		{domain.ModelPrice{Input: 1000, CachedInput: ptr(int64(100))}, domain.ModelUsage{InputTokens: 10, CachedInputTokens: 10}, 1},
		{domain.ModelPrice{Input: 1000}, domain.ModelUsage{InputTokens: 10, CachedInputTokens: 10}, 10},
		{domain.ModelPrice{Input: 1000, CachedInput: ptr(int64(0)), CacheWrite: ptr(int64(2000))}, domain.ModelUsage{InputTokens: 10, CachedInputTokens: 4, CacheWriteTokens: 3}, 9},
	} {
		if got := c.price.CostNanos(c.usage); got != c.nanos {
			t.Errorf("%+v of %+v costs %d nano-USD, want %d", c.usage, c.price, got, c.nanos)
		}
	}
	for nanos, micros := range map[int64]int64{0: 0, 499: 0, 500: 1, 1499: 1, 1500: 2, 1_000_000: 1000} {
		if got := domain.MicrosFromNanos(nanos); got != micros {
			t.Errorf("%d nano-USD are %d micro-USD, want %d", nanos, got, micros)
		}
	}
}

// A model server says how many tokens it counted; one that lies must not turn a
// cost negative, which would give a budget back.
func TestCostsNeverTurnAround(t *testing.T) {
	dear := domain.ModelPrice{Input: 1e12, Output: 1e12, CachedInput: ptr(int64(1e12)), CacheWrite: ptr(int64(1e12))}
	last := int64(0)
	for tokens := int64(1); tokens > 0; tokens *= 7 {
		for _, u := range []domain.ModelUsage{{InputTokens: tokens}, {InputTokens: tokens, CachedInputTokens: tokens / 2, CacheWriteTokens: tokens / 2}, {InputTokens: tokens, OutputTokens: tokens}} {
			cost := dear.CostNanos(u)
			if cost < last {
				t.Fatalf("%+v costs %d, less than fewer tokens did", u, cost)
			}
			last = cost
		}
		if tokens > math.MaxInt64/7 {
			break
		}
	}
	turn := domain.Turn{Status: domain.TurnRunning, InputTokens: math.MaxInt64 - 1, OutputTokens: math.MaxInt64 - 1, CostNanos: math.MaxInt64 - 1}
	next, err := domain.DecideTurn(turn, domain.StepWithText{At: noon, Usage: domain.ModelUsage{InputTokens: 10, OutputTokens: 10}, Cost: 10})
	if err != nil || next.InputTokens < 0 || next.OutputTokens < 0 || next.CostNanos < 0 {
		t.Errorf("the sums of a Turn turned around: %d %d %d", next.InputTokens, next.OutputTokens, next.CostNanos)
	}
}

func TestValidIDs(t *testing.T) {
	good := "req_" + "0123456789abcdef0123456789abcdef"
	for id, want := range map[string]bool{
		good: true, "": false, "req_": false, good + "0": false, good[:len(good)-1]: false, strings.ToUpper(good): false,
		"REQ" + good[3:]: false, "bot" + good[3:]: false, good[:5] + "g" + good[6:]: false, " " + good: false, good + "\n": false,
		"req_01234567-89abcdef0123456789abcde": false, "req_" + strings.Repeat("é", 16): false,
	} {
		if domain.ValidID(id, domain.PrefixRequest) != want {
			t.Errorf("ValidID(%q) is not %v", id, want)
		}
	}
}
