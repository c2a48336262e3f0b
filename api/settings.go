package api

import (
	"context"
	"maps"
	"net/http"

	"openbot/domain"
)

// Settings are what the organization chose.
type Settings struct {
	RequestTimeoutMs      int64                          `json:"requestTimeoutMs" doc:"How long a new Request waits before it is denied."`
	DelegationTimeLimitMs int64                          `json:"delegationTimeLimitMs"`
	AppReadRules          []string                       `json:"appReadRules" doc:"App tools that are reads and need no decision: patterns <connection>/<tool>."`
	RepeatSafeRules       []string                       `json:"repeatSafeRules" doc:"App tools that may be sent again when nothing came back."`
	ToolTags              []domain.ToolTags              `json:"toolTags" doc:"Permission tags of App tools, by patterns <connection>/<tool>. A tool without any counts as write and network."`
	TagPolicy             map[string]string              `json:"tagPolicy" doc:"For a tag: ask (the default), release (needs no decision), human (only a person can allow it, once) or deny. The strictest of a call's tags wins."`
	TaintedTags           []string                       `json:"taintedTags" doc:"Tags of calls that go to a decider in a Chat that took in content from outside the organization."`
	TrustedSources        []string                       `json:"trustedSources" doc:"IDs of Connections, and of host tools, whose answers do not taint."`
	ResourceTemplates     []domain.ResourceTemplate      `json:"resourceTemplates" doc:"What a call of a tool is about, from its arguments: mail:{to}."`
	Redaction             domain.Redaction               `json:"redaction"`
	Reviewer              domain.Reviewer                `json:"reviewer" doc:"The automatic reviewer: a model that reads each new Request and leaves a note for the person. It decides nothing."`
	JudgeModel            *string                        `json:"judgeModel" doc:"provider:model; null: the server's default."`
	ModelPrices           map[string]domain.SettingPrice `json:"modelPrices"`
	RateLimits            domain.RateLimits              `json:"rateLimits"`
	Escalation            Nullable[domain.Escalation]    `json:"escalation" doc:"A second Member who may answer a new Request that the person has not answered after afterMs; null: nobody."`
	RemindBeforeMs        *int64                         `json:"remindBeforeMs" doc:"How long before the time of a new Request is up request.expiring is told; null: never."`
}

func wireSettings(s domain.Settings) Settings {
	out := Settings{RequestTimeoutMs: s.RequestTimeoutMs, DelegationTimeLimitMs: s.DelegationTimeLimitMs,
		AppReadRules: nonNil(s.AppReadRules), RepeatSafeRules: nonNil(s.RepeatSafeRules), ToolTags: []domain.ToolTags{},
		TagPolicy: map[string]string{}, TaintedTags: nonNil(s.TaintedTags), TrustedSources: nonNil(s.TrustedSources),
		ResourceTemplates: nonNil(s.ResourceTemplates), Redaction: s.Redaction, Reviewer: s.Reviewer, JudgeModel: s.JudgeModel,
		ModelPrices: map[string]domain.SettingPrice{}, RateLimits: s.RateLimits, Escalation: Nullable[domain.Escalation]{s.Escalation},
		RemindBeforeMs: s.RemindBeforeMs}
	out.Redaction.Keys = nonNil(out.Redaction.Keys)
	for _, t := range s.ToolTags {
		out.ToolTags = append(out.ToolTags, domain.ToolTags{Tool: t.Tool, Tags: nonNil(t.Tags)})
	}
	maps.Copy(out.TagPolicy, s.TagPolicy)
	maps.Copy(out.ModelPrices, s.ModelPrices)
	return out
}

// SettingsChange names the settings to replace, each whole. What an object leaves
// out goes back to its default.
type SettingsChange struct {
	RequestTimeoutMs      *int64                          `json:"requestTimeoutMs,omitempty" minimum:"1000" maximum:"2592000000"`
	DelegationTimeLimitMs *int64                          `json:"delegationTimeLimitMs,omitempty" minimum:"1000" maximum:"2592000000"`
	AppReadRules          *[]string                       `json:"appReadRules,omitempty" maxItems:"1000"`
	RepeatSafeRules       *[]string                       `json:"repeatSafeRules,omitempty" maxItems:"1000"`
	ToolTags              *[]domain.ToolTags              `json:"toolTags,omitempty" maxItems:"1000"`
	TagPolicy             *map[string]string              `json:"tagPolicy,omitempty"`
	TaintedTags           *[]string                       `json:"taintedTags,omitempty" maxItems:"11"`
	TrustedSources        *[]string                       `json:"trustedSources,omitempty" maxItems:"1000"`
	ResourceTemplates     *[]domain.ResourceTemplate      `json:"resourceTemplates,omitempty" maxItems:"1000"`
	Redaction             *RedactionChange                `json:"redaction,omitempty"`
	Reviewer              *domain.Reviewer                `json:"reviewer,omitempty"`
	JudgeModel            Optional[string]                `json:"judgeModel,omitempty"`
	ModelPrices           *map[string]domain.SettingPrice `json:"modelPrices,omitempty"`
	RateLimits            *RateLimitsChange               `json:"rateLimits,omitempty"`
	Escalation            Optional[domain.Escalation]     `json:"escalation,omitempty"`
	RemindBeforeMs        Optional[int64]                 `json:"remindBeforeMs,omitempty"`
}

