package api

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

func (s *server) triggerPages(r *gin.Engine) {
	r.GET("/triggers", s.seeing("triggers", domain.RoleRead, func(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
		v, err := s.triggersPage(ctx, gc, p)
		return v.View(), err
	}))
	r.GET("/triggers/:trigger", s.seeing("triggers", domain.RoleRead, s.showTrigger))
	r.POST("/triggers", s.acting(domain.RoleWrite, s.makeTrigger))
	r.POST("/triggers/:trigger", s.acting(domain.RoleWrite, s.editTrigger))
	r.POST("/triggers/:trigger/delete", s.acting(domain.RoleWrite, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id, err := TriggerPath{Trigger: gc.Param("trigger")}.id()
		if err != nil {
			return err
		}
		if err := s.Engine.DeleteTrigger(ctx, p, id); err != nil {
			return err
		}
		onward(gc, "/triggers")
		return nil
	}))
}

func (s *server) triggerRow(t domain.Trigger, n names) web.TriggerRow {
	now := s.Engine.Clock()
	row := web.TriggerRow{ID: string(t.ID), Name: t.Name, Bot: n.bot(t.Bot), When: "on a signed signal", Enabled: t.Enabled, Problem: t.Problem,
		Next: momentOrNil(t.NextAt, now), Last: momentOrNil(t.LastAt, now)}
	if t.Kind == domain.TriggerCron {
		row.When = "at " + code(t.Cron) + " in " + t.TimeZone
	}
	return row
}

func (s *server) triggersPage(ctx context.Context, gc *gin.Context, p domain.Principal) (web.Triggers, error) {
	v := web.Triggers{Key: rand.Text()}
	rows, err := s.Engine.Triggers(ctx, p, rowsAfter(gc, domain.PrefixTrigger))
	if err != nil {
		return v, err
	}
	rows, v.More = cutRows(rows, func(t domain.Trigger) string { return string(t.ID) })
	var c nameless
	for _, t := range rows {
		c.bot(t.Bot)
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return v, err
	}
	for _, t := range rows {
		v.Rows = append(v.Rows, s.triggerRow(t, n))
	}
	v.Bots, err = s.botChoices(ctx, p, gc.Query("bot"))
	return v, err
}

func (s *server) showTrigger(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	id, err := TriggerPath{Trigger: gc.Param("trigger")}.id()
	if err != nil {
		return web.View{}, err
	}
	t, err := s.Engine.Trigger(ctx, p, id)
	if err != nil {
		return web.View{}, err
	}
	var c nameless
	c.bot(t.Bot)
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return web.View{}, err
	}
	v := web.Trigger{TriggerRow: s.triggerRow(t, n), Webhook: t.Kind == domain.TriggerWebhook, Signal: infoFrom(ctx).root + "/v1/triggers/" + string(t.ID) + "/signal", Cron: t.Cron,
		TimeZone: t.TimeZone, BotID: string(t.Bot), Chat: string(t.Chat), Task: t.Task, Work: string(t.LastWork), Saved: gc.Query("saved") != "",
		Missed: []web.Choice{{Value: domain.MissedSkip, Label: "are let go"}, {Value: domain.MissedOnce, Label: "are made up for once", Picked: t.Missed == domain.MissedOnce}}}
	if v.Bots, err = s.botChoices(ctx, p, string(t.Bot)); err != nil {
		return web.View{}, err
	}
	known := false
	for _, b := range v.Bots {
		known = known || b.Picked
	}
	if !known { // an archived one stays until another is chosen
		v.Bots = append(v.Bots, web.Choice{Value: string(t.Bot), Label: n.bot(t.Bot), Picked: true})
	}
	return v.View(), nil
}

// makeTrigger shows the signing secret of a webhook in this answer alone.
func (s *server) makeTrigger(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	body := NewTrigger{Name: form.Get("name"), Kind: given(form.Get("kind")), Cron: given(strings.TrimSpace(form.Get("cron"))),
		TimeZone: given(strings.TrimSpace(form.Get("timeZone"))), Missed: given(form.Get("missed")), Bot: given(form.Get("bot")),
		Chat: given(strings.TrimSpace(form.Get("chat"))), Task: form.Get("task")}
	if err := s.fits(body); err != nil {
		return err
	}
	ctx, err := s.once(ctx, gc, "trigger", http.StatusCreated)
	if err != nil {
		return err
	}
	made, secret, err := s.Engine.CreateTrigger(keep(ctx, wireTrigger), p, engine.TriggerFields{Name: &body.Name, Kind: body.Kind, Cron: body.Cron, TimeZone: body.TimeZone,
		Missed: body.Missed, Bot: as[domain.BotID](body.Bot), Chat: as[domain.ChatID](body.Chat), Task: &body.Task})
	if err != nil && !isKept(err) {
		return err
	}
	if err != nil || secret == "" {
		onward(gc, "/triggers") // made before, or nothing is shown once
		return nil
	}
	v, err := s.triggersPage(ctx, gc, p)
	if err != nil {
		return err
	}
	v.Fresh = &web.FreshSecret{Name: made.Name, Secret: secret, Signal: infoFrom(ctx).root + "/v1/triggers/" + string(made.ID) + "/signal"}
	return s.afterForm(ctx, gc, p, "triggers", v.View())
}

func (s *server) editTrigger(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	id, err := TriggerPath{Trigger: gc.Param("trigger")}.id()
	if err != nil {
		return err
	}
	form := gc.Request.PostForm
	name, task, enabled := form.Get("name"), form.Get("task"), form.Get("enabled") == "true"
	body := TriggerChange{Name: &name, Task: &task, Enabled: &enabled, Cron: given(strings.TrimSpace(form.Get("cron"))),
		TimeZone: given(strings.TrimSpace(form.Get("timeZone"))), Missed: given(form.Get("missed")), Secret: given(strings.TrimSpace(form.Get("secret"))),
		Bot: given(form.Get("bot")), Chat: given(strings.TrimSpace(form.Get("chat")))}
	if err := s.fits(body); err != nil {
		return err
	}
	if _, err := s.Engine.ChangeTrigger(ctx, p, id, engine.TriggerFields{Name: body.Name, Cron: body.Cron, TimeZone: body.TimeZone, Missed: body.Missed,
		Secret: body.Secret, Bot: as[domain.BotID](body.Bot), Chat: as[domain.ChatID](body.Chat), Task: body.Task, Enabled: body.Enabled}); err != nil {
		return err
	}
	onward(gc, "/triggers/"+string(id)+"?saved=1")
	return nil
}
