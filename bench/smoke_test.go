//go:build linux

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestEveryWorkloadRuns measures almost nothing, but all of it, with the real binary
// and the real servers: figures that nobody can take any more are noticed here.
func TestEveryWorkloadRuns(t *testing.T) {
	if os.Getenv("OPENBOT_TEST_DATABASE_URL") == "" {
		t.Skip("OPENBOT_TEST_DATABASE_URL is not set: the load programs are NOT tried (make test sets it)")
	}
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	file := filepath.Join(t.TempDir(), "figures.json")
	o := defaults()
	o.workloads = []string{approvalRounds, answerLatency, parkedTurns, releases, givenWork, inboxPages, inOneProcess}
	o.clients, o.runs, o.rounds, o.parked, o.pieces, o.pending, o.branches, o.release, o.statements = 3, 1, 5, 5, 5, 300, 5, true, 3
	o.length, o.warmup, o.floor, o.idle, o.settle = 2*time.Second, 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond, 0
	o.json, o.buildFlags = file, buildFlags
	progress := io.Discard
	if testing.Verbose() {
		progress = t.Output()
	}
	if err := run(t.Context(), o, progress, progress); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("%v were left behind, %v", left, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got report
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	if missing := got.misses(o); missing != nil {
		t.Errorf("these aims belong to no figure: %q", missing)
	}
	for workload, names := range map[string][]string{
		approvalRounds: {roundsPerSecond, floorPerSecond, "CPU a round, servers", "CPU a round, PostgreSQL", "durable commits a round"},
		answerLatency:  {"answer to end of the Turn, p50", "answer to end of the Turn, p99", "floor: one commit, p50"},
		parkedTurns: {"parked Turns", "memory parked, worker", "one parked Turn, answer to end", roundsPerSecond,
			"answer to end of the Turn, p50", "Turns ended"},
		releases:     {"answers taken", "all ended after"},
		inboxPages:   {"first page", "first page, p99", "next page, p99", "new Request decided to the list read anew, p99", "answer sent to its live event, p99", "live events of the run"},
		givenWork:    {roundsPerSecond, floorPerSecond, "durable commits a round"},
		inOneProcess: {roundsPerSecond, floorPerSecond, "CPU a round, serve", "answer to end of the Turn, p50"},
	} {
		for _, name := range names {
			if !got.has(workload, name) {
				t.Errorf("%s does not say above 0: %s", workload, name)
			}
		}
	}
}

// misses lists the aims of the workloads that were measured to which no figure belongs.
func (r *report) misses(o options) []string {
	var missing []string
	for _, a := range aims {
		found := !o.has(a.workload)
		for _, s := range r.Sections {
			found = found || s.Workload == a.workload && s.find(a.figure) != nil
		}
		if !found {
			missing = append(missing, a.workload+" "+a.figure)
		}
	}
	return missing
}

// has reports whether a workload has a figure whose values are all above 0.
func (r *report) has(workload, name string) bool {
	for _, s := range r.Sections {
		if f := s.find(name); s.Workload == workload && f != nil {
			for _, v := range f.Values {
				if v <= 0 {
					return false
				}
			}
			return len(f.Values) > 0
		}
	}
	return false
}

func TestAFailureIsToldAndNothingIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	o := defaults()
	o.workloads, o.binary = []string{inOneProcess}, "/bin/false"
	var table strings.Builder
	if err := run(t.Context(), o, &table, io.Discard); err == nil || !strings.Contains(err.Error(), "serve ended by itself") {
		t.Errorf("got %v, want that the process ended", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("%v were left behind, %v", left, err)
	}
}
