//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	if b.has(approvalRounds) || b.has(answerLatency) || b.has(parkedTurns) || b.has(givenWork) {
		if err := b.on(ctx, b.startRoles, b.measureRoles); err != nil {
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

func (b *bench) measureRoles(ctx context.Context, s *subject) error {
	if b.has(approvalRounds) {
		if err := b.throughput(ctx, s, b.report.section(approvalRounds, "approval rounds, "+s.name)); err != nil {
			return err
		}
	}
	if b.has(answerLatency) {
		if err := b.latency(ctx, s, b.report.section(answerLatency, "answer to end of the Turn, one at a time, "+s.name)); err != nil {
			return err
		}
	}
	if b.has(givenWork) {
		if err := b.work(ctx, s); err != nil {
			return err
		}
	}
	if b.has(parkedTurns) {
		return b.park(ctx, s, b.report.section(parkedTurns, fmt.Sprintf("%d parked Turns, %s", b.parked, s.name)))
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
		"rounds": fmt.Sprint(o.rounds), "parked": fmt.Sprint(o.parked), "pieces": fmt.Sprint(o.pieces), "idle": o.idle.String(),
	}
}
