package engine

import (
	"context"
	"slices"

	"openbot/domain"
)

// RuleFields is what a person sets of a Rule; nil leaves a field as it is.
type RuleFields struct {
	Text    *string
	Effect  *string
	Enabled *bool
	Bot     *domain.BotID // only of a new Rule; nil means the whole organization
}

// ruleFits checks a Rule's text and effect; an empty effect becomes either.
func ruleFits(text string, effect *string) error {
	if text == "" || len(text) > domain.MaxRuleText || len(domain.Sentences(text)) == 0 {
		return invalidf("text", "must have 1 to %d bytes and a sentence", domain.MaxRuleText)
	}
	if *effect == "" {
		*effect = domain.EffectEither
	}
	if !slices.Contains([]string{domain.DecisionAllow, domain.DecisionDeny, domain.EffectEither}, *effect) {
		return invalid("effect", "must be allow, deny or either")
	}
	return nil
}

// CreateRule keeps a Rule for one Bot in the caller's work, or for the whole
// organization, which needs an admin. It settles nothing that waits.
func (e *Engine) CreateRule(ctx context.Context, p domain.Principal, in RuleFields) (domain.Rule, error) {
	var rule domain.Rule
	err := e.decide(ctx, string(p.Member.ID), func(d *draft) error {
		rule = domain.Rule{ID: newID[domain.RuleID](domain.PrefixRule), Organization: p.Organization, Member: p.Member.ID, Enabled: true,
			Source: domain.SourcePerson, CreatedAt: d.at}
		if in.Bot != nil {
			bot, err := e.visibleBot(ctx, p.Organization, p.Member.ID, *in.Bot)
			if err != nil {
				return err
			}
			rule.Bot = bot.ID
		} else if !p.HasRole(domain.RoleAdmin) {
			return adminRule()
		}
		if err := setRule(&rule, in); err != nil {
			return err
		}
		d.put(&rule)
		d.result = rule
		return nil
	})
	return rule, err
}

func adminRule() error {
	return domain.Errorf(domain.CodeForbidden, "Forbidden", "Only an admin may keep Rules for the whole organization. Name a Bot to keep one for it.")
}

func setRule(r *domain.Rule, in RuleFields) error {
	if in.Text != nil {
		r.Text = safeText(*in.Text)
	}
	set(&r.Effect, in.Effect)
	set(&r.Enabled, in.Enabled)
	if r.Keeper != "" && r.Effect != domain.DecisionDeny {
		return invalid("effect", "must be deny: a Bot keeps this Rule")
	}
	return ruleFits(r.Text, &r.Effect)
}

// Rule reads a Rule of the caller or of the organization.
func (e *Engine) Rule(ctx context.Context, p domain.Principal, id domain.RuleID) (domain.Rule, error) {
	const message = "There is no Rule with this ID."
	r, err := e.Store.Rule(ctx, id)
	if err != nil {
		return r, asNotFound(err, "RuleNotFound", message)
	}
	if r.Organization != p.Organization || r.DeletedAt != nil || r.Bot != "" && r.Member != p.Member.ID {
		return domain.Rule{}, domain.Errorf(domain.CodeNotFound, "RuleNotFound", message)
	}
	return r, nil
}

// Rules lists the caller's Rules and those of the organization, newest first.
func (e *Engine) Rules(ctx context.Context, p domain.Principal, bot domain.BotID, page domain.Page) ([]domain.Rule, error) {
	return e.Store.Rules(ctx, p.Organization, p.Member.ID, bot, page)
}

// ChangeRule sets fields of a Rule. What it allowed and has not gone out is denied:
// it was allowed by other words.
func (e *Engine) ChangeRule(ctx context.Context, p domain.Principal, id domain.RuleID, in RuleFields) (domain.Rule, error) {
	var rule domain.Rule
	err := e.changeRule(ctx, p, id, func(d *draft, r *domain.Rule) error {
		err := setRule(r, in)
		rule = *r
		return err
	})
	return rule, err
}

// DeleteRule takes a Rule away. What it decided stays readable.
func (e *Engine) DeleteRule(ctx context.Context, p domain.Principal, id domain.RuleID) error {
	return e.changeRule(ctx, p, id, func(d *draft, r *domain.Rule) error {
		at := d.at
		r.DeletedAt = &at
		return nil
	})
}

func (e *Engine) changeRule(ctx context.Context, p domain.Principal, id domain.RuleID, change func(*draft, *domain.Rule) error) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		r, err := e.Rule(ctx, p, id)
		if err != nil {
			return err
		}
		if r.Bot == "" && !p.HasRole(domain.RoleAdmin) {
			return adminRule()
		}
		if err := change(d, &r); err != nil {
			return err
		}
		d.put(&r)
		return nil
	})
}
