package worker_test

import (
	"context"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/worker"
)

// watched is a model that is looked at while it thinks.
type watched struct {
	engine.Models
	thinking func()
}

func (m watched) Call(ctx context.Context, r domain.ModelRequest) (domain.ModelReply, error) {
	m.thinking()
	return m.Models.Call(ctx, r)
}

// Steps that nobody waits for take turns to load and commit, and none holds a place while
// its model thinks. All others never wait for them.
func TestStepsThatCanWaitTakeTurns(t *testing.T) {
	ctx := t.Context()
	var w *worker.Worker
	held := 0 // by the test
	models := watched{newPlaybook(t), func() {
		if now, _ := w.Calm(); now != held {
			t.Errorf("%d places are held while a model thinks", now)
		}
	}}
	h := newHouse(t, engine.Options{Models: models})
	w = worker.New(worker.Options{Engine: h.engine, Models: models})
	_, most := w.Calm()
	if most < 1 {
		t.Fatal("no step that can wait would ever go on")
	}
	say := func(urgency domain.Urgency) (domain.TurnID, domain.Task) {
		t.Helper()
		h.rung.tasks = nil
		chat, err := h.engine.CreateChat(ctx, h.me, engine.NewChat{})
		must(t, err)
		posted, err := h.engine.PostMessage(ctx, h.me, chat.ID, "/say done")
		must(t, err)
		task := h.rung.tasks[0]
		task.Urgency = urgency
		return posted.Turn, task
	}
	ended := func(turn domain.TurnID) bool {
		t.Helper()
		view, err := h.engine.Turn(ctx, h.me, turn)
		must(t, err)
		return view.Turn.Status == domain.TurnCompleted
	}
	turn, task := say(domain.UrgencyRest)
	must(t, w.Handle(ctx, task))
	if !ended(turn) {
		t.Error("a step that can wait did not end")
	}

	w.FillCalm()
	held = most
	stopping, stop := context.WithCancel(ctx)
	stop()
	_, task = say(domain.UrgencyRest)
	idle := worker.New(worker.Options{}) // it would fall over if it took the step
	idle.FillCalm()
	if err := idle.Handle(stopping, task); domain.CodeOf(err) != domain.CodeUnavailable {
		t.Errorf("without a place it gave %v", err)
	}
	turn, task = say(domain.UrgencyAnswer)
	must(t, w.Handle(ctx, task))
	if !ended(turn) {
		t.Error("a step that somebody waits for did not end")
	}
}

// The queue knows whole seconds only, so the task of a time limit comes early. It waits: one
// that found nothing to do would leave the limit to the next sweep.
func TestATaskOfALimitThatComesEarlyWaits(t *testing.T) {
	h := newHouse(t, engine.Options{Models: newPlaybook(t)})
	w := worker.New(worker.Options{Engine: h.engine})
	task := domain.Task{Kind: domain.TaskWorkElapse, Subject: "dlg_absent", Urgency: domain.UrgencyTurn}
	due := time.Now().Add(50 * time.Millisecond)
	task.Revision = due.UnixMilli()
	must(t, w.Handle(t.Context(), task))
	if early := time.Until(time.UnixMilli(task.Revision)); early > 0 {
		t.Errorf("it did not wait: it is %s early", early)
	}
	task.Revision = time.Now().Add(time.Hour).UnixMilli()
	must(t, w.Handle(t.Context(), task)) // it would never end
}
