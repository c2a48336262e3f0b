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

// Work that is paused in them sends nothing either; its call goes out when the work goes on.
func TestACallWhoseWorkIsPausedWhileItsAppIsReachedGoesOutAfterThePause(t *testing.T) {
	ctx := t.Context()
	playbook := newPlaybook(t)
	sent := 0
	reaching := func() {}
	ahead := time.Duration(0)
	h := newHouse(t, engine.Options{Models: playbook, Clock: func() time.Time { return time.Now().Add(ahead) }})
	e, me, rung := h.engine, h.me, h.rung
	w := worker.New(worker.Options{Engine: e, Models: playbook, Hosts: slowHost{func() { reaching() }, &sent}})
	name, text, endpoint, approval := "deploy", "d", "https://host.example/", "none"
	_, _, err := e.CreateHostTool(ctx, me, engine.HostToolFields{Name: &name, Description: &text, Endpoint: &endpoint, Approval: &approval,
		Schema: json.RawMessage(`{"type":"object"}`)})
	must(t, err)
	chat, err := e.CreateChat(ctx, me, engine.NewChat{})
	must(t, err)
	work := func() domain.Delegation {
		t.Helper()
		views, err := e.Delegations(ctx, me, chat.ID, domain.Page{Limit: 2})
		must(t, err)
		if len(views) != 1 {
			t.Fatalf("the Chat gave %+v", views)
		}
		return views[0].Delegation
	}
	paused := false
	reaching = func() {
		if paused {
			return
		}
		paused = true
		ahead = time.Minute
		must(t, e.ElapseWork(ctx, work().ID))
		// The call was decided a minute ago by now, and its lease is as long as ever.
		ahead = 0
	}
	handle := func() {
		t.Helper()
		for len(rung.tasks) > 0 {
			task := rung.tasks[0]
			rung.tasks = rung.tasks[1:]
			if task.At.After(time.Now().Add(ahead)) {
				continue
			}
			must(t, w.Handle(ctx, task))
		}
	}
	ahead = -time.Second // of what takes the call, so that the look is due
	_, err = e.PostMessage(ctx, me, chat.ID, `/call openbot_delegate {"task":"/call deploy {}","limits":{"timeMs":2000}}`)
	must(t, err)
	handle()
	g := work()
	if g.Status != domain.DelegationPaused || sent != 0 {
		t.Fatalf("the work is %s (%s), and %d calls were sent", g.Status, g.Result, sent)
	}
	requests, err := e.Requests(ctx, me, domain.RequestFilter{}, domain.Page{Limit: 2})
	must(t, err)
	if len(requests) != 1 {
		t.Fatalf("the pause asks %+v", requests)
	}
	_, err = e.AnswerRequest(ctx, me, requests[0].ID, engine.Answer{Expected: requests[0].Revision, Decision: domain.DecisionAllow, Scope: domain.ScopeOnce})
	must(t, err)
	handle()
	if g = work(); g.Status != domain.DelegationCompleted || sent != 1 {
		t.Errorf("the work is %s (%s), and %d calls were sent, want one", g.Status, g.Result, sent)
	}
}
