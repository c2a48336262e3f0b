//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report holds every figure of one run of the program.
type report struct {
	TakenAt   time.Time         `json:"takenAt"`
	CPUs      int               `json:"cpus"`
	Go        string            `json:"go"`
	Servers   map[string]string `json:"servers,omitempty"` // versions
	Arguments map[string]string `json:"arguments"`
	Sections  []*section        `json:"sections"`
}

// section holds the figures of one workload on one kind of server.
type section struct {
	Workload string    `json:"workload"`
	About    string    `json:"about"`
	Figures  []*figure `json:"figures"`
	Tables   []listing `json:"tables,omitempty"`
}

// figure is one quantity: the values of all runs, in order, and their median.
type figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Median float64   `json:"median"`
	Values []float64 `json:"values"`
}

// listing is text that explains a section, such as the slowest statements.
type listing struct {
	Name  string   `json:"name"`
	Lines []string `json:"lines"`
}

func (r *report) section(workload, about string) *section {
	s := &section{Workload: workload, About: about}
	r.Sections = append(r.Sections, s)
	return s
}

// add keeps the value of one more run.
func (s *section) add(name, unit string, value float64) {
	f := s.find(name)
	if f == nil {
		f = &figure{Name: name, Unit: unit}
		s.Figures = append(s.Figures, f)
	}
	f.Values = append(f.Values, value)
	f.Median = percentile(f.Values, 50)
}

func (s *section) find(name string) *figure {
	for _, f := range s.Figures {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// percentile gives the value below which p percent lie: the middle of two for an
// even median, the nearest rank else. It is NaN without values.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if p == 50 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	rank := int(math.Ceil(p / 100 * float64(n)))
	return sorted[min(max(rank, 1), n)-1]
}

func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "\nOpenBot on %d cores, %s", r.CPUs, r.Go)
	for _, name := range sortedKeys(r.Servers) {
		fmt.Fprintf(out, ", %s %s", name, r.Servers[name])
	}
	fmt.Fprintln(out)
	for _, s := range r.Sections {
		fmt.Fprintf(out, "\n%s  %s\n", s.Workload, s.About)
		w := tabwriter.NewWriter(out, 2, 8, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "\tmedian\tunit\taim\tall runs\t")
		for _, f := range s.Figures {
			all := make([]string, len(f.Values))
			for i, v := range f.Values {
				all[i] = short(v)
			}
			if len(all) > 9 {
				all = append(all[:9], fmt.Sprintf("... (%d)", len(f.Values)))
			}
			note := ""
			if a := aimOf(s.Workload, f.Name); a != nil {
				note = "missed: "
				if a.met(f.Median) {
					note = "met: "
				}
				note += short(a.limit)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", f.Name, short(f.Median), f.Unit, note, strings.Join(all, " "))
		}
		_ = w.Flush() // what cannot be printed is still saved
		for _, t := range s.Tables {
			fmt.Fprintf(out, "  %s\n    %s\n", t.Name, strings.Join(t.Lines, "\n    "))
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// short gives three or four figures: more would feign a precision that is not there.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// save writes the report as JSON.
func (r *report) save(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}
