//go:build linux

// Command chaos drives OpenBot over HTTP while it kills, freezes and empties what
// OpenBot runs on, and then compares what an App really got with what the server says:
//
//	go run ./bench/chaos [-time 1m] [-count 0] [-seed N] [-clients 4] [-plant NAME]
//
// It builds the real binary and starts PostgreSQL, Redis, two api, three worker and two
// scheduler processes of its own, which end with it. -plant builds the binary with one
// known fault, to see that the checker finds it; the sources are not changed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	length  time.Duration // of the load, before everything is healed
	count   int           // Turns after which the load ends; 0 is no limit
	seed    uint64
	clients int
	think   time.Duration // between two stories of a client
	pause   time.Duration // between two strikes, and up to twice as much
	expiry  time.Duration // of Requests
	quiet   time.Duration // longest wait for the end of all stories
	calm    bool          // no strikes
	only    string        // the one kind of story
	strike  string        // the one strike
	keep    string        // a folder that keeps the logs
	plant   string
	flags   []string // of the build
}

func main() {
	o := options{}
	flag.DurationVar(&o.length, "time", time.Minute, "how long the load and the strikes go on")
	flag.IntVar(&o.count, "count", 0, "end the load after this many stories (0: by time alone)")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the strikes and of the load")
	flag.IntVar(&o.clients, "clients", 4, "clients that work at the same time")
	flag.DurationVar(&o.think, "think", 300*time.Millisecond, "how long a client waits between two stories")
	flag.DurationVar(&o.pause, "pause", time.Second, "shortest time between two strikes; the longest is three times this")
	flag.DurationVar(&o.expiry, "expiry", 20*time.Second, "how long a Request waits for an answer")
	flag.DurationVar(&o.quiet, "quiet", 2*time.Minute, "longest wait for all stories to end after everything is healed")
	flag.BoolVar(&o.calm, "calm", false, "strike nothing")
	flag.StringVar(&o.only, "only", "", "tell one kind of story alone: "+strings.Join(kindNames(), ", "))
	flag.StringVar(&o.strike, "strike", "", "strike in one way alone, by the name that the table shows")
	flag.StringVar(&o.keep, "keep", "", "a folder in which the logs of all processes stay")
	flag.StringVar(&o.plant, "plant", "", "build with a known fault, under the load and the strike that bring it out; all, or several with commas, are tried in turn, and the same without a fault: "+strings.Join(plantNames(), ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// run does one whole run, or with "-plant all" one for each plant; a breach is an error.
func run(ctx context.Context, o options, out io.Writer) error {
	if err := o.fault(); err != nil {
		return err
	}
	if o.plants() != nil {
		return tryPlants(ctx, o, out)
	}
	fmt.Fprintf(out, "seed %d\n", o.seed)
	c, rest, err := o.aimed().drive(ctx)
	if err != nil {
		return err
	}
	return report(out, o, c, rest)
}

// drive builds, starts and drives everything, and compares. It gives what the checker
// found and how long everything took to come to rest.
func (o options) drive(ctx context.Context) (c *checker, rest time.Duration, err error) {
	folder, err := os.MkdirTemp("", "openbot-chaos-")
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	// Programs run where Go builds them: the other folder may forbid that.
	programs, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "openbot-chaos-")
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(programs)) }()
	binary := filepath.Join(programs, "openbot")
	if err := build(ctx, o, folder, binary); err != nil {
		return nil, 0, err
	}
	record := newRecord()
	w, err := startWorld(ctx, folder, binary, record)
	if w != nil {
		defer func() {
			w.stop()
			err = errors.Join(err, keepLogs(folder, o.keep))
		}()
	}
	if err != nil {
		return nil, 0, err
	}
	cast, err := setUp(ctx, w, o.expiry)
	if err != nil {
		return nil, 0, err
	}
	ear := &listener{record: record, heard: map[string]int{}}
	listening, deaf := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { ear.listen(listening, w.clients, seeded(o.seed, 5)) })
	defer group.Wait()
	defer deaf()
	l := newLoad(w, o, record, cast)
	l.drive(ctx)
	if err := w.heal(ctx); err != nil {
		return nil, 0, err
	}
	rest = l.settle(ctx, o.quiet)
	ear.finish(ctx)
	deaf()
	group.Wait()
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	record.heard = ear.heard
	seen := l.look(ctx)
	w.hear(record)
	c = newChecker(record, seen)
	c.check()
	if err := keepRecord(record, seen, o.keep); err != nil {
		return nil, 0, err
	}
	return c, rest, nil
}

// fault says what is wrong with the options.
func (o options) fault() error {
	switch {
	case o.clients < 1 || o.count < 0 || o.length <= 0 || o.quiet <= 0 || o.think < 0 || o.pause <= 0:
		return errors.New("-clients must be at least 1, -time, -quiet and -pause above 0, -count and -think not below 0")
	case o.expiry < time.Second:
		return errors.New("-expiry must be at least 1s")
	case o.plant != "" && o.plant != allPlants && slices.ContainsFunc(strings.Split(o.plant, ","), func(n string) bool { return !slices.Contains(plantNames(), n) }):
		return fmt.Errorf("-plant: there is no %q among %s", o.plant, strings.Join(plantNames(), ", "))
	case o.only != "" && !slices.Contains(kinds, o.only):
		return fmt.Errorf("-only must be one of: %s", strings.Join(kindNames(), ", "))
	case o.strike != "" && !slices.ContainsFunc(slices.Concat(machines, neighbours), func(s strike) bool { return s.name == o.strike }):
		return fmt.Errorf("-strike: there is no %q", o.strike)
	}
	return nil
}
