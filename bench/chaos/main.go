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
	"strings"
	"syscall"
	"time"
)

type options struct {
	length  time.Duration // of the load, before everything is healed
	count   int           // Turns after which the load ends; 0 is no limit
	seed    uint64
	clients int
	quiet   time.Duration // longest wait for the end of all Turns
	plant   string
	flags   []string // of the build
}

func main() {
	o := options{}
	flag.DurationVar(&o.length, "time", time.Minute, "how long the load and the strikes go on")
	flag.IntVar(&o.count, "count", 0, "end the load after this many Turns (0: by time alone)")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the strikes and of the load")
	flag.IntVar(&o.clients, "clients", 4, "clients that work at the same time")
	flag.DurationVar(&o.quiet, "quiet", 90*time.Second, "longest wait for all Turns to end after everything is healed")
	flag.StringVar(&o.plant, "plant", "", "build with a known fault: "+strings.Join(plantNames(), ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// run does one whole run; a breach is an error.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.clients < 1 || o.count < 0 || o.length <= 0 || o.quiet <= 0 {
		return errors.New("-clients must be at least 1, -time and -quiet above 0, -count not below 0")
	}
	folder, err := os.MkdirTemp("", "openbot-chaos-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	fmt.Fprintf(out, "seed %d\n", o.seed)
	// Programs run where Go builds them: the other folder may forbid that.
	programs, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "openbot-chaos-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(programs)) }()
	binary := filepath.Join(programs, "openbot")
	if err := build(ctx, o, folder, binary); err != nil {
		return err
	}
	w, err := startWorld(ctx, folder, binary)
	if w != nil {
		defer w.stop()
	}
	if err != nil {
		return err
	}
	l := newLoad(w, o)
	strikes := l.drive(ctx)
	if err := w.heal(); err != nil {
		return err
	}
	l.settle(ctx, o.quiet)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	found := l.check(ctx)
	return report(out, l, strikes, found)
}
