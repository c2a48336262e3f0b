package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"openbot/apps/appstest"
)

var (
	metricName  = regexp.MustCompile(`\bopenbot_[a-z0-9_]+`)
	seriesLine  = regexp.MustCompile(`(?m)^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)`)
	labelOfLine = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
	selector    = regexp.MustCompile(`\b(openbot_[a-z0-9_]+)\{([^}]*)\}`)
	matcher     = regexp.MustCompile(`([a-z_]+)\s*(=~|!=|!~|=)\s*"([^"]*)"`)
	grouping    = regexp.MustCompile(`\bby \(([a-z_, ]+)\)`)
)

// scraped is what /metrics gave: for each name its labels, with the values seen.
type scraped map[string]map[string][]string

func (c *client) scrape() (scraped, string) {
	c.t.Helper()
	status, raw, err := c.try("GET", "/metrics", nil)
	must(c.t, err)
	if status != 200 {
		c.t.Fatalf("/metrics gave %d", status)
	}
	found := scraped{}
	for _, line := range seriesLine.FindAllStringSubmatch(string(raw), -1) {
		if found[line[1]] == nil {
			found[line[1]] = map[string][]string{}
		}
		for _, l := range labelOfLine.FindAllStringSubmatch(line[2], -1) {
			found[line[1]][l[1]] = append(found[line[1]][l[1]], l[2])
		}
	}
	return found, string(raw)
}

// series says whether /metrics has a line that begins so.
func series(text, line string) bool {
	return slices.ContainsFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, line) })
}

// faults gives what is wrong with an expression, seen from what the program shows.
func (s scraped) faults(expression string) (faults []string) {
	known := []string{"job", "instance", "pod", "namespace"}
	for _, name := range metricName.FindAllString(expression, -1) {
		if s[name] == nil {
			faults = append(faults, "no metric is called "+name)
		}
		for label := range s[name] {
			known = append(known, label)
		}
	}
	for _, sel := range selector.FindAllStringSubmatch(expression, -1) {
		for _, m := range matcher.FindAllStringSubmatch(sel[2], -1) {
			values, ok := s[sel[1]][m[1]]
			if !ok {
				faults = append(faults, sel[1]+" has no label "+m[1])
			} else if m[2] == "=" && !slices.Contains(values, m[3]) {
				faults = append(faults, sel[1]+" never has "+m[1]+"="+m[3])
			}
		}
	}
	for _, by := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(by[1], ",") {
			if !slices.Contains(known, strings.TrimSpace(label)) {
				faults = append(faults, "nothing has the label "+label)
			}
		}
	}
	if strings.Count(expression, "(") != strings.Count(expression, ")") {
		faults = append(faults, "its brackets do not match")
	}
	return faults
}

// expressions gives every expression of the dashboard and of the alerts by its title.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	raw, err := os.ReadFile("deployments/grafana/openbot.json")
	must(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must(t, json.Unmarshal(raw, &board))
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			found["panel "+p.Title+": "+q.Expr] = q.Expr
		}
	}
	raw, err = os.ReadFile("deployments/prometheus/alerts.yml")
	must(t, err)
	for _, a := range alerts(t, raw) {
		found["alert "+a.Alert] = a.Expr
	}
	return found
}

type alert struct {
	Alert, Expr string
	Annotations map[string]string
}

func alerts(t *testing.T, raw []byte) []alert {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	must(t, yaml.Unmarshal(raw, &file))
	if len(file.Groups) == 0 || len(file.Groups[0].Rules) == 0 {
		t.Fatal("there are no alerts")
	}
	return file.Groups[0].Rules
}

// The dashboard and the alerts ask only for what the running program shows, and a whole
// round moves the figures that it must move.
func TestTheDashboardAndTheAlertsAskForWhatThereIs(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		app := appstest.New(t)
		c, _, _ := startServe(t, b.settings(t.TempDir()))
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
		c.awaitTurn(chat, turn, status("Waiting"))
		c.answer(c.pending(turn)[0], object{"decision": "allow"})
		c.awaitTurn(chat, turn, status("Completed"))

		shown, text := c.scrape()
		for title, expression := range expressions(t) {
			for _, fault := range shown.faults(expression) {
				t.Errorf("%s: %s", title, fault)
			}
			if !metricName.MatchString(expression) {
				t.Errorf("%s asks for nothing of OpenBot's", title)
			}
		}
		for _, line := range []string{
			`openbot_attempts_total{outcome="ask",step="decider"} 1`,
			`openbot_attempts_total{outcome="allow",step="decider"} 1`,
			`openbot_requests_decided_total{by="person",decision="allow"} 1`,
			`openbot_answer_to_continue_seconds_count 1`,
			`openbot_tool_calls_total{kind="app",outcome="ok"} 1`,
			`openbot_model_calls_total{outcome="ok"} 2`,
			`openbot_calls_lost_total 0`,
			`openbot_database_up 1`,
			`openbot_queue_up 1`,
			`openbot_turns_open{status="Waiting"}`,
			`openbot_queue_lag_seconds{queue="`,
		} {
			if !series(text, line) {
				t.Errorf("/metrics shows no %s", line)
			}
		}
		if strings.Contains(text, `input",provider="playbook",purpose="turn"} 0`) || strings.Contains(text, chat) {
			t.Error("/metrics counts no tokens, or shows an ID")
		}
	})
}

func TestTheLookAtExpressionsCanFail(t *testing.T) {
	shown := scraped{"openbot_a_total": {"kind": {"app"}}}
	for expression, want := range map[string]int{
		`sum by (kind) (rate(openbot_a_total{kind="app"}[5m]))`: 0,
		`rate(openbot_b_total[5m])`:                             1,
		`openbot_a_total{king="app"}`:                           1,
		`openbot_a_total{kind="host"}`:                          1,
		`sum by (what) (openbot_a_total)`:                       1,
		`sum(openbot_a_total`:                                   1,
	} {
		if got := shown.faults(expression); len(got) != want {
			t.Errorf("%s has the faults %q, want %d", expression, got, want)
		}
	}
}
