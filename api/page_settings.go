package api

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/web"
)

func (s *server) settingPages(r *gin.Engine) {
	r.GET("/settings", s.seeing("settings", domain.RoleAdmin, s.showSettings))
	r.POST("/settings", s.acting(domain.RoleAdmin, s.saveSettings))
}

var spanUnits = []struct {
	name  string
	label string
	unit  time.Duration
}{{"d", "days", 24 * time.Hour}, {"h", "hours", time.Hour}, {"m", "minutes", time.Minute}, {"s", "seconds", time.Second}}

// spanOf writes a duration in the largest unit that gives a whole number.
func spanOf(ms int64) web.Span {
	d := time.Duration(ms) * time.Millisecond
	picked := "s"
	for _, u := range spanUnits {
		if d > 0 && d%u.unit == 0 {
			picked = u.name
			break
		}
	}
	out := web.Span{}
	for _, u := range spanUnits {
		out.Units = append(out.Units, web.Choice{Value: u.name, Label: u.label, Picked: u.name == picked})
		if u.name == picked {
			out.Number = int64(d / u.unit)
		}
	}
	return out
}

// spanFrom reads a duration in milliseconds; nil when it was left empty.
func spanFrom(form url.Values, name string) (*int64, error) {
	number := form.Get(name)
	if number == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 1 {
		return nil, invalid(name, "must be a whole number of 1 or more")
	}
	for _, u := range spanUnits {
		if u.name == form.Get(name+"Unit") {
			ms := n * u.unit.Milliseconds()
			return &ms, nil
		}
	}
	return nil, invalid(name, "must have a unit")
}

func (s *server) showSettings(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	now, err := s.Engine.Settings(ctx, p)
	if err != nil {
		return web.View{}, err
	}
	members, err := s.Engine.Members(ctx, p, domain.Page{Limit: 200})
	if err != nil {
		return web.View{}, err
	}
	v := web.Settings{RequestTimeout: spanOf(now.RequestTimeoutMs), WorkTimeLimit: spanOf(now.DelegationTimeLimitMs),
		Reads: strings.Join(now.AppReadRules, "\n"), RepeatSafe: strings.Join(now.RepeatSafeRules, "\n"), Trusted: strings.Join(now.TrustedSources, "\n"),
		RedactKeys: strings.Join(now.Redaction.Keys, "\n"), RedactMail: now.Redaction.Mail, RedactPhone: now.Redaction.Phone, Reviewer: now.Reviewer.Enabled,
		PerKey: now.RateLimits.ApprovalsPerKey, PerOrganization: now.RateLimits.ApprovalsPerOrganization, FailedAuth: now.RateLimits.FailedAuthPerAddress,
		EscalationAfter: spanOf(0), RemindBefore: spanOf(0), Saved: gc.Query("saved") != "", Tags: strings.Join(domain.Tags, ", ")}
	if now.JudgeModel != nil {
		v.JudgeModel = *now.JudgeModel
	}
	if now.RateLimits.V1PerKey != nil {
		v.V1PerKey = strconv.Itoa(*now.RateLimits.V1PerKey)
	}
	var text []string
	for _, t := range now.ToolTags {
		text = append(text, t.Tool+": "+strings.Join(t.Tags, ", "))
	}
	v.ToolTags, text = strings.Join(text, "\n"), nil
	for _, r := range now.ResourceTemplates {
		text = append(text, r.Tool+": "+r.Template)
	}
	v.Resources, text = strings.Join(text, "\n"), nil
	for _, model := range slices.Sorted(maps.Keys(now.ModelPrices)) {
		text = append(text, model+": "+priceText(now.ModelPrices[model]))
	}
	v.Prices = strings.Join(text, "\n")
	for _, tag := range domain.Tags {
		row := web.TagPolicy{Tag: tag, Tainted: slices.Contains(now.TaintedTags, tag)}
		for _, c := range tagChoices {
			c.Picked = c.Value == now.TagPolicy[tag]
			row.Choices = append(row.Choices, c)
		}
		v.Policy = append(v.Policy, row)
	}
	v.EscalationMembers = []web.Choice{{Value: "", Label: "nobody"}}
	for _, m := range members {
		picked := now.Escalation != nil && now.Escalation.Member == m.ID
		v.EscalationMembers = append(v.EscalationMembers, web.Choice{Value: string(m.ID), Label: m.Name, Picked: picked})
	}
	if now.RemindBeforeMs != nil {
		v.RemindBefore = spanOf(*now.RemindBeforeMs)
	}
	if now.Escalation != nil {
		v.EscalationAfter = spanOf(now.Escalation.AfterMs)
	}
	return v.View(), nil
}

var tagChoices = []web.Choice{{Value: "", Label: "checked as usual"}, {Value: "ask", Label: "checked as usual (set)"}, {Value: "release", Label: "released: no decision"},
	{Value: "human", Label: "only a person may allow, once"}, {Value: "deny", Label: "denied"}}

func priceText(p domain.SettingPrice) string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	text := number(p.InputMicrosPerToken) + " " + number(p.OutputMicrosPerToken)
	if p.CachedInputMicrosPerToken != nil {
		text += " " + number(*p.CachedInputMicrosPerToken)
	}
	return text
}

