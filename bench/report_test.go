//go:build linux

package main

import (
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, c := range []struct {
		values  []float64
		p, want float64
	}{
		{[]float64{3}, 50, 3}, {[]float64{3}, 99, 3}, {[]float64{4, 1}, 50, 2.5}, {[]float64{9, 1, 2}, 50, 2},
		{hundred, 50, 50.5}, {hundred, 95, 95}, {hundred, 99, 99}, {hundred, 100, 100},
	} {
		if got := percentile(c.values, c.p); got != c.want {
			t.Errorf("p%v of %d values is %v, want %v", c.p, len(c.values), got, c.want)
		}
	}
	if !math.IsNaN(percentile(nil, 50)) {
		t.Error("no values have a median")
	}
	if hundred[0] != 100 {
		t.Error("the values were sorted in place; their order is that of the runs")
	}
}

func TestTheTableShowsMedianAndEveryRun(t *testing.T) {
	var r report
	s := r.section(approvalRounds, "approval rounds")
	for _, v := range []float64{120.4, 99.6, 101} {
		s.add(roundsPerSecond, "1/s", v)
	}
	var out strings.Builder
	r.print(&out)
	for _, want := range []string{"W1  approval rounds", " 101   1/s", "120 99.6 101"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestFlagsThatCannotWorkAreRefused(t *testing.T) {
	for _, arguments := range [][]string{
		{"-workloads", "W99"}, {"-runs", "0"}, {"-clients", "-1"}, {"-length", "0s"}, {"-parked", "0"}, {"W1"}, {"-nothing"},
	} {
		if _, err := parse(arguments, new(strings.Builder)); err == nil {
			t.Errorf("%v was taken", arguments)
		}
	}
	o, err := parse([]string{"-workloads", "w2", "-embedded"}, new(strings.Builder))
	if err != nil || !o.has(answerLatency) || !o.has(inOneProcess) || o.has(approvalRounds) {
		t.Errorf("got %v and %v", o.workloads, err)
	}
}

// What a child used must count while it lives and after it was collected.
func TestCPUOfATreeCountsChildren(t *testing.T) {
	self := os.Getpid()
	before, err := cpuOf(self)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo; read line")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	used, err := cpuOf(child.Process.Pid)
	if err != nil || used <= 0 {
		t.Fatalf("the child used %v, %v", used, err)
	}
	alive, err := cpuOf(self)
	if err != nil || alive-before < used {
		t.Errorf("with the child alive the tree used %v more, want at least %v (%v)", alive-before, used, err)
	}
	if memoryOf(child.Process.Pid) <= 0 || memoryOf(self) <= 0 {
		t.Error("a process has no memory")
	}
	input.Close()
	if err := child.Wait(); err != nil {
		t.Log(err) // read found no line
	}
	ended, err := cpuOf(self)
	if err != nil || ended-before < used {
		t.Errorf("after the child's end the tree used %v more, want at least %v (%v)", ended-before, used, err)
	}
	if _, err := cpuOf(child.Process.Pid); err == nil {
		t.Error("a process that is gone was watched")
	}
}
