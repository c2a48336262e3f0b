package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"openbot/domain"
)

const (
	// batch is how many tasks share one moment. A request rings a few tasks and so
	// waits one moment at most; a sweep rings more and gets one for each batch, but
	// its first late batch ends the call.
	batch = 16
	// lanes is how many tasks of a batch are under way at once.
	lanes = 8
)

// Ring enqueues tasks and wakes workers. A task that is already there is success.
// It reports no errors: what cannot be rung within 50 ms for each 16 tasks (2 s with
// Redis inside) is left to the sweep. A Task with Overdue set is also put back in motion when its earlier
// ring is stuck: held by a worker that may be dead, archived, or lost half-way.
func (q *Queue) Ring(ctx context.Context, tasks ...domain.Task) {
	for len(tasks) > 0 {
		n := min(batch, len(tasks))
		if q.ringBatch(ctx, tasks[:n]) != nil {
			return
		}
		tasks = tasks[n:]
	}
}

// ringBatch rings some tasks within one moment.
func (q *Queue) ringBatch(ctx context.Context, tasks []domain.Task) error {
	ctx, cancel := within(ctx, q.moment)
	defer cancel()
	return q.breaker.do(func() error {
		var rung tally
		err := each(len(tasks), func(i int) error {
			now, err := q.ringOne(ctx, tasks[i])
			if now {
				rung.add(queueOf(tasks[i].Urgency))
			}
			return err
		})
		// Workers are woken for what went in, even when something else failed.
		return errors.Join(err, q.bell.ring(ctx, rung.read()))
	})
}

// ringOne enqueues one task and reports whether it can run now.
func (q *Queue) ringOne(ctx context.Context, t domain.Task) (bool, error) {
	id := identity(t)
	added, err := q.enqueue(ctx, t, id)
	if err != nil || added || !t.Overdue {
		return added && !t.At.After(time.Now()), err
	}
	return q.ringAgain(ctx, t, id)
}

// enqueue adds a task under an identity; false means that it was there already,
// which can also be the echo of this very call after a lost reply.
func (q *Queue) enqueue(ctx context.Context, t domain.Task, id string) (bool, error) {
	task, err := encode(t, id)
	if err != nil {
		return false, err
	}
	_, err = q.asynq.EnqueueContext(ctx, task)
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return false, nil
	}
	return err == nil, err
}

// each calls work for 0 to n-1 on a few lanes and gives the first error, after
// which it starts no more.
func each(n int, work func(i int) error) error {
	if n == 1 {
		return work(0)
	}
	var (
		next  atomic.Int64
		once  sync.Once
		first error
		group sync.WaitGroup
	)
	for range min(n, lanes) {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := work(i); err != nil {
					once.Do(func() { first = err })
					next.Store(int64(n))
					return
				}
			}
		})
	}
	group.Wait()
	return first
}

// tally counts what was enqueued for each queue.
type tally struct {
	mu     sync.Mutex
	counts map[domain.Urgency]int
}

func (t *tally) add(u domain.Urgency) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[domain.Urgency]int)
	}
	t.counts[u]++
}

func (t *tally) read() map[domain.Urgency]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}
