package worker_test

import (
	"context"
	"encoding/json"
	"testing"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/worker"
)

// host answers every call, after it did what the test says.
type host struct{ called func() }

func (h host) CallHost(context.Context, domain.HostTool, domain.Call, func() error) (domain.AppResult, error) {
	h.called()
	return domain.AppResult{Text: "done"}, nil
}

// stalling is a model that is not reached any more once the worker stops.
type stalling struct{ engine.Models }

func (s stalling) Call(ctx context.Context, r domain.ModelRequest) (domain.ModelReply, error) {
	if ctx.Err() != nil {
		return domain.ModelReply{}, ctx.Err()
	}
	return s.Models.Call(ctx, r)
}

// The worker of a call goes on with the Turn in the same task. When it cannot, since it is
// being stopped, another is rung for the step: the task of the call is over.
func TestTheWorkerOfACallGoesOnWithItsTurn(t *testing.T) {
	ctx := t.Context()
	playbook := newPlaybook(t)
	working, stop := context.WithCancel(ctx)
	called := func() {}
	models := stalling{playbook}
	h := newHouse(t, engine.Options{Models: models})
	e, me, rung := h.engine, h.me, h.rung
	w := worker.New(worker.Options{Engine: e, Models: models, Hosts: host{called: func() { called() }}})
	name, text, endpoint, approval := "deploy", "d", "https://host.example/", "none"
	_, _, err := e.CreateHostTool(ctx, me, engine.HostToolFields{Name: &name, Description: &text, Endpoint: &endpoint, Approval: &approval,
		Schema: json.RawMessage(`{"type":"object"}`)})
	must(t, err)

	// call has a Turn call the tool, up to the task that sends it.
	call := func() (domain.TurnID, domain.Task) {
		t.Helper()
		rung.tasks = nil
		chat, err := e.CreateChat(ctx, me, engine.NewChat{})
		must(t, err)
		posted, err := e.PostMessage(ctx, me, chat.ID, "/call deploy {}")
		must(t, err)
		must(t, w.Handle(ctx, rung.tasks[0]))
		send := rung.tasks[len(rung.tasks)-1]
		if send.Kind != domain.TaskCallSend {
			t.Fatalf("%+v was rung", send)
		}
		rung.tasks = nil
		return posted.Turn, send
	}
	turn, send := call()
	must(t, w.Handle(working, send))
	view, err := e.Turn(ctx, me, turn)
	must(t, err)
	if view.Turn.Status != domain.TurnCompleted || len(rung.tasks) != 0 {
		t.Errorf("the Turn is %s, and %+v were rung", view.Turn.Status, rung.tasks)
	}

	turn, send = call()
	called = stop
	if err := w.Handle(working, send); domain.CodeOf(err) != domain.CodeUnavailable {
		t.Errorf("the stop gave %v", err)
	}
	if len(rung.tasks) != 1 || rung.tasks[0].Kind != domain.TaskTurnStep {
		t.Fatalf("%+v were rung", rung.tasks)
	}
	must(t, w.Handle(ctx, rung.tasks[0]))
	if view, err = e.Turn(ctx, me, turn); err != nil || view.Turn.Status != domain.TurnCompleted {
		t.Errorf("the Turn is %s (%v)", view.Turn.Status, err)
	}
}
