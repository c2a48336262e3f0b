//go:build linux

package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	roundsPerSecond = "rounds"
	floorPerSecond  = "floor: commits"
)

// throughput lets many clients do approval rounds.
func (b *bench) throughput(ctx context.Context, s *subject, to *section) error {
	return b.many(ctx, s, to, (*caller).round)
}

// many lets many clients do rounds without a pause, run by run, each right after a run
// of the floor.
func (b *bench) many(ctx context.Context, s *subject, to *section, do func(*caller, context.Context) (round, error)) error {
	for i := range b.runs {
		bare, _, err := measureFloor(ctx, s.floor, b.clients, b.floor)
		if err != nil {
			return err
		}
		if b.statements > 0 && s.database != nil {
			if err := s.resetStatements(ctx); err != nil {
				return err
			}
		}
		got, err := b.oneThroughput(ctx, s, do)
		if err != nil {
			return err
		}
		perSecond := float64(got.rounds) / got.after.at.Sub(got.before.at).Seconds()
		to.add(roundsPerSecond, "1/s", perSecond)
		to.add(floorPerSecond, "1/s", bare)
		if s.database != nil {
			commits := float64(got.after.commits-got.before.commits) / got.after.at.Sub(got.before.at).Seconds()
			to.add("durable commits, share of the floor", "%", 100*commits/bare)
		}
		to.add("floor's commits for one round", "", bare/perSecond)
		s.keepCosts(to, got.before, got.after, got.rounds)
		to.add("round under load, p50", "ms", percentile(got.whole, 50))
		to.add("answer to end under load, p50", "ms", percentile(got.rest, 50))
		to.add("answer to end under load, p99", "ms", percentile(got.rest, 99))
		b.say("%s: run %d of %d: %s rounds/s, floor %s commits/s", to.Workload, i+1, b.runs, short(perSecond), short(bare))
		if i == b.runs-1 && b.statements > 0 && s.database != nil {
			if err := s.showStatements(ctx, to, b.statements, got.all); err != nil {
				return err
			}
		}
	}
	return nil
}

// counted is what one run of many clients gave.
type counted struct {
	rounds        int64 // that ended between the two readings
	all           int64 // with those of the warm-up
	before, after reading
	whole, rest   []float64 // ms, of rounds that ended between the readings
}

func (b *bench) oneThroughput(ctx context.Context, s *subject, do func(*caller, context.Context) (round, error)) (got counted, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		group    sync.WaitGroup
		mu       sync.Mutex
		counting atomic.Bool
		done     = make(chan struct{})
	)
	for range b.clients {
		group.Go(func() {
			c := caller{subject: s}
			defer c.close()
			for {
				// Every round is finished, so that nothing waits when the next run begins.
				select {
				case <-done:
					return
				default:
				}
				r, err := do(&c, ctx)
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				got.all++
				if counting.Load() {
					got.rounds++
					got.whole = append(got.whole, milliseconds(r.ended.Sub(r.said)))
					got.rest = append(got.rest, milliseconds(r.ended.Sub(r.answered)))
				}
				mu.Unlock()
			}
		})
	}
	err = wait(ctx, b.warmup)
	if err == nil && s.database != nil {
		// A server that has run for a minute was analyzed: the plans of the first second were
		// made for empty tables.
		_, err = s.database.Exec(ctx, "ANALYZE")
	}
	if err == nil {
		got.before, err = s.read(ctx)
		counting.Store(true)
	}
	if err == nil {
		err = wait(ctx, b.length)
		counting.Store(false)
	}
	if err == nil {
		got.after, err = s.read(ctx)
	}
	close(done)
	group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return got, cause
	}
	if err == nil && got.rounds == 0 {
		err = errors.New("no round ended during the run: make -length longer")
	}
	return got, err
}

// wait waits, or ends early with ctx.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
