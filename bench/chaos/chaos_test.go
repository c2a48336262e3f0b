//go:build linux

package main

import (
	"io"
	"os"
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
	o := options{length: time.Minute, seed: uint64(time.Now().UnixNano()), clients: 2, quiet: 90 * time.Second}
	if err := run(t.Context(), o, out); err != nil {
		t.Fatal(err)
	}
}

// TestEveryPlantFindsItsPlace notices when the sources move away under a plant.
func TestEveryPlantFindsItsPlace(t *testing.T) {
	for _, name := range plantNames() {
		if _, err := overlayOf("../..", t.TempDir(), name); err != nil {
			t.Error(err)
		}
	}
}
