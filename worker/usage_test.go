package worker_test

import (
	"context"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/worker"
)

// counting adds up what every model call used.
type counting struct {
	engine.Models
	judged int
	used   domain.ModelUsage
}

func (c *counting) Call(ctx context.Context, r domain.ModelRequest) (domain.ModelReply, error) {
	reply, err := c.Models.Call(ctx, r)
	c.used = c.used.Plus(reply.Usage)
	if r.Purpose == domain.PurposeJudge {
		c.judged++
	}
	return reply, err
}

// Whatever models said they used stands in the ledger: steps, and both readings of the
// judge for each call, and what follows a reminder.
func TestTheLedgerHoldsAllThatModelsUsed(t *testing.T) {
	ctx := t.Context()
	playbook := newPlaybook(t)
	models := &counting{Models: playbook}
	h := newHouse(t, engine.Options{Models: models})
	e, me, rung := h.engine, h.me, h.rung
	w := worker.New(worker.Options{Engine: e, Models: models})
	text, effect := "Allow bots.spawn.", domain.DecisionAllow
	_, err := e.CreateRule(ctx, me, engine.RuleFields{Text: &text, Effect: &effect})
	must(t, err)
	chat, err := e.CreateChat(ctx, me, engine.NewChat{})
	must(t, err)
	_, err = e.PostMessage(ctx, me, chat.ID, "/call openbot_spawn {\"name\":\"A\",\"role\":\"\",\"instructions\":\"\",\"reason\":\"r\"}\n"+
		"/call openbot_spawn {\"name\":\"B\",\"role\":\"\",\"instructions\":\"\",\"reason\":\"r\"}\n/call openbot_remind {\"text\":\"tea\",\"afterMs\":0}")
	must(t, err)
	for len(rung.tasks) > 0 {
		task := rung.tasks[0]
		rung.tasks = rung.tasks[1:]
		must(t, w.Handle(ctx, task))
	}
	if models.judged != 4 {
		t.Errorf("the judge was asked %d times, want twice for each call", models.judged)
	}
	items, err := h.store.Items(ctx, chat.ID, 0, 100)
	must(t, err)
	reminders := 0
	for _, item := range items {
		if item.Kind == domain.ItemReminder {
			reminders++
		}
	}
	if reminders != 1 {
		t.Errorf("%d reminders came", reminders)
	}
	to := time.Now().Add(time.Minute)
	sums, err := e.Usage(ctx, me, engine.UsageQuery{Group: domain.UsageByModel, To: &to})
	must(t, err)
	if len(sums) != 1 || sums[0].InputTokens != models.used.InputTokens || sums[0].OutputTokens != models.used.OutputTokens {
		t.Errorf("the ledger says %+v, the models used %+v", sums, models.used)
	}
}