// RedactionChange replaces what is masked for scripts.
type RedactionChange struct {
	Keys  *[]string `json:"keys,omitempty" maxItems:"1000"`
	Mail  bool      `json:"mail,omitempty"`
	Phone bool      `json:"phone,omitempty"`
}

// RateLimitsChange replaces the limits, in events a minute.
type RateLimitsChange struct {
	ApprovalsPerKey          *int          `json:"approvalsPerKey,omitempty" minimum:"1" maximum:"1000000"`
	ApprovalsPerOrganization *int          `json:"approvalsPerOrganization,omitempty" minimum:"1" maximum:"1000000"`
	FailedAuthPerAddress     *int          `json:"failedAuthPerAddress,omitempty" minimum:"1" maximum:"1000000"`
	V1PerKey                 Optional[int] `json:"v1PerKey,omitempty"`
}

func (c SettingsChange) apply(s *domain.Settings) {
	defaults := domain.DefaultSettings()
	replace(&s.RequestTimeoutMs, c.RequestTimeoutMs)
	replace(&s.DelegationTimeLimitMs, c.DelegationTimeLimitMs)
	replace(&s.AppReadRules, c.AppReadRules)
	replace(&s.RepeatSafeRules, c.RepeatSafeRules)
	replace(&s.ToolTags, c.ToolTags)
	replace(&s.TagPolicy, c.TagPolicy)
	replace(&s.TaintedTags, c.TaintedTags)
	replace(&s.TrustedSources, c.TrustedSources)
	replace(&s.ResourceTemplates, c.ResourceTemplates)
	replace(&s.Reviewer, c.Reviewer)
	replace(&s.ModelPrices, c.ModelPrices)
	if r := c.Redaction; r != nil {
		s.Redaction = domain.Redaction{Keys: defaults.Redaction.Keys, Mail: r.Mail, Phone: r.Phone}
		replace(&s.Redaction.Keys, r.Keys)
	}
	if r := c.RateLimits; r != nil {
		s.RateLimits = defaults.RateLimits
		replace(&s.RateLimits.ApprovalsPerKey, r.ApprovalsPerKey)
		replace(&s.RateLimits.ApprovalsPerOrganization, r.ApprovalsPerOrganization)
		replace(&s.RateLimits.FailedAuthPerAddress, r.FailedAuthPerAddress)
		s.RateLimits.V1PerKey = r.V1PerKey.Value
	}
	if c.JudgeModel.Set {
		s.JudgeModel = c.JudgeModel.Value
	}
	if c.Escalation.Set {
		s.Escalation = c.Escalation.Value
	}
	if c.RemindBeforeMs.Set {
		s.RemindBeforeMs = c.RemindBeforeMs.Value
	}
}

func replace[T any](into *T, value *T) {
	if value != nil {
		*into = *value
	}
}

func (s *server) settingRoutes() {
	type out = struct{ Body Settings }
	register(s, route{id: "readSettings", method: http.MethodGet, path: "/v1/settings", tag: "Administration", summary: "Read the settings",
		role: domain.RoleAdmin, status: 200},
		func(ctx context.Context, p domain.Principal, _ *struct{}) (*out, error) {
			settings, err := s.Engine.Settings(ctx, p)
			return &out{wireSettings(settings)}, err
		})
	register(s, route{id: "changeSettings", method: http.MethodPatch, path: "/v1/settings", tag: "Administration", summary: "Replace named settings whole",
		about: "They are checked as a whole; a bad one changes nothing.", role: domain.RoleAdmin, status: 200, errors: []int{409}},
		func(ctx context.Context, p domain.Principal, in *struct{ Body SettingsChange }) (*out, error) {
			settings, err := s.Engine.ChangeSettings(ctx, p, func(now *domain.Settings) error {
				in.Body.apply(now)
				return nil
			})
			if err == nil {
				s.limits.set(p.Organization, settings.RateLimits, s.Engine.Clock())
			}
			return &out{wireSettings(settings)}, err
		})
}
