// Package repositorytest is the suite that every store must pass: each promise of
// the port engine.Store is one named case. It owns no store and knows no database;
// it speaks through the port alone.
package repositorytest

import (
	"testing"

	"openbot/domain/engine"
)

// Open makes a fresh, empty store whose schema is current. It closes the store when
// the test ends.
type Open func(t *testing.T) engine.Store

// Run runs every case against stores that open makes, one store a case.
func Run(t *testing.T, open Open) {
	t.Helper()
	for _, group := range []struct {
		name  string
		cases []promise
	}{
		{"commit", commits},
		{"keys", keys},
		{"round trip", roundTrips},
		{"texts", texts},
		{"lists", lists},
		{"facts", facts},
		{"due", dues},
		{"leases", leases},
		{"events", events},
		{"deciding", deciding},
		{"reminders", reminders},
		{"usage", usage},
		{"work", works},
		{"parked", parking},
		{"audit", audits},
		{"pages", pages},
		{"webhooks", webhooks},
		{"Channels", channels},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) { c.run(newWorld(t, open(t))) })
			}
		})
	}
}

// promise is one case: what the port promises, in words, and how to see it.
type promise struct {
	name string
	run  func(w *world)
}