// settingsFrom reads the whole form: each setting of it is replaced.
func settingsFrom(form url.Values) (SettingsChange, error) {
	var c SettingsChange
	var err error
	if c.RequestTimeoutMs, err = spanFrom(form, "requestTimeout"); err != nil {
		return c, err
	}
	if c.DelegationTimeLimitMs, err = spanFrom(form, "workTimeLimit"); err != nil {
		return c, err
	}
	list := func(name string) *[]string {
		out := lines(form.Get(name))
		return &out
	}
	c.AppReadRules, c.RepeatSafeRules, c.TrustedSources = list("reads"), list("repeat"), list("trusted")
	tags := []domain.ToolTags{}
	for _, line := range lines(form.Get("toolTags")) {
		tool, rest, ok := cutLast(line)
		if !ok {
			return c, invalid("toolTags", `must have "pattern: tag, tag" in each line`)
		}
		t := domain.ToolTags{Tool: tool, Tags: []string{}}
		for tag := range strings.SplitSeq(rest, ",") {
			t.Tags = append(t.Tags, strings.TrimSpace(tag))
		}
		tags = append(tags, t)
	}
	c.ToolTags = &tags
	resources := []domain.ResourceTemplate{}
	for _, line := range lines(form.Get("resources")) {
		tool, template, ok := strings.Cut(line, ": ")
		if !ok {
			return c, invalid("resources", `must have "pattern: template" in each line`)
		}
		resources = append(resources, domain.ResourceTemplate{Tool: strings.TrimSpace(tool), Template: strings.TrimSpace(template)})
	}
	c.ResourceTemplates = &resources
	policy, tainted := map[string]string{}, []string{}
	for _, tag := range domain.Tags {
		if choice := form.Get("policy-" + tag); choice != "" {
			policy[tag] = choice
		}
		if slices.Contains(form["tainted"], tag) {
			tainted = append(tainted, tag)
		}
	}
	c.TagPolicy, c.TaintedTags = &policy, &tainted
	c.Reviewer = &domain.Reviewer{Enabled: form.Get("reviewer") != ""}
	c.JudgeModel = Optional[string]{Set: true, Value: given(strings.TrimSpace(form.Get("judge")))}
	keys := lines(form.Get("redact"))
	c.Redaction = &RedactionChange{Keys: &keys, Mail: form.Get("redactMail") != "", Phone: form.Get("redactPhone") != ""}
	if c.ModelPrices, err = pricesFrom(form.Get("prices")); err != nil {
		return c, err
	}
	if c.RateLimits, err = limitsFrom(form); err != nil {
		return c, err
	}
	c.RemindBeforeMs.Set = true
	if c.RemindBeforeMs.Value, err = spanFrom(form, "remindBefore"); err != nil {
		return c, err
	}
	c.Escalation.Set = true
	after, err := spanFrom(form, "escalation")
	if member := form.Get("escalationMember"); err == nil && member != "" {
		if after == nil {
			return c, invalid("escalation", "must say after what time")
		}
		c.Escalation.Value = &domain.Escalation{AfterMs: *after, Member: domain.MemberID(member)}
	}
	return c, err
}

func sameWords(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// cutLast cuts a line at its last colon: models and patterns may hold one.
func cutLast(line string) (before, after string, ok bool) {
	at := strings.LastIndex(line, ":")
	if at < 0 {
		return line, "", false
	}
	return strings.TrimSpace(line[:at]), strings.TrimSpace(line[at+1:]), true
}

func pricesFrom(text string) (*map[string]domain.SettingPrice, error) {
	prices := map[string]domain.SettingPrice{}
	for _, line := range lines(text) {
		model, rest, ok := cutLast(line)
		var numbers []float64
		for _, word := range strings.Fields(rest) {
			n, err := strconv.ParseFloat(word, 64)
			ok = ok && err == nil
			numbers = append(numbers, n)
		}
		if !ok || len(numbers) < 2 || len(numbers) > 3 {
			return nil, invalid("prices", `must have "model: input output" or "model: input output cached" in each line`)
		}
		price := domain.SettingPrice{InputMicrosPerToken: numbers[0], OutputMicrosPerToken: numbers[1]}
		if len(numbers) == 3 {
			price.CachedInputMicrosPerToken = &numbers[2]
		}
		prices[model] = price
	}
	return &prices, nil
}

func limitsFrom(form url.Values) (*RateLimitsChange, error) {
	c := RateLimitsChange{V1PerKey: Optional[int]{Set: true}}
	for name, into := range map[string]**int{"perKey": &c.ApprovalsPerKey, "perOrganization": &c.ApprovalsPerOrganization,
		"failedAuth": &c.FailedAuthPerAddress, "v1": &c.V1PerKey.Value} {
		text := form.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, invalid(name, "must be a whole number")
		}
		*into = &n
	}
	return &c, nil
}

func (s *server) saveSettings(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	change, err := settingsFrom(gc.Request.PostForm)
	if err != nil {
		return err
	}
	settings, err := s.Engine.ChangeSettings(ctx, p, func(now *domain.Settings) error {
		fitting := change // a decision may be made anew
		if sameWords(now.TaintedTags, *change.TaintedTags) {
			fitting.TaintedTags = nil // a form knows no order
		}
		fitting.apply(now)
		return nil
	})
	if err != nil {
		return err
	}
	s.limits.set(p.Organization, settings.RateLimits, s.Engine.Clock())
	onward(gc, "/settings?saved=1")
	return nil
}
