package worker

import (
	"context"
	"errors"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// program runs a program once and saves what came of it. The commit is fenced by the
// version of its call; a run that waits for its place pushes the due time ahead, so
// that nobody else makes it, and is killed when it is not wanted any more.
func (w *Worker) program(ctx context.Context, id domain.CallID, version int64) error {
	run, err := w.Engine.PrepareProgram(ctx, id, version)
	if err != nil || run == nil {
		return err
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done, pushed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(pushed)
		w.pushProgram(within, cancel, run, done)
	}()
	outcome, err := w.Programs.Run(within, run.Source, run.Answers, run.Earlier)
	close(done)
	<-pushed
	if errors.Is(context.Cause(within), errNotWanted) {
		return nil
	}
	if err != nil {
		// The row is due again soon, and its tries are counted.
		w.Logger.Warn("a program could not be run", "call", run.Call(), "chat", run.Chat(), "error", err)
		return err
	}
	commit, stop := saving(ctx)
	defer stop()
	return w.Engine.CommitProgram(commit, run, outcome)
}

func (w *Worker) pushProgram(ctx context.Context, cancel context.CancelCauseFunc, run *engine.ProgramRun, done <-chan struct{}) {
	tick := time.NewTicker(domain.LeaseRenewal)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			wanted, err := w.Engine.PushProgram(ctx, run)
			if err == nil && !wanted {
				cancel(errNotWanted)
				return
			}
		}
	}
}
