package worker_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/worker"
)

// slowHost is reached only after a while, in which the test does something.
type slowHost struct {
	reaching func()
	sent     *int
}

func (h slowHost) CallHost(_ context.Context, _ domain.HostTool, _ domain.Call, ready func() error) (domain.AppResult, error) {
	h.reaching()
	if err := ready(); err != nil {
		return domain.AppResult{}, err
	}
	*h.sent++
	return domain.AppResult{Text: "done"}, nil
}

// Reaching an App can take seconds after it was committed that a call goes out. Work that is
// stopped in them sends nothing.
func TestACallWhoseWorkIsStoppedWhileItsAppIsReachedStaysHere(t *testing.T) {
	ctx := t.Context()
	playbook := newPlaybook(t)
	sent := 0
	reaching := func() {}
	past := time.Duration(0)
	h := newHouse(t, engine.Options{Models: playbook, Clock: func() time.Time { return time.Now().Add(-past) }})
	e, me, rung := h.engine, h.me, h.rung
	w := worker.New(worker.Options{Engine: e, Models: playbook, Hosts: slowHost{func() { reaching() }, &sent}})
	name, text, endpoint, approval := "deploy", "d", "https://host.example/", "none"
	_, _, err := e.CreateHostTool(ctx, me, engine.HostToolFields{Name: &name, Description: &text, Endpoint: &endpoint, Approval: &approval,
		Schema: json.RawMessage(`{"type":"object"}`)})
	must(t, err)
	var chat domain.Chat
	// send has a Turn call the tool, and sends the call a second after it was decided.
	send := func() domain.TurnID {
		t.Helper()
		chat, err = e.CreateChat(ctx, me, engine.NewChat{})
		must(t, err)
		rung.tasks = nil
		posted, err := e.PostMessage(ctx, me, chat.ID, "/call deploy {}")
		must(t, err)
		must(t, w.Handle(ctx, rung.tasks[0]))
		past = time.Second
		must(t, w.Handle(ctx, rung.tasks[len(rung.tasks)-1]))
		past = 0
		return posted.Turn
	}
	turn := send()
	if view, err := e.Turn(ctx, me, turn); err != nil || sent != 1 || view.Turn.Status != domain.TurnCompleted {
		t.Fatalf("%d calls were sent, and the Turn is %s, %v", sent, view.Turn.Status, err)
	}

	reaching = func() {
		_, err := e.Interrupt(ctx, me, chat.ID, false)
		must(t, err)
	}
	turn = send()
	view, err := e.Turn(ctx, me, turn)
	must(t, err)
	if sent != 1 {
		t.Error("the call of an interrupted Turn was sent")
	}
	if len(view.Calls) != 1 || view.Calls[0].Open() || view.Turn.Status != domain.TurnInterrupted {
		t.Errorf("the Turn is %s, its calls are %+v", view.Turn.Status, view.Calls)
	}
}
