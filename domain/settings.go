package domain

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Settings are what an organization chose. They are checked as a whole; each
// named setting is replaced whole.
type Settings struct {
	RequestTimeoutMs      int64                   `json:"requestTimeoutMs"`
	DelegationTimeLimitMs int64                   `json:"delegationTimeLimitMs"`
	AppReadRules          []string                `json:"appReadRules"`
	RepeatSafeRules       []string                `json:"repeatSafeRules"`
	ToolTags              []ToolTags              `json:"toolTags"`
	TagPolicy             map[string]string       `json:"tagPolicy"`
	TaintedTags           []string                `json:"taintedTags"`
	TrustedSources        []string                `json:"trustedSources"`
	ResourceTemplates     []ResourceTemplate      `json:"resourceTemplates"`
	Redaction             Redaction               `json:"redaction"`
	Reviewer              Reviewer                `json:"reviewer"`
	JudgeModel            *string                 `json:"judgeModel"`
	ModelPrices           map[string]SettingPrice `json:"modelPrices"`
	RateLimits            RateLimits              `json:"rateLimits"`
	Escalation            *Escalation             `json:"escalation"`
	RemindBeforeMs        *int64                  `json:"remindBeforeMs"`
}

// Redaction says what is masked for scripts besides secrets, which always are: what
// stands under more names, mail addresses and telephone numbers.
type Redaction struct {
	Keys  []string `json:"keys"`
	Mail  bool     `json:"mail"`
	Phone bool     `json:"phone"`
}

// Reviewer turns the automatic reviewer on.
type Reviewer struct {
	Enabled bool `json:"enabled"`
}

// SettingPrice is a price in micro-USD a token, decimals allowed.
type SettingPrice struct {
	InputMicrosPerToken       float64  `json:"inputMicrosPerToken"`
	OutputMicrosPerToken      float64  `json:"outputMicrosPerToken"`
	CachedInputMicrosPerToken *float64 `json:"cachedInputMicrosPerToken,omitempty"`
}

// RateLimits are events a minute; nil is no limit.
type RateLimits struct {
	ApprovalsPerKey          int  `json:"approvalsPerKey"`
	ApprovalsPerOrganization int  `json:"approvalsPerOrganization"`
	FailedAuthPerAddress     int  `json:"failedAuthPerAddress"`
	V1PerKey                 *int `json:"v1PerKey"`
}

// Escalation lets a second Member see and answer what the first left open.
type Escalation struct {
	AfterMs int64    `json:"afterMs"`
	Member  MemberID `json:"member"`
}

// Bounds of settings.
const (
	minRequestTimeoutMs = 1000
	maxRequestTimeoutMs = 30 * 24 * 3600 * 1000
	maxSettingEntries   = 1000
	maxSettingText      = 500
	maxPriceMicros      = 1e6
)

// DefaultSettings are those of a new organization.
func DefaultSettings() Settings {
	return Settings{
		RequestTimeoutMs:      24 * 3600 * 1000,
		DelegationTimeLimitMs: 3600 * 1000,
		AppReadRules:          []string{},
		RepeatSafeRules:       []string{},
		ToolTags:              []ToolTags{},
		TagPolicy:             map[string]string{"credentials": "human", "permissions": "human", "spend": "human"},
		TaintedTags:           []string{"external_send", "publish", "delete", "spend", "credentials", "permissions", "execute_code"},
		TrustedSources:        []string{},
		ResourceTemplates:     []ResourceTemplate{},
		Redaction:             Redaction{Keys: []string{"password", "secret", "token", "authorization", "api_key"}},
		ModelPrices:           map[string]SettingPrice{},
		RateLimits:            RateLimits{ApprovalsPerKey: 300, ApprovalsPerOrganization: 1000, FailedAuthPerAddress: 30},
	}
}

// RequestTimeout is how long a new Request waits.
func (s Settings) RequestTimeout() time.Duration {
	return time.Duration(s.RequestTimeoutMs) * time.Millisecond
}

// RemindBefore is how long before a new Request's time is up the person is told once
// more; 0 is never.
func (s Settings) RemindBefore() time.Duration {
	if s.RemindBeforeMs == nil {
		return 0
	}
	return time.Duration(*s.RemindBeforeMs) * time.Millisecond
}

// IsRead reports whether the organization marked this App tool as a read.
// Patterns match Connection IDs, never names.
func (s Settings) IsRead(target string) bool { return matchAny(s.AppReadRules, target) }

