//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"openbot/apps/appstest"
)

// bench is one run of the program.
type bench struct {
	options
	folder   string
	progress io.Writer
	started  time.Time
	report   report
}

// say prints one line of progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1fs  load %5.2f  %s\n", time.Since(b.started).Seconds(), loadAverage(), fmt.Sprintf(format, args...))
}

// build makes the binary as `make build` does, with the symbols left in, so that a
// profiler can name what it sees.
func (b *bench) build(ctx context.Context) error {
	if b.binary != "" {
		path, err := filepath.Abs(b.binary)
		b.binary = path
		return err
	}
	b.say("building the binary (minutes when the build cache is cold)")
	b.binary = filepath.Join(b.folder, "openbot")
	arguments := append([]string{"build", "-tags", "nomsgpack", "-o", b.binary}, b.buildFlags...)
	command := exec.CommandContext(ctx, "go", append(arguments, "openbot")...)
	command.Env = os.Environ()
	if len(b.buildFlags) == 0 {
		command.Env = append(command.Env, "CGO_ENABLED=0")
	}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("the binary cannot be built: %w\n%s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// measure runs the workloads on each kind of server.
func (b *bench) measure(ctx context.Context) error {
	if slices.ContainsFunc(b.workloads, func(w string) bool { return w != inOneProcess && w != moreWorkers }) {
		if err := b.on(ctx, b.startRoles, b.measureRoles); err != nil {
			return err
		}
	}
	if b.has(moreWorkers) {
		if err := b.withWorkers(ctx); err != nil {
			return err
		}
	}
	if b.has(inOneProcess) {
		return b.on(ctx, b.startServe, b.measureServe)
	}
	return nil
}

// on starts a subject and an App for it, measures, and stops both. A process that
// ends by itself ends the measuring.
func (b *bench) on(ctx context.Context, start func(context.Context, context.CancelCauseFunc) (*subject, error),
	measure func(context.Context, *subject) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	app, err := appstest.Start("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer app.Close()
	s, err := start(ctx, cancel)
	if s != nil {
		defer func() {
			b.say("stopping %s", s.name)
			if fault := s.stop(); err == nil {
				err = fault
			}
		}()
	}
	if err != nil {
		return err
	}
	s.app = app
	if err := s.client.connect(ctx, app.URL); err != nil {
		return err
	}
	err = measure(ctx, s)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	// A figure of a server that did something else than what was asked is worth
	// nothing.
	if sent := int64(app.Count(tool)); sent != s.answered.Load() {
		return fmt.Errorf("%d answers were given and the App got %d calls", s.answered.Load(), sent)
	}
	return nil
}

// measureRoles runs the workloads that a server of single roles bears, those that leave
// much behind last.
func (b *bench) measureRoles(ctx context.Context, s *subject) error {
	for _, w := range []struct {
		name  string
		about string
		run   func(context.Context, *subject, *section) error
	}{
		{approvalRounds, "approval rounds, " + s.name, b.throughput},
		{answerLatency, "answer to end of the Turn, one at a time, " + s.name, b.latency},
		{givenWork, "rounds of given work, " + s.name, b.work},
		{releases, fmt.Sprintf("%d parked Turns answered at once, %s", b.parked, s.name), b.releaseCopies},
		{inboxPages, fmt.Sprintf("the inbox with %d Requests that wait, %s", b.pending, s.name), b.inbox},
		{expiries, fmt.Sprintf("%d Requests expire within a minute, %s", b.expiring, s.name), b.expire},
		{parkedTurns, fmt.Sprintf("%d parked Turns, %s", b.parked, s.name), b.park},
	} {
		if b.has(w.name) {
			if err := w.run(ctx, s, b.report.section(w.name, w.about)); err != nil {
				return err
			}
		}
	}
	return nil
}

// withWorkers measures approval rounds with one, two and four workers, each on a server
// of its own.
func (b *bench) withWorkers(ctx context.Context) error {
	set := b.workers
	defer func() { b.workers = set }()
	for _, n := range []int{1, 2, 4} {
		b.workers = n
		err := b.on(ctx, b.startRoles, func(ctx context.Context, s *subject) error {
			return b.throughput(ctx, s, b.report.section(moreWorkers, "approval rounds, "+s.name))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measureServe(ctx context.Context, s *subject) error {
	if err := b.throughput(ctx, s, b.report.section(inOneProcess, "approval rounds, "+s.name)); err != nil {
		return err
	}
	return b.latency(ctx, s, b.report.section(inOneProcess, "answer to end of the Turn, one at a time, "+s.name))
}

// arguments gives what shaped the figures, for the report.
func (o *options) arguments() map[string]string {
	return map[string]string{
		"workloads": strings.Join(o.workloads, ","), "clients": fmt.Sprint(o.clients), "workers": fmt.Sprint(o.workers),
		"runs": fmt.Sprint(o.runs), "length": o.length.String(), "warmup": o.warmup.String(), "floor": o.floor.String(),
		"rounds": fmt.Sprint(o.rounds), "parked": fmt.Sprint(o.parked), "pieces": fmt.Sprint(o.pieces), "tree": fmt.Sprint(o.branches), "expiring": fmt.Sprint(o.expiring), "pending": fmt.Sprint(o.pending), "idle": o.idle.String(),
	}
}
