//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// report prints the table; breaches are an error.
func report(out io.Writer, o options, c *checker, rest time.Duration) error {
	r := c.r
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(what string, n any) { fmt.Fprintf(table, "%s\t%v\n", what, n) }
	told, strikes, kinds, outcomes := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, s := range r.stories {
		if len(s.said) > 0 {
			told[s.kind]++
		}
	}
	for _, w := range r.windows {
		strikes[w.name]++
	}
	for _, b := range c.found {
		kinds[b.kind]++
	}
	for _, a := range r.answers {
		outcomes[a.outcome]++
	}
	for _, kind := range slices.Sorted(maps.Keys(told)) {
		line(kind, told[kind])
	}
	line("answers of the person: taken", outcomes[taken])
	line("answers of the person: refused", outcomes[refused])
	line("answers of the person: not heard of", outcomes[unheard])
	line("Requests compared", len(c.s.requests))
	line("calls compared", c.compared)
	for _, how := range slices.Sorted(maps.Keys(c.decided)) {
		line("  "+how, c.decided[how])
	}
	line("calls that reached the App", len(r.arrivals))
	line("questions that reached the models", len(r.advice))
	line("interrupts and cancels taken", len(r.stops))
	for _, name := range slices.Sorted(maps.Keys(strikes)) {
		line("STRIKE "+name, strikes[name])
	}
	line("half of all allowed calls at the App within", c.usual.Round(time.Millisecond))
	line("latest expiry or reminder after its time", c.latest.Round(time.Millisecond))
	line("from healed to all over", rest.Round(time.Millisecond))
	for _, kind := range breachKinds {
		line("BREACH "+kind, kinds[kind])
	}
	_ = table.Flush()
	for i, b := range c.found {
		if i == 40 {
			break
		}
		fmt.Fprintf(out, "%s: %s\n", b.kind, b.what)
	}
	if len(told) == 0 || outcomes[taken] == 0 && o.only == "" || c.compared == 0 && o.only == "" {
		return errors.New("nothing was said, answered or compared: the run shows nothing")
	}
	if len(c.found) > 0 {
		return fmt.Errorf("%d breaches (seed %d)", len(c.found), o.seed)
	}
	return nil
}
