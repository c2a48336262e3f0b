package queue

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"openbot/domain"
)

// backOff is the pause after Redis answered a look for work with an error. asynq
// has none: a Redis that is full would make it ask tens of thousands of times a
// second.
const backOff = 250 * time.Millisecond

// errGivenUp ends asynq's loops at a stop while Redis does not answer.
var errGivenUp = errors.New("the server is stopping and Redis does not answer")

// hook stands between asynq's server and Redis. asynq polls; the hook makes its
// empty look for work wait for the bell, slows it down on errors, and rings when
// delayed tasks come due.
type hook struct {
	queues int // that one look for work goes through
	// Only asynq's one fetching goroutine touches these two.
	empty  int                          // looks in a row that found nothing
	quiet  map[domain.Urgency]time.Time // when a queue was found empty
	waiter waiter
	bell   bell
	stop   context.Context // over when the server stops
	talk   context.Context // over when a stopping server no longer waits for Redis
}

// DialHook leaves dialing as it is.
func (h *hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook leaves pipelines as they are.
func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook watches the scripts that asynq runs.
func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.talk.Err() != nil {
			cmd.SetErr(errGivenUp)
			return errGivenUp
		}
		if ctx.Done() == nil {
			ctx = h.talk // cuts go-redis' retries short
		}
		script := scriptOf(cmd)
		switch script.use {
		case useFetch:
			return h.fetch(next, cmd, domain.Urgency(script.queue))
		case useForward:
			err := next(ctx, cmd)
			if moved, ok := cmd.(*redis.Cmd); err == nil && ok {
				if n, _ := moved.Int(); n > 0 {
					ctx, cancel := within(ctx, moment)
					defer cancel()
					_ = h.bell.ring(ctx, map[domain.Urgency]int{domain.Urgency(script.queue): n})
				}
			}
			return err
		default:
			return next(ctx, cmd)
		}
	}
}

// quietFor is how long a queue that was found empty counts as empty while others keep
// the worker busy, and so the most that a task waits in vain. A worker that waits hears
// the bell.
const quietFor = 5 * time.Millisecond

// fetch runs asynq's look for work in one queue. After the last empty queue it
// waits, so that asynq looks again when there is something. It asks Redis only about
// queues that may hold something: asynq looks through all of them for each task.
func (h *hook) fetch(next redis.ProcessHook, cmd redis.Cmder, queue domain.Urgency) error {
	if h.stop.Err() != nil {
		return nothing(cmd)
	}
	if since, quiet := h.quiet[queue]; quiet && time.Since(since) < quietFor {
		h.miss()
		return nothing(cmd)
	}
	// The server's own context, so that a stop cuts go-redis' retries short. A look
	// that is under way ends first: its task would be lost for minutes.
	err := next(h.stop, cmd)
	switch {
	case err == nil:
		h.empty = 0
	case errors.Is(err, redis.Nil):
		h.quiet[queue] = time.Now()
		h.miss()
	case redis.HasErrorPrefix(err, "NOSCRIPT"):
		// go-redis sends the script itself right after this.
	case h.stop.Err() != nil:
		return nothing(cmd)
	default:
		h.empty = 0
		pause(h.stop, backOff)
	}
	return err
}

// miss counts a look that found nothing, and waits after the last one.
func (h *hook) miss() {
	if h.empty++; h.empty < h.queues {
		return
	}
	h.empty = 0
	rung := h.waiter.wait()
	if len(rung) == 0 {
		clear(h.quiet)
		return
	}
	// What came into the others meanwhile has rung for itself.
	now := time.Now()
	for queue := range h.quiet {
		h.quiet[queue] = now
	}
	for _, queue := range rung {
		delete(h.quiet, queue)
	}
}

// nothing answers a look for work as an empty queue would.
func nothing(cmd redis.Cmder) error {
	cmd.SetErr(redis.Nil)
	return redis.Nil
}

// use is what a script of asynq's does, as far as the hook cares.
type use int

const (
	useOther   use = iota
	useFetch       // take a task off one queue
	useForward     // move due tasks to pending
)

type script struct {
	use   use
	queue string
}

// scriptOf recognises a script by its keys: asynq keeps the scripts to itself, but
// what they work on is its storage format.
func scriptOf(cmd redis.Cmder) script {
	if name := cmd.Name(); name != "evalsha" && name != "eval" {
		return script{}
	}
	args := cmd.Args() // name, script, number of keys, keys, arguments
	if len(args) < 5 {
		return script{}
	}
	switch count, _ := args[2].(int); {
	case count == 4 && len(args) > 6 && ends(args[3], ":pending") && ends(args[4], ":paused") &&
		ends(args[5], ":active") && ends(args[6], ":lease"):
		return script{use: useFetch, queue: queueIn(args[3])}
	case count == 2 && (ends(args[3], ":scheduled") || ends(args[3], ":retry")) && ends(args[4], ":pending"):
		return script{use: useForward, queue: queueIn(args[4])}
	}
	return script{}
}

// queueIn gives the name of the queue in asynq's key of what is pending.
func queueIn(arg any) string {
	key, _ := arg.(string)
	return strings.TrimSuffix(strings.TrimPrefix(key, "asynq:{"), "}:pending")
}

func ends(arg any, suffix string) bool {
	text, ok := arg.(string)
	return ok && strings.HasSuffix(text, suffix)
}
