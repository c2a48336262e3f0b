package queue

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
)

const (
	// namesEvery is how soon the queues can be seen again after Redis was emptied.
	namesEvery = 5 * time.Second
	// purgeEvery is how often the archives are looked at.
	purgeEvery = time.Minute
	// archiveLimit is how many dead tasks a queue keeps for operators to see. The rows
	// know what failed, and asynq trips over archives of many thousands.
	archiveLimit = 1000
)

// keepUp mends, while a server runs, what asynq leaves undone.
func (s *Server) keepUp() {
	names, purge := time.NewTicker(namesEvery), time.NewTicker(purgeEvery)
	defer names.Stop()
	defer purge.Stop()
	s.queue.brief(s.base, s.queue.publishNames)
	for {
		select {
		case <-s.base.Done():
			return
		case <-names.C:
			s.queue.brief(s.base, s.queue.publishNames)
		case <-purge.C:
			s.queue.brief(s.base, func(ctx context.Context) error { return s.queue.purge(ctx, archiveLimit) })
		}
	}
}

// brief runs work that the next turn makes up for if it fails.
func (q *Queue) brief(ctx context.Context, work func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := work(ctx); err != nil {
		q.logger.Debug("upkeep of the queue failed and is tried again", "error", err)
	}
}

// purge empties archives that hold more than limit tasks.
func (q *Queue) purge(ctx context.Context, limit int64) error {
	inspector := asynq.NewInspectorFromRedisClient(timed{q.client, ctx})
	for _, u := range urgencies {
		n, err := q.client.ZCard(ctx, keyOf(string(u), "archived")).Result()
		if err != nil {
			return err
		}
		if n > limit {
			if _, err := inspector.DeleteAllArchivedTasks(string(u)); err != nil {
				return err
			}
		}
	}
	return nil
}
