package main

import (
	"os"
	"strings"
	"testing"
)

// What is shown and what is alerted on is explained, word for word, to operators.
func TestOperationsExplainEveryMetricAndAlert(t *testing.T) {
	raw, err := os.ReadFile("docs/operations.md")
	must(t, err)
	text := string(raw)
	c, _, _ := startServe(t, backend{name: "SQLite"}.settings(t.TempDir()))
	shown, _ := c.scrape()
	for name := range shown {
		plain := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			plain = strings.TrimSuffix(plain, suffix)
		}
		if strings.HasPrefix(name, "openbot_") && !strings.Contains(text, "`"+plain+"`") {
			t.Errorf("docs/operations.md does not explain %s", plain)
		}
	}
	headings := map[string]bool{}
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			headings[strings.ReplaceAll(strings.ToLower(title), " ", "-")] = true
		}
	}
	rules, err := os.ReadFile("deployments/prometheus/alerts.yml")
	must(t, err)
	for _, a := range alerts(t, rules) {
		if !strings.Contains(text, "`"+a.Alert+"`") {
			t.Errorf("docs/operations.md does not explain %s", a.Alert)
		}
		_, anchor, _ := strings.Cut(a.Annotations["runbook"], "#")
		if !headings[anchor] {
			t.Errorf("%s points to the section %q, which is not there", a.Alert, anchor)
		}
	}
}
