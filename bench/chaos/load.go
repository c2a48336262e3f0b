//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// wait gives time to pass, less when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// load drives one world.
type load struct {
	w      *world
	o      options
	cast   *cast
	record *record
	person *person
	// until is when the load ends; stories that take long begin well before.
	until time.Time
}

func newLoad(w *world, o options, record *record, cast *cast) *load {
	l := &load{w: w, o: o, cast: cast, record: record}
	l.person = newPerson(l)
	return l
}

// drive runs the clients, the person and the strikes until the time is over.
func (l *load) drive(ctx context.Context) {
	l.until = time.Now().Add(l.o.length)
	ctx, cancel := context.WithDeadline(ctx, l.until)
	defer cancel()
	var group, clients sync.WaitGroup
	for i := range l.o.clients {
		clients.Go(func() { l.speak(ctx, seeded(l.o.seed, uint64(i)+10)) })
	}
	group.Go(func() { l.person.live(ctx) })
	group.Go(func() { l.w.tend(ctx, l.record) })
	if !l.o.calm {
		group.Go(func() { l.strike(ctx, seeded(l.o.seed, 1), l.o.wanted(machines)) })
		group.Go(func() { l.strike(ctx, seeded(l.o.seed, 4), l.o.wanted(neighbours)) })
	}
	clients.Wait()
	cancel()
	group.Wait()
}

// speak tells stories until ctx ends or there are enough.
func (l *load) speak(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		kind := kinds[random.IntN(len(kinds))]
		if l.o.only != "" {
			kind = l.o.only
		}
		if kind == kindLate && time.Until(l.until) < l.o.expiry {
			kind = kindRound
		}
		l.tell(ctx, random, kind)
		if l.o.count > 0 && len(l.record.told()) >= l.o.count {
			return
		}
		wait(ctx, l.o.think)
	}
}

// seeded gives chance that the same seed brings again.
func seeded(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // it must come again, not be unforeseeable
}
