//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// strike breaks something and mends it.
type strike struct {
	name string
	do   func(ctx context.Context, l *load, random *rand.Rand) error
}

// wanted leaves the strikes that the options ask for.
func (o options) wanted(list []strike) []strike {
	return slices.DeleteFunc(slices.Clone(list), func(s strike) bool { return o.strike != "" && s.name != o.strike })
}

// strike does strikes from a list, one after another, until ctx ends.
func (l *load) strike(ctx context.Context, random *rand.Rand, list []strike) {
	if len(list) == 0 {
		return
	}
	pause := func() { wait(ctx, l.o.pause+time.Duration(random.Int64N(int64(2*l.o.pause)))) }
	for pause(); ctx.Err() == nil; pause() {
		s := list[random.IntN(len(list))]
		from := time.Now()
		err := s.do(ctx, l, random)
		add(l.record, &l.record.windows, window{s.name, from, time.Now()})
		if err != nil && ctx.Err() == nil {
			l.record.breach("strike", "%s: %v", s.name, err)
		}
	}
}

// stoppedFor is longer than a lease.
const stoppedFor = 11 * time.Second

// Names of strikes that the checker knows.
const (
	nameStopped = "process stopped for longer than a lease"
	nameSlow    = "App slow"
	nameSlower  = "App slow for longer than a lease"

	nameSlowKilled = "App slow, and a worker killed"
	nameEmptied    = "Redis emptied"
	nameMute       = "workers stopped while they connect"
)

// machines are what OpenBot runs on.
var machines = []strike{
	{"kill -9 of a process", killOne},
	{"kill -9 of a process", killOne},
	{"kill -9 of a process", killOne},
	{"kill -9 of every worker at once", func(_ context.Context, l *load, _ *rand.Rand) error { return l.w.killRole("worker") }},
	{"kill -9 of every scheduler at once", func(_ context.Context, l *load, _ *rand.Rand) error { return l.w.killRole("scheduler") }},
	{nameStopped, func(ctx context.Context, l *load, random *rand.Rand) error {
		p := l.w.processes[random.IntN(len(l.w.processes))]
		p.signal(syscall.SIGSTOP)
		wait(ctx, stoppedFor)
		p.signal(syscall.SIGCONT)
		return nil
	}},
	{nameEmptied, func(ctx context.Context, l *load, _ *rand.Rand) error { return l.w.redis.FlushAll(ctx).Err() }},
	{"Redis killed and started", func(ctx context.Context, l *load, _ *rand.Rand) error {
		l.w.keeper.Kill()
		wait(ctx, 2*time.Second)
		return l.w.keeper.Restart()
	}},
	{"Redis frozen", func(ctx context.Context, l *load, _ *rand.Rand) error {
		if err := l.w.keeper.Freeze(); err != nil {
			return err
		}
		wait(ctx, 4*time.Second)
		return l.w.keeper.Thaw()
	}},
	{"Redis out of memory", func(ctx context.Context, l *load, _ *rand.Rand) error {
		if err := l.w.redis.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
			return err
		}
		wait(ctx, 4*time.Second)
		return l.w.redis.ConfigSet(context.WithoutCancel(ctx), "maxmemory", "0").Err()
	}},
	{"PostgreSQL killed and started", func(ctx context.Context, l *load, _ *rand.Rand) error {
		l.w.postgres.Kill()
		wait(ctx, time.Second)
		return l.w.postgres.Restart()
	}},
	{"PostgreSQL restarted in order", func(_ context.Context, l *load, _ *rand.Rand) error { return l.w.postgres.Restart() }},
	{"PostgreSQL frozen", func(ctx context.Context, l *load, _ *rand.Rand) error {
		if err := l.w.postgres.Freeze(); err != nil {
			return err
		}
		wait(ctx, 4*time.Second)
		return l.w.postgres.Thaw()
	}},
	{"every connection to PostgreSQL cut", func(_ context.Context, l *load, _ *rand.Rand) error {
		l.w.wire.cut()
		return nil
	}},
	{"PostgreSQL cut off", func(ctx context.Context, l *load, _ *rand.Rand) error {
		l.w.wire.set(wireShut)
		l.w.wire.cut()
		wait(ctx, 4*time.Second)
		l.w.wire.set(wireWhole)
		return nil
	}},
	{"PostgreSQL silent", func(ctx context.Context, l *load, _ *rand.Rand) error {
		l.w.wire.set(wireHeld)
		wait(ctx, 4*time.Second)
		l.w.wire.set(wireWhole)
		return nil
	}},
	{"answers of PostgreSQL lost", func(ctx context.Context, l *load, _ *rand.Rand) error {
		l.w.wire.set(wireDeaf)
		wait(ctx, 300*time.Millisecond)
		l.w.wire.set(wireBroken)
		l.w.wire.cut()
		l.w.wire.set(wireWhole)
		return nil
	}},
}