// IsRepeatSafe reports whether the organization said that this App tool may be
// sent again; a read always may.
func (s Settings) IsRepeatSafe(target string) bool {
	return s.IsRead(target) || matchAny(s.RepeatSafeRules, target)
}

// Price gives what the organization set for a model.
func (s Settings) Price(model string) (ModelPrice, bool) {
	p, ok := s.ModelPrices[model]
	if !ok {
		return ModelPrice{}, false
	}
	price := ModelPrice{Input: picos(p.InputMicrosPerToken), Output: picos(p.OutputMicrosPerToken)}
	if p.CachedInputMicrosPerToken != nil {
		cached := picos(*p.CachedInputMicrosPerToken)
		price.CachedInput = &cached
	}
	return price, true
}

func picos(micros float64) int64 { return int64(micros*1e6 + 0.5) }

func matchAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Match(p, text) })
}

// Faults lists everything that does not fit, or nil.
func (s Settings) Faults() []Fault {
	var faults []Fault
	add := func(path, message string) { faults = append(faults, Fault{Path: path, Message: message}) }

	for path, ms := range map[string]int64{"requestTimeoutMs": s.RequestTimeoutMs, "delegationTimeLimitMs": s.DelegationTimeLimitMs} {
		if ms < minRequestTimeoutMs || ms > maxRequestTimeoutMs {
			add(path, "must be from 1000 (1 s) to 2592000000 (30 days)")
		}
	}
	for path, list := range map[string][]string{"appReadRules": s.AppReadRules, "repeatSafeRules": s.RepeatSafeRules} {
		if len(list) > maxSettingEntries {
			add(path, "has too many entries, at most 1000")
		}
		for i, pattern := range list {
			if !toolPattern(pattern) {
				add(pathIndex(path, i), `must be <ID of the Connection>/<tool>, e.g. "con_7/list_*"`)
			}
		}
	}
	s.tagFaults(add)
	s.sourceFaults(add)
	s.resourceFaults(add)
	if len(s.Redaction.Keys) > maxSettingEntries {
		add("redaction.keys", "has too many entries, at most 1000")
	}
	for i, key := range s.Redaction.Keys {
		if key == "" || len(key) > 100 {
			add(pathIndex("redaction.keys", i), "must have 1 to 100 characters")
		}
	}
	for _, model := range slices.Sorted(maps.Keys(s.ModelPrices)) {
		p := s.ModelPrices[model]
		prices := []float64{p.InputMicrosPerToken, p.OutputMicrosPerToken}
		if p.CachedInputMicrosPerToken != nil {
			prices = append(prices, *p.CachedInputMicrosPerToken)
		}
		for _, price := range prices {
			if !(price >= 0 && price <= maxPriceMicros) {
				add("modelPrices."+model, "must be from 0 to 1000000 micro-USD a token")
				break
			}
		}
	}
	limits := map[string]int{"approvalsPerKey": s.RateLimits.ApprovalsPerKey,
		"approvalsPerOrganization": s.RateLimits.ApprovalsPerOrganization, "failedAuthPerAddress": s.RateLimits.FailedAuthPerAddress}
	if s.RateLimits.V1PerKey != nil {
		limits["v1PerKey"] = *s.RateLimits.V1PerKey
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if limits[name] < 1 || limits[name] > 1_000_000 {
			add("rateLimits."+name, "must be from 1 to 1000000 a minute")
		}
	}
	if ms := s.RemindBeforeMs; ms != nil && (*ms < minRequestTimeoutMs || *ms > maxRequestTimeoutMs) {
		add("remindBeforeMs", "must be from 1000 (1 s) to 2592000000 (30 days), or null")
	}
	if e := s.Escalation; e != nil {
		if e.AfterMs < minRequestTimeoutMs || e.AfterMs > maxRequestTimeoutMs {
			add("escalation.afterMs", "must be from 1000 (1 s) to 2592000000 (30 days)")
		}
		if !ValidID(string(e.Member), PrefixMember) {
			add("escalation.member", "must be the ID of a Member")
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) })
	return faults
}

func toolPattern(pattern string) bool {
	if pattern == "*" {
		return true
	}
	connection, tool, ok := strings.Cut(pattern, "/")
	hex, named := strings.CutPrefix(connection, PrefixConnection)
	return ok && tool != "" && len(pattern) <= maxSettingText &&
		(connection == "*" || named && hex != "" && strings.Trim(hex, "0123456789abcdef*") == "")
}
