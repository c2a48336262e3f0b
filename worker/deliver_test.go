package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/worker"
)

// hooks are receivers that do what the test says.
type hooks func(ctx context.Context, m domain.HookMessage) (int, error)

func (h hooks) Deliver(ctx context.Context, m domain.HookMessage) (int, error) { return h(ctx, m) }

// telling is a worker with one message to deliver.
func telling(t *testing.T, at time.Time, receiver hooks) (*worker.Worker, *engine.Engine, domain.Principal, domain.Webhook, domain.Task) {
	t.Helper()
	ctx := t.Context()
	playbook := newPlaybook(t)
	h := newHouse(t, engine.Options{Models: playbook, Clock: func() time.Time { return at }})
	e, me, rung := h.engine, h.me, h.rung
	w := worker.New(worker.Options{Engine: e, Models: playbook, Hooks: receiver})
	url := "https://x.example"
	hook, _, err := e.CreateWebhook(ctx, me, engine.WebhookFields{URL: &url, Events: []string{domain.HookRequestPending}})
	must(t, err)
	chat, err := e.CreateChat(ctx, me, engine.NewChat{})
	must(t, err)
	_, err = e.PostMessage(ctx, me, chat.ID, `/call openbot_spawn {"name":"A","role":"","instructions":"","reason":"r"}`)
	must(t, err)
	must(t, w.Handle(ctx, rung.tasks[0]))
	task := rung.tasks[len(rung.tasks)-1]
	if task.Kind != domain.TaskWebhookDeliver || task.Urgency != domain.UrgencyDelivery {
		t.Fatalf("%+v was rung", task)
	}
	return w, e, me, hook, task
}

// A worker that is being stopped finishes a try and saves what came of it.
func TestAWorkerThatStopsFinishesATry(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	w, e, me, hook, task := telling(t, time.Now(), func(ctx context.Context, _ domain.HookMessage) (int, error) {
		stop()
		return 200, ctx.Err()
	})
	must(t, w.Handle(stopping, task))
	list, err := e.Deliveries(t.Context(), me, hook.ID, "", domain.Page{Limit: 9})
	must(t, err)
	if len(list) != 1 || list[0].Status != domain.DeliveryDelivered {
		t.Errorf("the deliveries are %+v", list)
	}
	must(t, w.Handle(t.Context(), task)) // rung again: it has moved on
}

// An error that says nothing for people is kept in words that tell nothing of it.
func TestATryThatEndsInAStrangeError(t *testing.T) {
	w, e, me, hook, task := telling(t, time.Now(), func(context.Context, domain.HookMessage) (int, error) {
		return 0, errors.New("secret hush")
	})
	must(t, w.Handle(t.Context(), task))
	list, err := e.Deliveries(t.Context(), me, hook.ID, domain.DeliveryPending, domain.Page{Limit: 9})
	must(t, err)
	if len(list) != 1 || list[0].Tries != 1 || strings.Contains(list[0].Outcome, "hush") || list[0].Outcome == "" {
		t.Errorf("the deliveries are %+v", list)
	}
}
