package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"openbot/domain"
)

const (
	// batch is how many tasks share one moment. A request rings a few tasks and so
	// waits one moment at most; a sweep rings more and gets one for each batch.
	batch = 16
	// lanes is how many tasks of a batch are under way at once.
	lanes = 8
	// behindLimit is how long a ring goes on when its caller waits no longer: about as
	// long as the sweep would take to ring anew.
	behindLimit = 2 * time.Second
	// behindMost bounds the rings that nobody waits for any more. With so many Redis is
	// not slow but away.
	behindMost = 64
)

// Ring enqueues tasks and wakes workers. A task that is already there is success.
// It reports no errors: what cannot be rung is left to the sweep. The caller waits 50 ms
// for each 16 tasks, and not at all while an earlier ring is late; the ring itself goes on
// behind it for up to two seconds. A Task with Overdue set is also put back in motion
// when its earlier ring is stuck: held by a worker that may be dead, archived, or lost
// half-way.
func (q *Queue) Ring(ctx context.Context, tasks ...domain.Task) {
	if len(tasks) == 0 || !q.behind.enter() {
		return
	}
	tasks = slices.Clone(tasks) // the caller may go on before they are rung
	done := make(chan struct{})
	go func() {
		defer q.behind.leave()
		defer close(done)
		// The caller's commit is done, so its end is none of the ring.
		ctx, cancel := within(ctx, behindLimit)
		defer cancel()
		defer context.AfterFunc(q.behind.over, cancel)()
		for chunk := range slices.Chunk(tasks, batch) {
			if q.ringBatch(ctx, chunk) != nil {
				return
			}
		}
	}()
	if !q.behind.patient() {
		return
	}
	patience := time.NewTimer(q.moment * time.Duration((len(tasks)+batch-1)/batch))
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		q.behind.late(done)
	}
}

// behind counts the rings that are under way.
type behind struct {
	mu     sync.Mutex
	count  int
	lates  int
	closed bool
	idle   sync.WaitGroup
	over   context.Context // ends with the queue
	end    context.CancelFunc
}

func newBehind() *behind {
	b := &behind{}
	b.over, b.end = context.WithCancel(context.Background())
	return b
}

// enter counts a ring in; false when there are too many late ones, or after close.
func (b *behind) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.lates > 0 && b.count >= behindMost {
		return false
	}
	b.count++
	b.idle.Add(1)
	return true
}

func (b *behind) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count--
	b.idle.Done()
}

// patient reports whether a caller should wait for its ring.
func (b *behind) patient() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lates == 0
}

// late counts a ring as late until it is done.
func (b *behind) late(done <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.lates++
	b.idle.Go(func() {
		<-done
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lates--
	})
}

// close lets no more rings in, breaks off those under way and waits for them.
func (b *behind) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end()
	b.idle.Wait()
}

// ringBatch rings some tasks.
func (q *Queue) ringBatch(ctx context.Context, tasks []domain.Task) error {
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
		return added && !startOf(t).After(time.Now()), err
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
