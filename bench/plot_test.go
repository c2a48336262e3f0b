//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// Each figure with an aim is a bar, the newest measurement of it; what misses its aim is
// marked, also where more is better.
func TestThePlotShowsWhatMeetsItsAim(t *testing.T) {
	early, late := &report{}, &report{}
	early.section(approvalRounds, "").add(roundsPerSecond, "1/s", 400)
	s := late.section(approvalRounds, "")
	s.add(roundsPerSecond, "1/s", 150)
	s.add("CPU a round, servers", "ms", 4)
	s.add("WAL a round", "KiB", 20)
	late.section(answerLatency, "").add("answer to end of the Turn, p99", "ms", 900)

	path := filepath.Join(t.TempDir(), "late.json")
	if err := late.save(path); err != nil {
		t.Fatal(err)
	}
	loaded, err := load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	svg := plot(append([]*report{early}, loaded...))
	decoder, met, missed := xml.NewDecoder(strings.NewReader(svg)), 0, 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the plot is no XML: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			for _, a := range e.Attr {
				if a.Name.Local == "class" && a.Value == "m" {
					met++
				} else if a.Name.Local == "class" {
					missed++
				}
			}
		}
	}
	if met != 1 || missed != 2 {
		t.Errorf("%d bars meet their aim and %d do not, want 1 and 2:\n%s", met, missed, svg)
	}
	for _, want := range []string{"150, at least 300 1/s", "4.00, at most 5.00 ms", "900, at most 25.0 ms"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the plot lacks %q", want)
		}
	}
	if _, err := load([]string{"plot.go"}); err == nil {
		t.Error("a file that is no report was taken")
	}
}

// Every aim names a figure that a workload gives.
func TestEveryAimHasItsShare(t *testing.T) {
	for _, a := range aims {
		if share := a.share(a.limit); share != 1 || !a.met(a.limit) {
			t.Errorf("%s %q at its aim has the share %v", a.workload, a.figure, share)
		}
		if aimOf(a.workload, a.figure) == nil {
			t.Errorf("%s %q is not found", a.workload, a.figure)
		}
	}
}
