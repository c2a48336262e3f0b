package queue

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"openbot/domain"
)

// said is a bell that rings as the test says.
type said struct{ rings [][]domain.Urgency }

func (s *said) wait() []domain.Urgency {
	rung := s.rings[0]
	s.rings = s.rings[1:]
	return rung
}

func (*said) close() {}

// asynq goes through all queues for each task. Redis is asked about those that may hold
// something: the ones that the bell rang for, and all when nothing is known. What was found
// empty counts for some milliseconds, which must not pass while the test runs.
func TestOnlyQueuesThatMayHoldSomethingAreAsked(t *testing.T) { synctest.Test(t, askedQueues) }

func askedQueues(t *testing.T) {
	queues := []domain.Urgency{domain.UrgencyAnswer, domain.UrgencyTurn, domain.UrgencyRest}
	full := map[domain.Urgency]int{}
	asked := map[domain.Urgency]int{}
	bell := &said{}
	h := &hook{queues: len(queues), quiet: make(map[domain.Urgency]time.Time), waiter: bell, stop: t.Context(), talk: t.Context()}
	process := h.ProcessHook(func(_ context.Context, cmd redis.Cmder) error {
		queue := scriptOf(cmd).queue
		asked[domain.Urgency(queue)]++
		if full[domain.Urgency(queue)] > 0 {
			full[domain.Urgency(queue)]--
			return nil
		}
		cmd.SetErr(redis.Nil)
		return redis.Nil
	})
	// look goes through the queues as asynq does and reports what it found.
	look := func() domain.Urgency {
		for _, queue := range queues {
			key := "asynq:{" + string(queue) + "}:"
			if process(t.Context(), redis.NewCmd(t.Context(), "evalsha", "x", 4, key+"pending", key+"paused", key+"active", key+"lease")) == nil {
				return queue
			}
		}
		return ""
	}
	want := func(what string, found domain.Urgency, counts map[domain.Urgency]int) {
		t.Helper()
		if got := look(); got != found || !maps.Equal(asked, counts) {
			t.Errorf("%s: %q was found, want %q; asked were %v, want %v", what, got, found, asked, counts)
		}
		clear(asked)
	}
	all := map[domain.Urgency]int{domain.UrgencyAnswer: 1, domain.UrgencyTurn: 1, domain.UrgencyRest: 1}

	bell.rings = append(bell.rings, []domain.Urgency{domain.UrgencyRest})
	want("at the start", "", all)
	full[domain.UrgencyRest] = 1
	want("after the bell", domain.UrgencyRest, map[domain.Urgency]int{domain.UrgencyRest: 1})
	bell.rings = append(bell.rings, nil)
	want("to the end of what was rung for", "", map[domain.Urgency]int{domain.UrgencyRest: 1})
	bell.rings = append(bell.rings, nil)
	want("after a nap", "", all)

	// A worker that never waits does not hear the bell, so it may not hold on to what it
	// knew.
	full[domain.UrgencyTurn] = 1
	want("busy", domain.UrgencyTurn, map[domain.Urgency]int{domain.UrgencyAnswer: 1, domain.UrgencyTurn: 1})
	full[domain.UrgencyAnswer], full[domain.UrgencyTurn] = 1, 1
	for queue, since := range h.quiet {
		h.quiet[queue] = since.Add(-quietFor)
	}
	want("busy for long", domain.UrgencyAnswer, map[domain.Urgency]int{domain.UrgencyAnswer: 1})
}
