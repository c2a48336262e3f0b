package engine_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// checksPerHistory is how many checks of a pure property one history is worth: it is so
// much dearer.
const checksPerHistory = 20

// Whatever is given, limited, paused, answered, stopped and whenever processes die: work
// ends once, its giver is told, costs and times add up, and nothing begins that is held.
func TestRandomWorkKeepsTheLaw(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	number, err := strconv.Atoi(checks.Value.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = checks.Value.Set(strconv.Itoa(number)) }()
	if err := checks.Value.Set(strconv.Itoa(max(number/checksPerHistory, 1))); err != nil {
		t.Fatal(err)
	}
	seed(t)
	folder := t.TempDir()
	if memory, err := os.MkdirTemp("/dev/shm", "openbot-"); err == nil {
		folder = memory
		t.Cleanup(func() { _ = os.RemoveAll(memory) })
	}
	reached := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := newForest(t, folder, reached)
		f.saySomething()
		f.grow()
		for range rapid.IntRange(20, 120).Draw(t, "acts") {
			f.act()
			f.laws()
		}
		f.finish()
	})
	t.Logf("reached: %v", reached)
}