func killOne(_ context.Context, l *load, random *rand.Rand) error {
	p := l.w.processes[random.IntN(len(l.w.processes))]
	p.kill()
	return p.start()
}

// neighbours are the App and the models.
var neighbours = []strike{
	{nameSlowKilled, func(ctx context.Context, l *load, random *rand.Rand) error {
		defer l.w.app.Block("send_email")()
		wait(ctx, 2*time.Second)
		return l.w.killRole("worker", random.IntN(3))
	}},
	{nameSlow, appSlow(4 * time.Second)},
	{nameSlower, appSlow(stoppedFor)},
	{nameMute, func(ctx context.Context, l *load, _ *rand.Rand) error {
		// New workers have to connect to the App, which they do after they took a call.
		l.w.gate.how.Store(appMute)
		defer l.w.gate.how.Store(appWell)
		if err := l.w.killRole("worker"); err != nil {
			return err
		}
		wait(ctx, 3*time.Second)
		held := l.w.role("worker")[:2]
		for _, p := range held {
			p.signal(syscall.SIGSTOP)
		}
		wait(ctx, stoppedFor)
		l.w.gate.how.Store(appWell)
		for _, p := range held {
			p.signal(syscall.SIGCONT)
		}
		return nil
	}},
	{"App restarted, its sessions lost", func(_ context.Context, l *load, _ *rand.Rand) error {
		l.w.app.Forget()
		return nil
	}},
	{"App dead", appIs(appDead)},
	{"App answers 500", appIs(appError)},
	{"App takes calls and answers 502", appIs(appRude)},
	{"App takes calls and answers garbage", appIs(appGarbage)},
	{"answers of the App torn", appIs(appTorn)},
	{"App dies after its answer", appIs(appGone)},
	{"model slow", modelIs(modelSlow)},
	{"model answers 429 and 503", modelIs(modelBusy)},
	{"model answers garbage", modelIs(modelGarbage)},
	{"answers of the model torn", modelIs(modelTorn)},
	{"model dead", modelIs(modelDead)},
}

func appSlow(length time.Duration) func(context.Context, *load, *rand.Rand) error {
	return func(ctx context.Context, l *load, _ *rand.Rand) error {
		defer l.w.app.Block("send_email")()
		wait(ctx, length)
		return nil
	}
}

func appIs(how string) func(context.Context, *load, *rand.Rand) error {
	return func(ctx context.Context, l *load, _ *rand.Rand) error {
		l.w.gate.how.Store(how)
		wait(ctx, 2*time.Second)
		l.w.gate.how.Store(appWell)
		return nil
	}
}

func modelIs(how string) func(context.Context, *load, *rand.Rand) error {
	return func(ctx context.Context, l *load, _ *rand.Rand) error {
		l.w.model.how.Store(how)
		wait(ctx, 2*time.Second)
		l.w.model.how.Store(modelWell)
		return nil
	}
}
