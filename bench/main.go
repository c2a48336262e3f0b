//go:build linux

// Command bench measures the approval round of OpenBot on this machine, beside the
// floor that the database sets:
//
//	go run ./bench [-embedded] [-json FILE] [flags]
//
// It builds the real binary, starts a PostgreSQL that waits for the disk, a Redis
// that keeps an append-only file, and one process of each role, and drives them over
// HTTP as clients do. The App that is called runs inside this program.
//
// It owns every process, folder and database that it measures, and removes them at
// the end, also after Ctrl-C. It never touches a server that was running before, and
// nothing of the product imports it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The workloads by name.
const (
	approvalRounds = "W1"
	answerLatency  = "W2"
	parkedTurns    = "W3"
	releases       = "W4"
	expiries       = "W5"
	givenWork      = "W6"
	inboxPages     = "W7"
	moreWorkers    = "W8"
	inOneProcess   = "W9"
)

// options say what is measured and for how long.
type options struct {
	workloads  []string
	clients    int
	workers    int
	runs       int
	length     time.Duration // of one run of W1
	warmup     time.Duration // before each run of W1
	floor      time.Duration // of one run of the floor
	rounds     int           // of one run of W2
	parked     int
	expiring   int           // Requests that W5 lets expire
	pending    int           // Requests that wait in the inbox of W7
	pieces     int           // ended pieces beside which W6 is measured again
	branches   int           // pieces of the tree of W6
	copies     bool          // of one Turn, and not each through the API
	release    bool          // answer all parked Turns at the end
	idle       time.Duration // how long idle CPU is watched
	settle     time.Duration // between parking and watching
	limit      time.Duration // of everything after the build; 0 goes by what is measured
	json       string
	svg        string
	plot       string   // reports to draw and not to measure
	binary     string   // "" builds it
	buildFlags []string // beside the tag
	statements int      // how many statements of PostgreSQL to show
}

func defaults() options {
	return options{workloads: []string{approvalRounds, answerLatency, parkedTurns}, clients: 32, workers: 1, runs: 3,
		length: 10 * time.Second, warmup: 2 * time.Second, floor: 3 * time.Second, rounds: 300, parked: 10_000, pieces: 100_000, branches: 10_000, expiring: 100_000, pending: 100_000,
		idle: 10 * time.Second, settle: 15 * time.Second}
}

func (o *options) has(workload string) bool { return slices.Contains(o.workloads, workload) }

// longest is the time after which the measuring is given up.
func (o *options) longest() time.Duration {
	switch {
	case o.limit > 0:
		return o.limit
	case o.copies || o.has(expiries) || o.has(moreWorkers) || o.has(givenWork) || o.has(releases):
		return 25 * time.Minute
	case o.has(inOneProcess):
		return 8 * time.Minute
	default:
		return 6 * time.Minute
	}
}

