//go:build linux

package main

import (
	"io"
	"os"
	"slices"
	"testing"
	"time"
)

// TestOneMinuteUnderFire is the whole program at its smallest.
func TestOneMinuteUnderFire(t *testing.T) {
	if os.Getenv("OPENBOT_TEST_DATABASE_URL") == "" {
		t.Skip("OPENBOT_TEST_DATABASE_URL is not set: nothing is tried UNDER FIRE (make test sets it)")
	}
	t.Setenv("TMPDIR", t.TempDir())
	if err := os.Chmod(os.Getenv("TMPDIR"), 0o755); err != nil { // the servers may run as another account
		t.Fatal(err)
	}
	out := io.Writer(t.Output())
	o := options{length: time.Minute, seed: uint64(time.Now().UnixNano()), clients: 2, think: 300 * time.Millisecond,
		pause: time.Second, expiry: 10 * time.Second, quiet: 90 * time.Second}
	if err := run(t.Context(), o, out); err != nil {
		t.Fatal(err)
	}
}

// TestEveryPlantFindsItsPlace notices when the sources move away under a plant, and when
// its load, its strike or its breach is none.
func TestEveryPlantFindsItsPlace(t *testing.T) {
	for _, name := range plantNames() {
		if _, err := overlayOf("../..", t.TempDir(), name); err != nil {
			t.Error(err)
		}
		p := plants[name]
		aimed := options{length: 1, clients: 1, pause: 1, plant: name}.aimed()
		if err := aimed.fault(); err != nil || !slices.Contains(breachKinds, p.kind) {
			t.Errorf("the plant %q cannot be tried: %v, breach %q", name, err, p.kind)
		}
	}
}
