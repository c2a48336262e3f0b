package queue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"openbot/domain"
)

const (
	// nap is the longest wait for the bell, so what a lost ring costs.
	nap = time.Second
	// peals is how many rings are kept for workers that are busy when it rings. Each
	// one left over costs an idle worker one more look.
	peals = 16
)

// bell wakes workers that found every queue empty. A lost ring costs a nap, never a
// task.
type bell interface {
	// ring wakes a waiter for each task that went into a queue.
	ring(ctx context.Context, counts map[domain.Urgency]int) error
	// waiter gives a waiter for some queues; it must be closed.
	waiter(queues []domain.Urgency) waiter
}

// waiter waits for the bell, one wait at a time.
type waiter interface {
	// wait returns when the bell rang, after a nap, or when closed. It gives the queues
	// that it rang for; none means that each may hold something.
	wait() []domain.Urgency
	// close ends a wait at once.
	close()
}

// localBell rings within one process.
type localBell struct {
	mu      sync.Mutex
	waiters map[*localWaiter]struct{}
}

func newLocalBell() *localBell { return &localBell{waiters: make(map[*localWaiter]struct{})} }

func (b *localBell) ring(_ context.Context, counts map[domain.Urgency]int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.waiters {
		w.hear(counts)
	}
	return nil
}

func (b *localBell) waiter(queues []domain.Urgency) waiter {
	w := &localWaiter{bell: b, queues: queues, heard: make(map[domain.Urgency]bool), rung: make(chan struct{}, 1), stop: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters[w] = struct{}{}
	return w
}

type localWaiter struct {
	bell   *localBell
	queues []domain.Urgency
	heard  map[domain.Urgency]bool // guarded by the bell
	rung   chan struct{}
	stop   chan struct{}
	once   sync.Once
}

// hear is called under the lock of the bell.
func (w *localWaiter) hear(counts map[domain.Urgency]int) {
	for _, u := range w.queues {
		if counts[u] > 0 {
			w.heard[u] = true
			select {
			case w.rung <- struct{}{}:
			default: // it is already told
			}
		}
	}
}

func (w *localWaiter) wait() []domain.Urgency {
	timer := time.NewTimer(nap)
	defer timer.Stop()
	select {
	case <-w.rung:
		w.bell.mu.Lock()
		defer w.bell.mu.Unlock()
		heard := slices.Collect(maps.Keys(w.heard))
		clear(w.heard)
		return heard
	case <-w.stop:
	case <-timer.C:
	}
	return nil
}

func (w *localWaiter) close() {
	w.once.Do(func() {
		close(w.stop)
		w.bell.mu.Lock()
		defer w.bell.mu.Unlock()
		delete(w.bell.waiters, w)
	})
}

// redisBell rings across processes: a short list for each queue, on which idle
// workers block.
type redisBell struct {
	client  redis.UniversalClient
	address address
}

// bellKey names a queue's bell. The tag in braces keeps all bells on one node of a
// cluster, where one wait must cover several.
func bellKey(u domain.Urgency) string { return "openbot:{bell}:" + string(u) }

func (b *redisBell) ring(ctx context.Context, counts map[domain.Urgency]int) error {
	if len(counts) == 0 {
		return nil
	}
	_, err := b.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for u, n := range counts {
			strokes := make([]any, min(n, peals))
			for i := range strokes {
				strokes[i] = 1
			}
			// Waiting workers are served by the push itself, before the trim.
			p.LPush(ctx, bellKey(u), strokes...)
			p.LTrim(ctx, bellKey(u), 0, peals-1)
		}
		return nil
	})
	return err
}

func (b *redisBell) waiter(queues []domain.Urgency) waiter {
	w := &redisWaiter{client: b.address.client(waiterProfile), queues: make(map[string]domain.Urgency, len(queues))}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for _, u := range queues {
		w.keys = append(w.keys, bellKey(u))
		w.queues[bellKey(u)] = u
	}
	return w
}

type redisWaiter struct {
	client redis.UniversalClient // of its own: a blocked connection serves nobody else
	keys   []string
	queues map[string]domain.Urgency // by key
	ctx    context.Context
	cancel context.CancelFunc
}

func (w *redisWaiter) wait() []domain.Urgency {
	// The deadline is for a Redis that hangs; a healthy one answers after the nap.
	ctx, cancel := context.WithTimeout(w.ctx, 2*nap)
	defer cancel()
	popped, err := w.client.BLPop(ctx, nap, w.keys...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		pause(w.ctx, backOff)
	}
	if err != nil || len(popped) == 0 {
		return nil
	}
	return []domain.Urgency{w.queues[popped[0]]}
}

// close also closes the connection: go-redis does not end a read when its context
// is cancelled.
func (w *redisWaiter) close() {
	w.cancel()
	_ = w.client.Close()
}

// pause waits for d or until ctx is over.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
