//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"strings"
)

const (
	plotWidth   = 790
	plotLeft    = 250 // where the bars begin
	plotBars    = 300 // their longest
	plotRow     = 26
	plotTop     = 74
	plotDecades = 2.0 // from a tenth of the aim to ten times it
)

// bar is one figure beside its aim.
type bar struct {
	workload string
	aim      *aim
	unit     string
	value    float64
}

// bars gives the figures that have an aim, in the order of the aims; of several
// measurements of one, the last.
func bars(reports []*report) []bar {
	var list []bar
	for i := range aims {
		a := &aims[i]
		var found *bar
		for _, r := range reports {
			for _, s := range r.Sections {
				if f := s.find(a.figure); s.Workload == a.workload && f != nil && len(f.Values) > 0 {
					found = &bar{s.Workload, a, f.Unit, f.Median}
				}
			}
		}
		if found != nil {
			list = append(list, *found)
		}
	}
	return list
}

// plot draws how far each figure is from its aim, in factors of ten: left of the line is
// within it.
func plot(reports []*report) string {
	list := bars(reports)
	var out strings.Builder
	height := plotTop + plotRow*len(list) + 20
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="t" font-family="system-ui, sans-serif" font-size="13">`, plotWidth, height)
	out.WriteString("\n" + `<title id="t">Measured figures as a share of their aims</title>
<style>text{fill:#1b1f24}.m{fill:#2e7d4f}.o{fill:#b3541e}.l{stroke:#6b7280}.d{fill:#57606a}@media (prefers-color-scheme:dark){svg{background:#14171a}text{fill:#e6e8ea}.m{fill:#5fbf86}.o{fill:#e08a4f}.d{fill:#a9b1ba}}</style>` + "\n")
	fmt.Fprintf(&out, `<text x="12" y="22" font-weight="600">Share of the aim that is used up</text><text x="12" y="40" class="d">green is within it; each step to the right is a factor of ten</text>`+"\n")
	for _, tick := range []float64{0.1, 1, 10} {
		x := plotX(tick)
		fmt.Fprintf(&out, `<line x1="%.0f" y1="%d" x2="%.0f" y2="%d" class="l" stroke-dasharray="%s"/><text x="%.0f" y="%d" text-anchor="middle" class="d">%s</text>`+"\n",
			x, plotTop-6, x, height-16, map[bool]string{true: "none", false: "2 4"}[tick == 1], x, plotTop-10, map[float64]string{0.1: "0.1", 1: "aim", 10: "10"}[tick])
	}
	for i, b := range list {
		y := plotTop + plotRow*i
		class := "o"
		if b.aim.met(b.value) {
			class = "m"
		}
		word := "at most"
		if b.aim.atLeast {
			word = "at least"
		}
		end := plotX(b.aim.share(b.value))
		fmt.Fprintf(&out, `<text x="12" y="%d">%s  %s</text><rect x="%d" y="%d" width="%.0f" height="14" rx="2" class="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			y+14, b.workload, html.EscapeString(b.aim.label), plotLeft, y+3, math.Max(end-plotLeft, 2), class, plotLeft+plotBars+12, y+14,
			html.EscapeString(fmt.Sprintf("%s, %s %s %s", short(b.value), word, short(b.aim.limit), b.unit)))
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// plotX places a share of an aim; what lies beyond the ends is put there.
func plotX(share float64) float64 {
	at := (math.Log10(share) + plotDecades/2) / plotDecades
	return plotLeft + plotBars*min(max(at, 0), 1)
}

// load reads reports that were saved.
func load(paths []string) ([]*report, error) {
	var reports []*report
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		r := &report{}
		if err := json.Unmarshal(content, r); err != nil {
			return nil, fmt.Errorf("%s is no report of this program: %w", path, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}
