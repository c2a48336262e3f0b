//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// aimed gives the options the load and the strike of their plant.
func (o options) aimed() options {
	p, ok := plants[o.plant]
	if !ok {
		return o
	}
	o.only, o.strike, o.calm = p.only, p.strike, p.strike == ""
	// What a fault keeps from ending need not be waited for as long as what is sound.
	o.expiry, o.quiet = 8*time.Second, 25*time.Second
	return o
}

// tryPlants looks whether the checker finds each plant, and nothing at the same settings
// without it.
func tryPlants(ctx context.Context, o options, out io.Writer) error {
	missed := 0
	sound := map[string]bool{} // settings that were tried without a fault
	for _, name := range o.plants() {
		o.plant = name
		p, aimed := plants[name], o.aimed()
		load := p.only
		if p.strike != "" {
			load += "; " + p.strike
		}
		if !sound[load] {
			sound[load] = true
			control := aimed
			control.plant = ""
			found, err := control.breaches(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "no fault (%s): %d breaches\n", load, len(found))
			for _, b := range found {
				fmt.Fprintf(out, "  %s: %s\n", b.kind, b.what)
				missed++
			}
		}
		found, err := aimed.breaches(ctx)
		if err != nil {
			return err
		}
		shown, n := "", 0
		for _, b := range found {
			if b.kind == p.kind {
				if n++; shown == "" {
					shown = b.kind + ": " + b.what
				}
			}
		}
		if n == 0 {
			missed++
			fmt.Fprintf(out, "%s (%s): NOT FOUND among %d breaches\n", name, p.what, len(found))
			continue
		}
		fmt.Fprintf(out, "%s (%s; %s): %d of %d breaches; the first:\n  %s\n", name, p.what, load, n, len(found), shown)
	}
	if missed > 0 {
		return fmt.Errorf("%d plants or controls are not as they should be (seed %d)", missed, o.seed)
	}
	return nil
}

// plants gives the names of the plants to try in turn, nil for one or none.
func (o options) plants() []string {
	if o.plant == allPlants {
		return plantNames()
	}
	if names := strings.Split(o.plant, ","); len(names) > 1 {
		return names
	}
	return nil
}

func (o options) breaches(ctx context.Context) ([]breach, error) {
	c, _, err := o.drive(ctx)
	if err != nil {
		return nil, err
	}
	return c.found, nil
}
