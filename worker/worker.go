// Package worker does what tasks ask for: model steps, App calls, looks at Apps.
// It is the only code that talks to the outside world, always between two commits
// of the engine, and it never writes state itself.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// Options are what a Worker is made of.
type Options struct {
	Engine *engine.Engine
	Models engine.Models
	Apps   engine.Apps
	Hosts  engine.Hosts
	// Hooks tells outside receivers.
	Hooks engine.Hooks
	// Mailer sends e-mail; nil when no mail server is set.
	Mailer engine.Mailer
	// Programs runs the programs of Bots.
	Programs engine.Programs
	Logger   *slog.Logger
	// Metrics counts what went out; nil counts nothing.
	Metrics *Metrics
}

// Worker handles tasks. It is stateless: any number may run, each task may come
// twice or never, and the engine's versions and leases decide whose work counts.
type Worker struct {
	Options
	handlers map[domain.TaskKind]func(context.Context, domain.Task) error
	calm     pace // of steps that nobody waits for
}

// New makes a Worker.
func New(o Options) *Worker {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Worker{Options: o, calm: make(pace, max(1, runtime.GOMAXPROCS(0)/2))}
	w.handlers = map[domain.TaskKind]func(context.Context, domain.Task) error{
		domain.TaskTurnStep: func(ctx context.Context, t domain.Task) error {
			return w.step(ctx, domain.TurnID(t.Subject), t.Revision, w.paceOf(t))
		},
		domain.TaskCallSend: func(ctx context.Context, t domain.Task) error {
			return w.send(ctx, domain.CallID(t.Subject), t.Revision)
		},
		domain.TaskCallLapse: func(ctx context.Context, t domain.Task) error {
			return w.Engine.LapseCall(ctx, domain.CallID(t.Subject))
		},
		domain.TaskRequestElapse: func(ctx context.Context, t domain.Task) error {
			return w.Engine.ElapseRequest(ctx, domain.RequestID(t.Subject))
		},
		domain.TaskRequestsElapse: func(ctx context.Context, t domain.Task) error {
			share, err := strconv.Atoi(t.Subject)
			if err != nil || share < 0 || share >= domain.ExpiryShares {
				return domain.Errorf(domain.CodeInvalid, "Share", "There is no such share of the Requests whose time is up.")
			}
			return w.Engine.ElapseRequests(ctx, share)
		},
		domain.TaskGrantSettle: func(ctx context.Context, t domain.Task) error {
			return w.Engine.SettleGrant(ctx, domain.GrantID(t.Subject))
		},
		domain.TaskConnectionLook: func(ctx context.Context, t domain.Task) error {
			return w.look(ctx, domain.ConnectionID(t.Subject))
		},
		domain.TaskCallJudge: func(ctx context.Context, t domain.Task) error {
			return w.judge(ctx, domain.CallID(t.Subject), t.Revision)
		},
		domain.TaskProgramRun: func(ctx context.Context, t domain.Task) error {
			return w.program(ctx, domain.CallID(t.Subject), t.Revision)
		},
		domain.TaskRequestReview: func(ctx context.Context, t domain.Task) error {
			return w.Engine.AdvanceReview(ctx, domain.RequestID(t.Subject))
		},
		domain.TaskTriggerFire: func(ctx context.Context, t domain.Task) error {
			return w.Engine.FireTrigger(ctx, domain.TriggerID(t.Subject))
		},
		domain.TaskRequestVerdict: func(ctx context.Context, t domain.Task) error {
			return w.readRequest(ctx, domain.RequestID(t.Subject))
		},
		domain.TaskRequestFollowUp: func(ctx context.Context, t domain.Task) error {
			return w.Engine.FollowUpRequest(ctx, domain.RequestID(t.Subject))
		},
		domain.TaskWorkElapse: func(ctx context.Context, t domain.Task) error {
			awaitDue(ctx, time.UnixMilli(t.Revision))
			return w.Engine.ElapseWork(ctx, domain.DelegationID(t.Subject))
		},
		domain.TaskWorkNotify: func(ctx context.Context, t domain.Task) error {
			return w.Engine.NotifyWork(ctx, domain.DelegationID(t.Subject))
		},
		domain.TaskWorkClose: func(ctx context.Context, t domain.Task) error {
			return w.Engine.CloseWork(ctx, domain.DelegationID(t.Subject))
		},
		domain.TaskWorkResume: func(ctx context.Context, t domain.Task) error {
			return w.Engine.ResumeWork(ctx, domain.DelegationID(t.Subject))
		},
		domain.TaskRulePreview: func(ctx context.Context, t domain.Task) error {
			return w.preview(ctx, domain.PreviewID(t.Subject), t.Revision)
		},
		domain.TaskBotClose: func(ctx context.Context, t domain.Task) error {
			return w.Engine.CloseBot(ctx, domain.BotID(t.Subject))
		},
		domain.TaskWebhookDeliver: func(ctx context.Context, t domain.Task) error {
			return w.deliver(ctx, domain.DeliveryID(t.Subject), t.Revision)
		},
		domain.TaskTokenClose: func(ctx context.Context, t domain.Task) error {
			return w.Engine.CloseRights(ctx, t.Subject)
		},
		domain.TaskReminderFire: func(ctx context.Context, t domain.Task) error {
			return w.Engine.FireReminder(ctx, domain.ReminderID(t.Subject))
		},
	}
	return w
}

