package queue

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"openbot/domain"
)

// states lists the states of tasks that are counted, by asynq's names for them.
var states = []string{"pending", "active", "scheduled", "retry", "archived"}

// depth is how full one queue is.
type depth struct {
	tasks map[string]int // by state
	lag   time.Duration  // age of the oldest pending task
}

// Backlog gives the number of tasks that wait for a worker in each queue. Its error
// is unavailable; then the backlog is not known.
func (q *Queue) Backlog(ctx context.Context) (map[domain.Urgency]int, error) {
	depths, err := q.depths(ctx)
	if err != nil {
		return nil, err
	}
	backlog := make(map[domain.Urgency]int, len(depths))
	for u, d := range depths {
		backlog[u] = d.tasks["pending"]
	}
	return backlog, nil
}

// Lag gives how long the oldest task of each queue has waited for a worker; zero
// when none waits. Its error is unavailable; then the lag is not known.
func (q *Queue) Lag(ctx context.Context) (map[domain.Urgency]time.Duration, error) {
	depths, err := q.depths(ctx)
	if err != nil {
		return nil, err
	}
	lags := make(map[domain.Urgency]time.Duration, len(depths))
	for u, d := range depths {
		lags[u] = d.lag
	}
	return lags, nil
}

// depths counts all queues in two round trips, within a second. It reads the lists
// themselves: asynq's inspector also samples memory, and fails for a whole queue
// when a single task is half lost.
func (q *Queue) depths(ctx context.Context) (map[domain.Urgency]depth, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	depths, err := q.readDepths(ctx)
	if err != nil {
		return nil, domain.Wrap(domain.CodeUnavailable, "Queue", "the queues cannot be counted while Redis does not answer", err)
	}
	return depths, nil
}

func (q *Queue) readDepths(ctx context.Context) (map[domain.Urgency]depth, error) {
	sizes := make(map[domain.Urgency][]*redis.IntCmd, len(urgencies))
	oldest := make(map[domain.Urgency]*redis.StringCmd, len(urgencies))
	_, err := q.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, u := range urgencies {
			for _, state := range states {
				key := keyOf(string(u), state)
				if state == "pending" || state == "active" {
					sizes[u] = append(sizes[u], p.LLen(ctx, key))
				} else {
					sizes[u] = append(sizes[u], p.ZCard(ctx, key))
				}
			}
			oldest[u] = p.LIndex(ctx, keyOf(string(u), "pending"), -1)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	since := make(map[domain.Urgency]*redis.StringCmd, len(urgencies))
	_, err = q.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for u, id := range oldest {
			if id.Err() == nil {
				since[u] = p.HGet(ctx, keyOf(string(u), "t:")+id.Val(), "pending_since")
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	depths := make(map[domain.Urgency]depth, len(urgencies))
	for _, u := range urgencies {
		d := depth{tasks: make(map[string]int, len(states))}
		for i, state := range states {
			d.tasks[state] = int(sizes[u][i].Val())
		}
		if at := since[u]; at != nil {
			if nanos, err := strconv.ParseInt(at.Val(), 10, 64); err == nil && nanos > 0 {
				d.lag = max(0, time.Since(time.Unix(0, nanos)))
			}
		}
		depths[u] = d
	}
	return depths, nil
}
