package worker

import (
	"context"
	"errors"

	"openbot/domain"
)

// program runs a program once and saves what came of it. The commit is fenced by the
// version of its call; a run that waits for its place pushes the due time ahead, so
// that nobody else makes it, and is killed when it is not wanted any more.
func (w *Worker) program(ctx context.Context, id domain.CallID, version int64) error {
	run, err := w.Engine.PrepareProgram(ctx, id, version)
	if err != nil || run == nil {
		return err
	}
	outcome, err := whileWanted(ctx,
		func(ctx context.Context) (bool, error) { return w.Engine.PushProgram(ctx, run) },
		func(ctx context.Context) (domain.ProgramOutcome, error) {
			return w.Programs.Run(ctx, run.Source, run.Answers, run.Earlier)
		})
	if errors.Is(err, errNotWanted) {
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
