package api

import (
	"context"
	"encoding/json"
	"net/http"

	"openbot/domain"
	"openbot/domain/engine"
)

// Rule is a kept decision in plain language, read by the judge model.
type Rule struct {
	ID        domain.RuleID `json:"id" example:"rul_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Bot       *string       `json:"bot" doc:"null: for the whole organization."`
	Text      string        `json:"text"`
	Effect    string        `json:"effect" enum:"allow,deny,either" doc:"What it can do."`
	Enabled   bool          `json:"enabled"`
	Keeper    *string       `json:"keeper" doc:"The Bot that keeps it; such a Rule can only deny. null for one of a person."`
	Source    GrantSource   `json:"source"`
	CreatedAt int64         `json:"createdAt"`
}

func wireRule(r domain.Rule) Rule {
	return Rule{ID: r.ID, Bot: orNull(r.Bot), Text: r.Text, Effect: r.Effect, Enabled: r.Enabled, Keeper: orNull(r.Keeper),
		Source: GrantSource{Kind: r.Source, Request: orNull(r.Request)}, CreatedAt: ms(r.CreatedAt)}
}

// NewRule is the body that keeps a Rule.
type NewRule struct {
	Text   string  `json:"text" minLength:"1" maxLength:"4000"`
	Effect *string `json:"effect,omitempty" enum:"allow,deny,either" doc:"Left out: either."`
	Bot    *string `json:"bot,omitempty" doc:"Left out: for the whole organization, which needs admin."`
}

// RuleChange is the body that changes a Rule.
type RuleChange struct {
	Text    *string `json:"text,omitempty" minLength:"1" maxLength:"4000"`
	Effect  *string `json:"effect,omitempty" enum:"allow,deny,either"`
	Enabled *bool   `json:"enabled,omitempty"`
}

// RulePreview is the body that tries a Rule.
type RulePreview struct {
	Text   string  `json:"text" minLength:"1" maxLength:"4000"`
	Effect *string `json:"effect,omitempty" enum:"allow,deny,either" doc:"Left out: either."`
	Bot    *string `json:"bot,omitempty" doc:"Left out: every Bot of your work."`
	Limit  *int    `json:"limit,omitempty" minimum:"1" maximum:"50" doc:"How many decided Requests to look at, newest first; 20 when left out."`
}

// RulePreviewed is one decided Request and what the Rule would have come to.
type RulePreviewed struct {
	Request    domain.RequestID `json:"request"`
	Bot        domain.BotID     `json:"bot"`
	Capability Capability       `json:"capability"`
	Decision   string           `json:"decision" enum:"allow,deny,ask" doc:"How it was decided."`
	Would      *string          `json:"would" doc:"allow or deny; null: the Rule would not have decided it."`
	Quote      *string          `json:"quote" doc:"The sentences that would have decided."`
	Why        string           `json:"why"`
}

func wirePreviewed(p domain.PreviewResult) RulePreviewed {
	return RulePreviewed{Request: p.Request, Bot: p.Bot, Capability: Capability(p.Capability), Decision: p.Decision, Would: orNull(p.Would),
		Quote: orNull(p.Quote), Why: p.Why}
}

// RulePath names a Rule in an address.
type RulePath struct {
	Rule string `path:"rule" doc:"The ID of the Rule."`
}

func (p RulePath) id() (domain.RuleID, error) {
	if !domain.ValidID(p.Rule, domain.PrefixRule) {
		return "", notFound("Rule")
	}
	return domain.RuleID(p.Rule), nil
}

type ruleQuery struct {
	Paged
	Bot string `query:"bot" doc:"Of this Bot."`
}

// botOrNil reads an optional ID of a Bot.
func botOrNil(id *string) (*domain.BotID, error) {
	if id == nil {
		return nil, nil
	}
	if !domain.ValidID(*id, domain.PrefixBot) {
		return nil, notFound("Bot")
	}
	bot := domain.BotID(*id)
	return &bot, nil
}

func (s *server) ruleRoutes() {
	const list = "rules"
	register(s, route{id: "listRules", method: http.MethodGet, path: "/v1/rules", tag: "Rules", summary: "List your Rules and those of the organization, newest first",
		role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *ruleQuery) (*listed[Rule], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			bot, err := eitherID("bot", in.Bot, "bot", "", domain.PrefixBot)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Rules(ctx, p, domain.BotID(bot), page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(r domain.Rule) string { return string(r.ID) }, wireRule), nil
		})
	register(s, route{id: "createRule", method: http.MethodPost, path: "/v1/rules", tag: "Rules", summary: "Keep a Rule",
		about: "Only a Rule that the judge quotes word for word decides. A new Rule settles nothing that waits.",
		role:  domain.RoleWrite, status: 201, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			Body NewRule
		}) (*struct{ Body Rule }, error) {
			bot, err := botOrNil(in.Body.Bot)
			if err != nil {
				return nil, err
			}
			r, err := s.Engine.CreateRule(keep(ctx, wireRule), p, engine.RuleFields{Text: &in.Body.Text, Effect: in.Body.Effect, Bot: bot})
			return &struct{ Body Rule }{wireRule(r)}, err
		})
	register(s, route{id: "changeRule", method: http.MethodPatch, path: "/v1/rules/{rule}", tag: "Rules", summary: "Change a Rule",
		about: "Calls that it allowed and that have not gone out are denied.", role: domain.RoleWrite, status: 200, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			RulePath
			Body RuleChange
		}) (*struct{ Body Rule }, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			r, err := s.Engine.ChangeRule(ctx, p, id, engine.RuleFields{Text: in.Body.Text, Effect: in.Body.Effect, Enabled: in.Body.Enabled})
			return &struct{ Body Rule }{wireRule(r)}, err
		})
	register(s, route{id: "deleteRule", method: http.MethodDelete, path: "/v1/rules/{rule}", tag: "Rules", summary: "Take a Rule away",
		about: "What it decided stays readable.", role: domain.RoleWrite, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *RulePath) (*none, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return nil, s.Engine.DeleteRule(ctx, p, id)
		})
	register(s, route{id: "previewRule", method: http.MethodPost, path: "/v1/rules/preview", tag: "Rules", summary: "Try a Rule on earlier Requests",
		about: "Says which of the last decided Requests of your work the Rule would have decided, and how. It changes nothing.",
		role:  domain.RoleWrite, status: 200, errors: []int{404, 409}, fresh: s.freshPreview}, s.previewRule)
}

func (s *server) previewRule(ctx context.Context, p domain.Principal, in *struct {
	Keyed
	Body RulePreview
}) (*struct{ Body []RulePreviewed }, error) {
	bot, err := botOrNil(in.Body.Bot)
	if err != nil {
		return nil, err
	}
	asked := engine.NewPreview{Text: in.Body.Text, Number: 20}
	if in.Body.Effect != nil {
		asked.Effect = *in.Body.Effect
	}
	if in.Body.Limit != nil {
		asked.Number = *in.Body.Limit
	}
	if bot != nil {
		asked.Bot = *bot
	}
	results, err := s.Engine.PreviewRule(keep(ctx, wirePreview), p, asked)
	return &struct{ Body []RulePreviewed }{wirePreviews(results)}, err
}

func wirePreviews(results []domain.PreviewResult) []RulePreviewed {
	out := []RulePreviewed{}
	for _, r := range results {
		out = append(out, wirePreviewed(r))
	}
	return out
}

// keptPreview is what is kept of a preview under a key: where its answer is.
type keptPreview struct{ ID domain.PreviewID }

func wirePreview(p domain.Preview) keptPreview { return keptPreview{p.ID} }

// freshPreview gives the answer of a preview that was asked for before.
func (s *server) freshPreview(ctx context.Context, p domain.Principal, kept []byte) ([]byte, error) {
	var first keptPreview
	if err := json.Unmarshal(kept, &first); err != nil {
		return nil, err
	}
	results, err := s.Engine.Previewed(ctx, p, first.ID)
	if err != nil {
		return nil, err
	}
	return encode(wirePreviews(results)), nil
}
