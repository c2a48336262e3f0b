package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

func (s *server) grantPages(r *gin.Engine) {
	r.GET("/grants", s.seeing("grants", domain.RoleRead, s.showGrants))
	r.POST("/grants", s.acting(domain.RoleWrite, s.keepGrant))
	r.POST("/grants/:grant/revoke", s.acting(domain.RoleWrite, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id := gc.Param("grant")
		if !domain.ValidID(id, domain.PrefixGrant) {
			return notFound("Grant")
		}
		if err := s.Engine.RevokeGrant(ctx, p, domain.GrantID(id)); err != nil {
			return err
		}
		onward(gc, "/grants")
		return nil
	}))
}

// botOf reads the Bot that a page is narrowed to.
func botOf(gc *gin.Context) domain.BotID {
	if bot := gc.Query("bot"); domain.ValidID(bot, domain.PrefixBot) {
		return domain.BotID(bot)
	}
	return ""
}

func (s *server) showGrants(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	v := web.Grants{Revoked: gc.Query("revoked") == "true"}
	rows, err := s.Engine.Grants(ctx, p, domain.GrantFilter{Bot: botOf(gc), Revoked: v.Revoked}, rowsAfter(gc, domain.PrefixGrant))
	if err != nil {
		return web.View{}, err
	}
	rows, v.More = cutRows(rows, func(g domain.Grant) string { return string(g.ID) })
	var c nameless
	for _, g := range rows {
		c.bot(g.Bot)
		c.target(g.Capability)
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return web.View{}, err
	}
	now := s.Engine.Clock()
	from := map[string]string{domain.SourceRequest: "an answer", domain.SourceEndorsement: "its support of a Request", domain.SourcePerson: "a person"}
	for _, g := range rows {
		row := web.GrantRow{ID: string(g.ID), Allow: g.Decision == domain.DecisionAllow, What: every(g.Capability, n.bot(g.Bot), n), ChatID: string(g.Chat),
			From: from[g.Source], Request: string(g.Request), Created: moment(g.CreatedAt, now), Revoked: momentOrNil(g.RevokedAt, now)}
		if g.Capability.Action == domain.ActionAppsCall {
			row.Limit = "while " + appOf(g.Capability, n) + " is at revision " + itoa(g.Revision)
		}
		v.Rows = append(v.Rows, row)
	}
	if v.Bots, err = s.botChoices(ctx, p, gc.Query("bot")); err != nil {
		return web.View{}, err
	}
	for _, action := range domain.Actions() {
		v.Actions = append(v.Actions, web.Choice{Value: action, Label: action})
	}
	v.Targets, err = s.targetChoices(ctx, p)
	if err != nil {
		return web.View{}, err
	}
	return v.View(), nil
}

// maxTargets is how many App tools a form names.
const maxTargets = 300

// targetChoices lists the App tools that a Grant can be for.
func (s *server) targetChoices(ctx context.Context, p domain.Principal) ([]web.Choice, error) {
	connections, err := s.Engine.Connections(ctx, p, domain.Page{Limit: 200})
	if err != nil {
		return nil, err
	}
	var out []web.Choice
	for _, c := range connections {
		for _, t := range c.Look.Tools {
			if len(out) < maxTargets {
				out = append(out, web.Choice{Value: string(c.ID) + "/" + t.Name, Label: t.Name + " on " + c.Name})
			}
		}
	}
	return out, nil
}

func (s *server) keepGrant(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	body := NewGrant{Bot: form.Get("bot"), Capability: Capability{Action: form.Get("action"), Target: form.Get("target")},
		Decision: form.Get("decision"), Scope: domain.ScopeLifetime, Chat: given(form.Get("chat"))}
	if body.Chat != nil {
		body.Scope = domain.ScopeChat
	}
	if err := s.fits(body); err != nil {
		return err
	}
	if !domain.ValidID(body.Bot, domain.PrefixBot) {
		return notFound("Bot")
	}
	made := engine.NewGrant{Bot: domain.BotID(body.Bot), Capability: domain.Capability(body.Capability), Decision: body.Decision, Scope: body.Scope}
	if body.Chat != nil {
		if !domain.ValidID(*body.Chat, domain.PrefixChat) {
			return notFound("Chat")
		}
		made.Chat = domain.ChatID(*body.Chat)
	}
	if _, err := s.Engine.CreateGrant(ctx, p, made); err != nil {
		return err
	}
	onward(gc, "/grants")
	return nil
}

