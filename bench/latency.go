//go:build linux

package main

import (
	"context"
	"time"
)

// latencyLimit bounds one run of rounds one at a time; a slow machine does fewer.
const latencyLimit = 25 * time.Second

// latency does rounds one at a time while nothing else is going on, each run right
// after one of the floor with one client.
func (b *bench) latency(ctx context.Context, s *subject, to *section) error {
	for i := range b.runs {
		_, bare, err := measureFloor(ctx, s.floor, 1, b.floor/3)
		if err != nil {
			return err
		}
		before, err := s.read(ctx)
		if err != nil {
			return err
		}
		rounds, err := b.sequence(ctx, s)
		if err != nil {
			return err
		}
		after, err := s.read(ctx)
		if err != nil {
			return err
		}
		var rest, first, whole []float64
		for _, r := range rounds {
			rest = append(rest, milliseconds(r.ended.Sub(r.answered)))
			first = append(first, milliseconds(r.asked.Sub(r.said)))
			whole = append(whole, milliseconds(r.ended.Sub(r.said)))
		}
		to.add("answer to end of the Turn, p50", "ms", percentile(rest, 50))
		to.add("answer to end of the Turn, p95", "ms", percentile(rest, 95))
		to.add("answer to end of the Turn, p99", "ms", percentile(rest, 99))
		for i, name := range stepNames {
			to.add("mean until "+name, "ms", meanUntil(rounds, i))
		}
		to.add("floor: one commit, p50", "ms", bare)
		to.add("floor's commits for p50", "", percentile(rest, 50)/bare)
		to.add("message to Request, p50", "ms", percentile(first, 50))
		to.add("whole round, p50", "ms", percentile(whole, 50))
		to.add("rounds of the run", "", float64(len(rounds)))
		s.keepCosts(to, before, after, int64(len(rounds)))
		b.say("%s: %s run %d of %d: p50 %s ms, p99 %s ms, floor %s ms", to.Workload, answerLatency, i+1, b.runs,
			short(percentile(rest, 50)), short(percentile(rest, 99)), short(bare))
	}
	return nil
}

// meanUntil gives the mean time from sending the answer to one of the steps. A mean,
// because the times of events are whole milliseconds.
func meanUntil(rounds []round, step int) float64 {
	var sum time.Duration
	for _, r := range rounds {
		sum += r.decided[step].Sub(r.answered)
	}
	// Half a millisecond is cut off each time on average.
	return milliseconds(sum)/float64(len(rounds)) + 0.5
}

func (b *bench) sequence(ctx context.Context, s *subject) ([]round, error) {
	c := caller{subject: s}
	defer c.close()
	var rounds []round
	for start := time.Now(); len(rounds) < b.rounds && (len(rounds) == 0 || time.Since(start) < latencyLimit); {
		r, err := c.round(ctx)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, r)
	}
	return rounds, nil
}
