package worker_test

import (
	"context"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/worker"
)

// bell keeps what was rung.
type bell struct{ tasks []domain.Task }

func (b *bell) Ring(_ context.Context, tasks ...domain.Task) { b.tasks = append(b.tasks, tasks...) }

type silence struct{}

func (silence) Publish(context.Context, ...string)         {}
func (silence) Subscribe(string) (<-chan struct{}, func()) { return nil, func() {} }

// hanging is a judge that answers never, or with an error at once.
type hanging struct {
	engine.Models
	err    error
	called func()
}

func (h hanging) Call(ctx context.Context, r domain.ModelRequest) (domain.ModelReply, error) {
	if r.Purpose != domain.PurposeJudge {
		return h.Models.Call(ctx, r)
	}
	if h.err != nil {
		return domain.ModelReply{}, h.err
	}
	if h.called != nil {
		h.called()
	}
	<-ctx.Done()
	return domain.ModelReply{}, &domain.ModelError{Temporary: true, Message: "too slow", Err: ctx.Err()}
}

// A judge that hangs or fails is given up within its limit, and the person is asked,
// with the reason kept.
func TestAJudgeThatHangsIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		err error
		why string
	}{
		"hangs": {nil, "the judge gave no answer in time"},
		"fails": {&domain.ModelError{Message: "no"}, "the judge could not be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			playbook := newPlaybook(t)
			models := hanging{Models: playbook, err: c.err}
			h := newHouse(t, engine.Options{Models: models, JudgeLimit: 20 * time.Millisecond})
			e, me, rung := h.engine, h.me, h.rung
			w := worker.New(worker.Options{Engine: e, Models: models})
			text := "Allow bots.spawn."
			_, err := e.CreateRule(ctx, me, engine.RuleFields{Text: &text})
			must(t, err)
			chat, err := e.CreateChat(ctx, me, engine.NewChat{})
			must(t, err)
			posted, err := e.PostMessage(ctx, me, chat.ID, `/call openbot_spawn {"name":"A","role":"","instructions":"","reason":"r"}`)
			must(t, err)
			for len(rung.tasks) > 0 {
				task := rung.tasks[0]
				rung.tasks = rung.tasks[1:]
				must(t, w.Handle(ctx, task))
			}
			view, err := e.Turn(ctx, me, posted.Turn)
			must(t, err)
			call := view.Calls[0]
			kept := ""
			for _, f := range call.Evidence {
				if f.Step == domain.StepRule {
					kept = f.Found
				}
			}
			if call.Status != domain.CallWaiting || kept != c.why {
				t.Fatalf("the call is %s, and %q is kept", call.Status, kept)
			}
		})
	}
}

// A worker that is stopped while it asks the judge decides nothing: another asks again.
func TestAWorkerThatStopsLeavesTheJudgingToOthers(t *testing.T) {
	ctx := t.Context()
	playbook := newPlaybook(t)
	stopping, stop := context.WithCancel(ctx)
	models := hanging{Models: playbook, called: stop}
	h := newHouse(t, engine.Options{Models: models})
	e, me, rung := h.engine, h.me, h.rung
	w := worker.New(worker.Options{Engine: e, Models: models})
	text := "Allow bots.spawn."
	_, err := e.CreateRule(ctx, me, engine.RuleFields{Text: &text})
	must(t, err)
	chat, err := e.CreateChat(ctx, me, engine.NewChat{})
	must(t, err)
	posted, err := e.PostMessage(ctx, me, chat.ID, `/call openbot_spawn {"name":"A","role":"","instructions":"","reason":"r"}`)
	must(t, err)
	must(t, w.Handle(ctx, rung.tasks[0]))
	judge := rung.tasks[len(rung.tasks)-1]
	if judge.Kind != domain.TaskCallJudge || judge.Urgency != domain.UrgencyJudge {
		t.Fatalf("%+v was rung", judge)
	}
	if err := w.Handle(stopping, judge); domain.CodeOf(err) != domain.CodeUnavailable {
		t.Fatalf("the stop gave %v", err)
	}
	view, err := e.Turn(ctx, me, posted.Turn)
	must(t, err)
	if call := view.Calls[0]; call.Status != domain.CallChecking || call.DueAt == nil || call.Judgings != 1 {
		t.Fatalf("the call is %s, due at %v, after %d judgings", call.Status, call.DueAt, call.Judgings)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plain is a Sealer for tests that look at no secret.
type plain struct{}

func (plain) Seal(text []byte, _ domain.OrganizationID, _ string) ([]byte, error) { return text, nil }
func (plain) Open(text []byte, _ domain.OrganizationID, _ string) ([]byte, error) { return text, nil }
