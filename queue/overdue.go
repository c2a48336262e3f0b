package queue

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"openbot/domain"
)

const (
	// slack is how late a delayed task may be before its forwarder counts as stuck.
	slack = 2 * time.Second
	// horizon is how far ahead a task may lie that is already overdue by its row.
	horizon = 30 * time.Second
)

// ringAgain looks at the task that is in the way of an overdue ring and puts the
// row back in motion. It reports whether a task can now run.
func (q *Queue) ringAgain(ctx context.Context, t domain.Task, id string) (bool, error) {
	queue := string(queueOf(t.Urgency))
	inspector := asynq.NewInspectorFromRedisClient(timed{q.client, ctx})
	info, err := inspector.GetTaskInfo(queue, id)
	if errors.Is(err, asynq.ErrQueueNotFound) {
		// Redis was emptied: this process believes that the name is published.
		if err := q.publishNames(ctx); err != nil {
			return false, err
		}
		info, err = inspector.GetTaskInfo(queue, id)
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, asynq.ErrTaskNotFound):
		return q.enqueue(ctx, t, id) // it ended between the two looks
	case err != nil:
		return q.enqueueTry(ctx, t) // a task that cannot be read cannot run
	}
	switch info.State {
	case asynq.TaskStatePending:
		listed, err := q.isListed(ctx, queue, id)
		if err != nil || listed {
			return false, err
		}
	case asynq.TaskStateScheduled, asynq.TaskStateRetry:
		if wait := time.Until(info.NextProcessAt); wait > -slack && wait < horizon {
			return false, nil
		}
		if inspector.RunTask(queue, id) == nil {
			return true, nil
		}
	case asynq.TaskStateActive:
		// asynq would give a dead worker's task back after a minute or more. If the
		// worker lives, the row's own version tells the two runs apart.
		return q.enqueueTry(ctx, t)
	}
	// Archived, kept after its end, or a leftover without a place in any list.
	if inspector.DeleteTask(queue, id) == nil {
		if added, err := q.enqueue(ctx, t, id); added || err != nil {
			return added, err
		}
	}
	return q.enqueueTry(ctx, t)
}

// enqueueTry adds one more task beside the one that is stuck.
func (q *Queue) enqueueTry(ctx context.Context, t domain.Task) (bool, error) {
	return q.enqueue(ctx, t, identityOfTry(t, time.Now()))
}

// isListed reports whether a pending task has a place in its list. Without one no
// worker would ever see it.
func (q *Queue) isListed(ctx context.Context, queue, id string) (bool, error) {
	err := q.client.LPos(ctx, keyOf(queue, "pending"), id, redis.LPosArgs{}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// publishNames puts the queues' names where asynq's inspector looks for them.
func (q *Queue) publishNames(ctx context.Context) error {
	names := make([]any, len(urgencies))
	for i, u := range urgencies {
		names[i] = string(u)
	}
	return q.client.SAdd(ctx, "asynq:queues", names...).Err()
}

// keyOf gives asynq's key for a part of a queue.
func keyOf(queue, part string) string { return "asynq:{" + queue + "}:" + part }

// timed gives asynq's inspector the caller's deadline, which its methods do not take.
type timed struct {
	redis.UniversalClient
	ctx context.Context
}

// SIsMember is how the inspector asks whether a queue exists.
func (t timed) SIsMember(_ context.Context, key string, member any) *redis.BoolCmd {
	return t.UniversalClient.SIsMember(t.ctx, key, member)
}

// EvalSha is how the inspector runs a script that Redis knows.
func (t timed) EvalSha(_ context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return t.UniversalClient.EvalSha(t.ctx, sha, keys, args...)
}

// Eval is how the inspector runs a script that Redis does not know yet.
func (t timed) Eval(_ context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return t.UniversalClient.Eval(t.ctx, script, keys, args...)
}
