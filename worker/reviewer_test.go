package worker_test

import (
	"context"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/worker"
)

// reviewerModel lets a test hold the reviewer in its hands; all else is the playbook.
type reviewerModel struct {
	engine.Models
	review func(context.Context) (domain.ModelReply, error)
}

func (m reviewerModel) Call(ctx context.Context, r domain.ModelRequest) (domain.ModelReply, error) {
	if r.Purpose != domain.PurposeReviewer {
		return m.Models.Call(ctx, r)
	}
	return m.review(ctx)
}

// reviewed brings a Request before this reviewer, as a worker does, and gives it with the
// error of the reviewer's task.
func reviewed(t *testing.T, ctx context.Context, review func(context.Context) (domain.ModelReply, error)) (domain.Request, error) {
	t.Helper()
	playbook := newPlaybook(t)
	models := reviewerModel{playbook, review}
	h := newHouse(t, engine.Options{Models: models, JudgeLimit: 20 * time.Millisecond})
	e, me, rung := h.engine, h.me, h.rung
	w := worker.New(worker.Options{Engine: e, Models: models})
	_, err := e.ChangeSettings(t.Context(), me, func(s *domain.Settings) error {
		s.Reviewer.Enabled = true
		return nil
	})
	must(t, err)
	chat, err := e.CreateChat(t.Context(), me, engine.NewChat{})
	must(t, err)
	_, err = e.PostMessage(t.Context(), me, chat.ID, `/call openbot_spawn {"name":"A","role":"","instructions":"","reason":"r"}`)
	must(t, err)
	var failure error
	for len(rung.tasks) > 0 {
		task := rung.tasks[0]
		rung.tasks = rung.tasks[1:]
		if task.Kind == domain.TaskRequestVerdict {
			failure = w.Handle(ctx, task)
			continue
		}
		must(t, w.Handle(t.Context(), task))
	}
	list, err := e.Requests(t.Context(), me, domain.RequestFilter{}, domain.Page{Limit: 2})
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("%d Requests were made", len(list))
	}
	return list[0], failure
}

// Whatever the reviewer does, the Request waits for its person, and the verdict is unclear
// unless it is one that there is.
func TestAReviewerThatDoesNotAnswerLeavesAnUnclearVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		review  func(context.Context) (domain.ModelReply, error)
		verdict string
		note    string
	}{
		"hangs": {func(ctx context.Context) (domain.ModelReply, error) {
			<-ctx.Done()
			return domain.ModelReply{}, ctx.Err()
		}, "unclear", "The reviewer gave no answer in time."},
		"fails": {func(context.Context) (domain.ModelReply, error) {
			return domain.ModelReply{}, &domain.ModelError{Message: "no"}
		}, "unclear", "The reviewer could not be asked."},
		"talks": {func(context.Context) (domain.ModelReply, error) {
			return domain.ModelReply{Text: "allow"}, nil
		}, "unclear", "The reviewer's answer is not the JSON object that was asked for."},
		"calls a tool": {func(context.Context) (domain.ModelReply, error) {
			return domain.ModelReply{Calls: []domain.ModelCall{{Name: "openbot_decide"}}}, nil
		}, "unclear", "The reviewer's answer is not the JSON object that was asked for."},
		"answers": {func(context.Context) (domain.ModelReply, error) {
			return domain.ModelReply{Text: `{"verdict":"block","note":"No."}`}, nil
		}, "block", "No."},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := reviewed(t, t.Context(), c.review)
			must(t, err)
			if r.ReviewVerdict == nil || r.ReviewVerdict.Verdict != c.verdict || r.ReviewVerdict.Note != c.note {
				t.Errorf("the verdict is %+v", r.ReviewVerdict)
			}
			if r.Status != domain.RequestPending || r.Revision != 0 || r.VerdictDueAt != nil {
				t.Errorf("the Request is %+v", r)
			}
		})
	}
}

// A worker that is stopped while it asks leaves the Request to others.
func TestAWorkerThatStopsLeavesTheReadingToOthers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, err := reviewed(t, ctx, func(ctx context.Context) (domain.ModelReply, error) {
		stop()
		<-ctx.Done()
		return domain.ModelReply{}, ctx.Err()
	})
	if !domain.IsCode(err, domain.CodeUnavailable) || r.ReviewVerdict != nil || r.VerdictDueAt == nil {
		t.Errorf("%v: the Request is %+v", err, r)
	}
}
