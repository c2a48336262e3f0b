package queue

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"openbot/domain"
)

func TestAnOverdueRingDoesNotWaitForADeadHolder(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		started, release := make(chan domain.Task, 10), make(chan struct{})
		p.serve(q, 4, func(ctx context.Context, got domain.Task) error {
			started <- got
			if got.Subject == "held" {
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			return nil
		})
		q.Ring(t.Context(), task("held"))
		await(t, started)

		q.Ring(t.Context(), task("held"))
		q.Ring(t.Context(), task("other"))
		if got := await(t, started).Subject; got != "other" {
			t.Fatalf("a plain ring started %q a second time", got)
		}

		rungUntil(t, q, started, task("held"), overdue(task("held")))
		close(release)
	})
}

func TestAnEmptiedRedisIsMadeUpForByTheSweep(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		q.Ring(t.Context(), task("lost"))
		if err := p.raw.FlushDB(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		handler, seen := record()
		p.serve(q, 1, handler)
		rungUntil(t, q, seen, task("lost"), overdue(task("lost")))
		eventually(t, "putting the queues' names back", func() bool {
			return p.raw.SCard(t.Context(), "asynq:queues").Val() == int64(len(urgencies))
		})
		if err := p.raw.FlushDB(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		rungUntil(t, q, seen, task("lost again"), overdue(task("lost again")))
	})
}

// Each case leaves a task in a state from which asynq would not run it in time.
func TestAnOverdueRingFreesAStuckTask(t *testing.T) {
	stuck := task("stuck")
	id, name := identity(stuck), string(stuck.Urgency)
	for what, damage := range map[string]func(t *testing.T, p *place, q *Queue){
		"archived": func(t *testing.T, p *place, _ *Queue) {
			if err := asynq.NewInspectorFromRedisClient(p.raw).ArchiveTask(name, id); err != nil {
				t.Fatal(err)
			}
		},
		"pending without a place": func(t *testing.T, p *place, _ *Queue) {
			if n := p.raw.LRem(t.Context(), keyOf(name, "pending"), 0, id).Val(); n != 1 {
				t.Fatalf("removed %d", n)
			}
		},
		"without a message": func(t *testing.T, p *place, _ *Queue) {
			p.raw.LRem(t.Context(), keyOf(name, "pending"), 0, id)
			if n := p.raw.HDel(t.Context(), keyOf(name, "t:")+id, "msg").Val(); n != 1 {
				t.Fatalf("removed %d", n)
			}
		},
		"waiting for a retry without a place": func(t *testing.T, p *place, _ *Queue) {
			p.raw.LRem(t.Context(), keyOf(name, "pending"), 0, id)
			p.raw.HSet(t.Context(), keyOf(name, "t:")+id, "state", "retry")
		},
		"active with nobody": func(t *testing.T, p *place, _ *Queue) {
			p.raw.LMove(t.Context(), keyOf(name, "pending"), keyOf(name, "active"), "RIGHT", "LEFT")
			p.raw.HSet(t.Context(), keyOf(name, "t:")+id, "state", "active")
		},
		"queue not listed": func(t *testing.T, p *place, _ *Queue) {
			p.raw.LRem(t.Context(), keyOf(name, "pending"), 0, id)
			p.raw.Del(t.Context(), "asynq:queues")
		},
		"far ahead": func(t *testing.T, p *place, q *Queue) {
			p.raw.FlushDB(t.Context())
			far := stuck
			far.At = time.Now().Add(time.Hour)
			q.Ring(t.Context(), far)
			if n := p.raw.ZCard(t.Context(), keyOf(name, "scheduled")).Val(); n != 1 {
				t.Fatalf("scheduled %d", n)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			everywhere(t, func(t *testing.T, p *place) {
				q := p.open()
				q.Ring(t.Context(), stuck)
				damage(t, p, q)
				handler, seen := record()
				p.serve(q, 1, handler)
				q.Ring(t.Context(), stuck) // a plain ring leaves it
				rungUntil(t, q, seen, stuck, overdue(stuck), overdue(stuck))
			})
		})
	}
}

func TestAnOverdueRingLeavesATaskThatWillRun(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		soon := task("soon")
		soon.At = time.Now().Add(5 * time.Second)
		q.Ring(t.Context(), soon, task("now"))
		q.Ring(t.Context(), overdue(soon), overdue(task("now")))
		backlog, err := q.Backlog(t.Context())
		if err != nil || backlog[domain.UrgencyTurn] != 1 {
			t.Fatalf("backlog %v, %v; want the one task", backlog, err)
		}
		if n := p.raw.ZCard(t.Context(), keyOf("turns", "scheduled")).Val(); n != 1 {
			t.Fatalf("%d tasks are scheduled, want the one", n)
		}
	})
}

func TestLongArchivesAreEmptied(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		q.Ring(t.Context(), task("dead"))
		inspector := asynq.NewInspectorFromRedisClient(p.raw)
		if err := inspector.ArchiveTask("turns", identity(task("dead"))); err != nil {
			t.Fatal(err)
		}
		if err := q.purge(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if n := p.raw.ZCard(t.Context(), keyOf("turns", "archived")).Val(); n != 1 {
			t.Fatalf("a short archive was emptied")
		}
		if err := q.purge(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if n := p.raw.ZCard(t.Context(), keyOf("turns", "archived")).Val(); n != 0 {
			t.Fatalf("%d dead tasks are left", n)
		}
	})
}