func (s *server) rulePages(r *gin.Engine) {
	r.GET("/rules", s.seeing("rules", domain.RoleRead, s.showRules))
	r.POST("/rules", s.acting(domain.RoleWrite, s.keepRule))
	r.POST("/rules/preview", s.acting(domain.RoleWrite, s.tryRule))
	r.POST("/rules/:rule", s.acting(domain.RoleWrite, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id, err := RulePath{Rule: gc.Param("rule")}.id()
		if err != nil {
			return err
		}
		enabled := gc.Request.PostForm.Get("enabled") == "true"
		if _, err := s.Engine.ChangeRule(ctx, p, id, engine.RuleFields{Enabled: &enabled}); err != nil {
			return err
		}
		onward(gc, "/rules")
		return nil
	}))
	r.POST("/rules/:rule/delete", s.acting(domain.RoleWrite, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id, err := RulePath{Rule: gc.Param("rule")}.id()
		if err != nil {
			return err
		}
		if err := s.Engine.DeleteRule(ctx, p, id); err != nil {
			return err
		}
		onward(gc, "/rules")
		return nil
	}))
}

var effects = []web.Choice{{Value: domain.DecisionDeny, Label: "only deny"}, {Value: domain.DecisionAllow, Label: "only allow"}, {Value: domain.EffectEither, Label: "allow or deny"}}

func (s *server) rulesPage(ctx context.Context, gc *gin.Context, p domain.Principal, text, effect, bot string) (web.Rules, error) {
	v := web.Rules{Draft: web.RuleDraft{Text: text}}
	for _, e := range effects {
		e.Picked = e.Value == effect
		v.Draft.Effects = append(v.Draft.Effects, e)
	}
	var err error
	if v.Draft.Bots, err = s.botChoices(ctx, p, bot); err != nil {
		return v, err
	}
	if p.HasRole(domain.RoleAdmin) {
		v.Draft.Bots = append(v.Draft.Bots, web.Choice{Value: "", Label: "the whole organization", Picked: bot == "organization"})
	}
	rows, err := s.Engine.Rules(ctx, p, botOf(gc), rowsAfter(gc, domain.PrefixRule))
	if err != nil {
		return v, err
	}
	rows, v.More = cutRows(rows, func(r domain.Rule) string { return string(r.ID) })
	var c nameless
	for _, r := range rows {
		c.bot(r.Bot, r.Keeper)
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return v, err
	}
	for _, r := range rows {
		row := web.RuleRow{ID: string(r.ID), Text: r.Text, Effect: effectWords(r.Effect), For: "the whole organization", Whole: r.Bot == "",
			Enabled: r.Enabled, Request: string(r.Request), Created: moment(r.CreatedAt, s.Engine.Clock())}
		if r.Bot != "" {
			row.For = n.bot(r.Bot)
		}
		if r.Keeper != "" {
			row.Keeper = n.bot(r.Keeper)
		}
		v.Rows = append(v.Rows, row)
	}
	return v, nil
}

func effectWords(effect string) string {
	for _, e := range effects {
		if e.Value == effect {
			return "can " + e.Label
		}
	}
	return effect
}

func (s *server) showRules(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	text := gc.Query("text")
	if len(text) > domain.MaxRuleText {
		text = ""
	}
	v, err := s.rulesPage(ctx, gc, p, text, domain.DecisionDeny, gc.Query("bot"))
	return v.View(), err
}

func (s *server) keepRule(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	body := NewRule{Text: form.Get("text"), Effect: given(form.Get("effect")), Bot: given(form.Get("bot"))}
	if err := s.fits(body); err != nil {
		return err
	}
	bot, err := botOrNil(body.Bot)
	if err != nil {
		return err
	}
	if _, err := s.Engine.CreateRule(ctx, p, engine.RuleFields{Text: &body.Text, Effect: body.Effect, Bot: bot}); err != nil {
		return err
	}
	onward(gc, "/rules")
	return nil
}

// tryRule shows what a Rule would have come to about the Requests before.
func (s *server) tryRule(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	body := RulePreview{Text: form.Get("text"), Effect: given(form.Get("effect")), Bot: given(form.Get("bot"))}
	if err := s.fits(body); err != nil {
		return err
	}
	tried, err := s.previewRule(ctx, p, &struct {
		Keyed
		Body RulePreview
	}{Body: body})
	if err != nil {
		return err
	}
	picked := form.Get("bot")
	if picked == "" {
		picked = "organization"
	}
	v, err := s.rulesPage(ctx, gc, p, body.Text, form.Get("effect"), picked)
	if err != nil {
		return err
	}
	var c nameless
	for _, t := range tried.Body {
		c.bot(t.Bot)
		c.target(domain.Capability(t.Capability))
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return err
	}
	v.WasTry = true
	for _, t := range tried.Body {
		row := web.RuleTried{Request: string(t.Request), Title: titleOf(domain.Capability(t.Capability), n) + " · " + n.bot(t.Bot), Was: t.Decision, Why: t.Why}
		if t.Would != nil {
			row.Would = *t.Would
			v.Decided++
		}
		if t.Quote != nil {
			row.Quote = *t.Quote
		}
		v.Tried = append(v.Tried, row)
	}
	return s.afterForm(ctx, gc, p, "rules", v.View())
}