// Handle does what one task asks for. An error means that it may be tried again;
// one that cannot get better is logged and dropped, since the sweep rings for
// whatever is still open.
func (w *Worker) Handle(ctx context.Context, task domain.Task) error {
	handle, ok := w.handlers[task.Kind]
	if !ok {
		w.Logger.Warn("a task of a kind that this version does not know was dropped", "kind", task.Kind)
		return nil
	}
	err := handle(ctx, task)
	if err == nil || Retry(domain.CodeOf(err)) {
		return err
	}
	w.Logger.Error("a task was given up", "kind", task.Kind, "subject", task.Subject, "error", err)
	return nil
}

// Retry says whether a task that failed with this code is worth another try soon.
func Retry(code domain.Code) bool {
	switch code {
	case domain.CodeConflict, domain.CodeUnavailable, domain.CodeExhausted, domain.CodeInternal:
		return true
	case domain.CodeInvalid, domain.CodeUnauthenticated, domain.CodeForbidden, domain.CodeNotFound, domain.CodePrecondition:
		return false
	}
	return true
}

// step takes one model step. Its commit is fenced by the Turn's version; a step
// that runs long pushes the Turn's due time ahead, so that nobody else starts it,
// and learns that way when it is not wanted any more.
func (w *Worker) step(ctx context.Context, id domain.TurnID, version int64, pace pace) error {
	var step *engine.Step
	err := pace.keep(ctx, func() (err error) {
		step, err = w.Engine.PrepareStep(ctx, id, version)
		return err
	})
	if err != nil || step == nil {
		return err
	}
	mark(ctx, step.Chat(), step.Turn(), "")
	if step.Reply != nil {
		commit, stop := saving(ctx)
		defer stop()
		return pace.keep(commit, func() error { return w.Engine.CommitStep(commit, step, *step.Reply) })
	}
	reply, err := whileWanted(ctx,
		func(ctx context.Context) (bool, error) { return w.Engine.PushStep(ctx, step) },
		func(ctx context.Context) (domain.ModelReply, error) { return w.Models.Call(ctx, step.Request) })
	if errors.Is(err, errNotWanted) {
		return nil
	}
	if err != nil && ctx.Err() != nil {
		return domain.Wrap(domain.CodeUnavailable, "Unavailable", "the worker is stopping", ctx.Err())
	}
	commit, stop := saving(ctx)
	defer stop()
	if err == nil {
		w.Metrics.model("ok")
		return pace.keep(commit, func() error { return w.Engine.CommitStep(commit, step, reply) })
	}
	var failure *domain.ModelError
	if !errors.As(err, &failure) {
		failure = &domain.ModelError{Message: "The model could not be called.", Err: err}
	}
	w.Metrics.model("failed")
	w.Logger.Warn("a model call gave no reply", "turn", step.Turn(), "chat", step.Chat(), "temporary", failure.Temporary, "error", failure)
	return w.Engine.FailStep(commit, step, failure)
}

// saveWithin is how long a result may take to be saved when the worker stops.
const saveWithin = 15 * time.Second

// saving gives a context for saving what came back: a worker that is being stopped
// still saves it.
func saving(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), saveWithin)
}

// look looks at an App because somebody asked for it.
func (w *Worker) look(ctx context.Context, id domain.ConnectionID) error {
	c, err := w.Engine.LookTarget(ctx, id)
	if err != nil || c == nil {
		return err
	}
	return w.lookAt(ctx, *c)
}

func (w *Worker) lookAt(ctx context.Context, c domain.Connection) error {
	look, err := w.Apps.Look(ctx, engine.Endpoint(c))
	if err != nil && ctx.Err() != nil {
		return domain.Wrap(domain.CodeUnavailable, "Unavailable", "the worker is stopping", ctx.Err())
	}
	var failure *domain.AppError
	if err != nil && !errors.As(err, &failure) {
		failure = &domain.AppError{Message: "The App could not be reached.", Err: err}
	}
	if failure != nil {
		w.Logger.Warn("an App could not be looked at", "connection", c.ID, "error", failure)
	}
	commit, stop := saving(ctx)
	defer stop()
	return w.Engine.SaveLook(commit, c, look, failure)
}