func parse(arguments []string, output io.Writer) (options, error) {
	o := defaults()
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	workloads := flags.String("workloads", strings.Join(o.workloads, ","),
		"what to measure: W1 rounds a second, W2 answer to end of the Turn, W3 parked Turns, W4 all parked Turns answered at once, W5 Requests that expire, W6 given work, W7 the inbox, W8 more workers, W9 W1 and W2 in one process on SQLite")
	embedded := flags.Bool("embedded", false, "measure W9 as well")
	flags.IntVar(&o.clients, "clients", o.clients, "clients of W1 and of the floor")
	flags.IntVar(&o.workers, "workers", o.workers, "worker processes")
	flags.IntVar(&o.runs, "runs", o.runs, "runs of each measurement; the median counts, all are kept")
	flags.DurationVar(&o.length, "length", o.length, "length of one run of W1")
	flags.DurationVar(&o.warmup, "warmup", o.warmup, "time before each run of W1 that does not count")
	flags.DurationVar(&o.floor, "floor", o.floor, "length of one run of the floor")
	flags.IntVar(&o.rounds, "rounds", o.rounds, "rounds of one run of W2, and of the live events of W7 (at most 200)")
	flags.IntVar(&o.parked, "parked", o.parked, "Turns that W3 parks and W4 answers")
	flags.IntVar(&o.expiring, "expiring", o.expiring, "Requests that W5 lets expire within a minute")
	flags.IntVar(&o.pending, "pending", o.pending, "Requests that wait in the inbox of W7")
	flags.IntVar(&o.pieces, "pieces", o.pieces, "ended pieces of work beside which W6 is measured again")
	flags.IntVar(&o.branches, "tree", o.branches, "pieces of work of the tree whose root W6 pauses, lets go on and cancels")
	flags.BoolVar(&o.copies, "copies", o.copies, "let W3 copy one parked Turn in the database, for numbers that would take hours through the API")
	flags.BoolVar(&o.release, "release", o.release, "let W3 answer all parked Turns at the end (takes as long as parking)")
	flags.DurationVar(&o.idle, "idle", o.idle, "how long W3 watches the idle processes")
	flags.DurationVar(&o.settle, "settle", o.settle, "how long W3 waits between parking and watching")
	flags.DurationVar(&o.limit, "limit", 0, "longest time of everything after the build (default 6m, 8m with W9, 25m with -copies, W4, W5, W6 or W8)")
	flags.StringVar(&o.json, "json", "", "file for the figures as JSON")
	flags.StringVar(&o.svg, "svg", "", "file for a plot of the figures beside their aims")
	flags.StringVar(&o.plot, "plot", "", "measure nothing and draw -svg from these JSON files, separated by commas; of a figure that is in several, the last counts")
	flags.StringVar(&o.binary, "binary", "", "binary to measure instead of building one")
	flags.IntVar(&o.statements, "statements", 0, "show this many statements of PostgreSQL by time (pg_stat_statements; costs a little)")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.workloads = strings.Split(strings.ToUpper(*workloads), ",")
	if *embedded && !o.has(inOneProcess) {
		o.workloads = append(o.workloads, inOneProcess)
	}
	err := o.check(flags.NArg())
	return o, err
}

func (o *options) check(rest int) error {
	known := []string{approvalRounds, answerLatency, parkedTurns, releases, expiries, givenWork, inboxPages, moreWorkers, inOneProcess}
	for _, w := range o.workloads {
		if !slices.Contains(known, w) {
			return fmt.Errorf("-workloads: %q is none of %s", w, strings.Join(known, ", "))
		}
	}
	if rest > 0 {
		return errors.New("bench takes flags only")
	}
	if o.plot != "" && o.svg == "" {
		return errors.New("-plot needs -svg, the file to draw to")
	}
	if min(o.clients, o.workers, o.runs, o.rounds, o.parked, o.pieces, o.expiring, o.pending, o.branches-1) < 1 {
		return errors.New("-clients, -workers, -runs, -rounds, -parked, -pieces, -expiring and -pending must be at least 1, -tree at least 2")
	}
	if min(o.length, o.floor, o.idle) <= 0 || min(o.warmup, o.settle, o.limit) < 0 {
		return errors.New("-length, -floor and -idle must be above 0, -warmup, -settle and -limit not below it")
	}
	return nil
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		// A second signal ends the program at once; the kernel then ends its children.
		context.AfterFunc(ctx, stop)
		err = run(orphanEnds(ctx), o, os.Stdout, os.Stderr)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// orphanEnds gives a context that also ends when the parent does: "go run" does not
// pass SIGTERM on, it only leaves.
func orphanEnds(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	parent := os.Getppid()
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if os.Getppid() != parent {
					cancel(errors.New("the program that started bench has gone"))
					return
				}
			}
		}
	}()
	return ctx
}

// run measures and prints. Whatever was measured before a failure is printed too.
func run(ctx context.Context, o options, table, progress io.Writer) (err error) {
	if o.plot != "" {
		reports, err := load(strings.Split(o.plot, ","))
		if err != nil {
			return err
		}
		return os.WriteFile(o.svg, []byte(plot(reports)), 0o644)
	}
	folder, err := os.MkdirTemp("", "openbot-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b := &bench{options: o, folder: folder, progress: progress, started: time.Now()}
	b.report.TakenAt, b.report.CPUs, b.report.Go = b.started.UTC().Truncate(time.Second), runtime.NumCPU(), runtime.Version()
	b.report.Arguments = o.arguments()
	if err := b.build(ctx); err != nil {
		return err
	}
	limit := o.longest()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the measurements took longer than %s (-limit)", limit))
	defer cancel()
	err = b.measure(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	b.report.print(table)
	if o.json != "" {
		err = errors.Join(err, b.report.save(o.json))
	}
	if o.svg != "" {
		err = errors.Join(err, os.WriteFile(o.svg, []byte(plot([]*report{&b.report})), 0o644))
	}
	return err
}
