// Package telemetry shows an operator what the program does: figures of commits for
// Prometheus, and traces for OpenTelemetry. It stands around the other parts and
// hands on what they give; it changes nothing, and it never records what people,
// models or Apps wrote.
package telemetry

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"openbot/domain"
)

// Meter counts what an engine committed. Its labels take closed sets of words, so
// that nobody from outside can make series.
type Meter struct {
	attempts  *prometheus.CounterVec
	decided   *prometheus.CounterVec
	continued prometheus.Histogram
	unknown   prometheus.Counter
	tokens    *prometheus.CounterVec
	cost      *prometheus.CounterVec
}

// NewMeter registers the metrics of commits and the version of the program.
func NewMeter(registry prometheus.Registerer, version string) *Meter {
	m := &Meter{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openbot_attempts_total",
			Help: "Attempts by the step of the check that ended them and its outcome: allow, deny, or ask when a decider is waited for."}, []string{"step", "outcome"}),
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openbot_requests_decided_total",
			Help: "Decided Requests by decision and kind of decider."}, []string{"decision", "by"}),
		continued: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "openbot_answer_to_continue_seconds",
			Help:    "From the answer that allowed a call until a worker had it.",
			Buckets: []float64{0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60}}),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{Name: "openbot_calls_lost_total",
			Help: "Calls that went out and whose outcome nobody knows."}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openbot_model_tokens_total",
			Help: "Tokens of model calls by provider, purpose and direction (input, output)."}, []string{"provider", "purpose", "direction"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openbot_model_cost_usd_total",
			Help: "Cost of model calls in USD by provider and purpose."}, []string{"provider", "purpose"}),
	}
	// Series that are there from the start: an alert on a rate misses the first of a kind.
	for _, step := range []domain.Step{domain.StepPolicy, domain.StepExemption, domain.StepGrant, domain.StepRule, domain.StepDecider} {
		m.attempts.WithLabelValues(string(step), domain.DecisionAllow)
		m.attempts.WithLabelValues(string(step), domain.DecisionDeny)
	}
	for _, provider := range []string{"openai", "anthropic", "playbook"} {
		m.Used(domain.UsageEntry{Model: provider, Purpose: domain.PurposeTurn})
	}
	for _, decision := range []string{domain.DecisionAllow, domain.DecisionDeny} {
		m.decided.WithLabelValues(decision, strings.ToLower(domain.TagPerson))
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "openbot_build_info", Help: "1, with the version of the program.",
		ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	registry.MustRegister(m.attempts, m.decided, m.continued, m.unknown, m.tokens, m.cost, build)
	return m
}

// Attempt implements engine.Meter.
func (m *Meter) Attempt(step domain.Step, outcome string) {
	m.attempts.WithLabelValues(string(step), outcome).Inc()
}

// Decided implements engine.Meter.
func (m *Meter) Decided(decision, by string) {
	m.decided.WithLabelValues(decision, strings.ToLower(by)).Inc()
}

// Continued implements engine.Meter.
func (m *Meter) Continued(after time.Duration) { m.continued.Observe(after.Seconds()) }

// Unknown implements engine.Meter.
func (m *Meter) Unknown() { m.unknown.Inc() }

// Used implements engine.Meter.
func (m *Meter) Used(u domain.UsageEntry) {
	provider, purpose := providerOf(u.Model), string(u.Purpose)
	m.tokens.WithLabelValues(provider, purpose, "input").Add(float64(u.InputTokens))
	m.tokens.WithLabelValues(provider, purpose, "output").Add(float64(u.OutputTokens))
	m.cost.WithLabelValues(provider, purpose).Add(float64(u.CostNanos) / 1e9)
}

// providerOf gives the provider of a model; its name alone would be open to everybody
// who makes Bots.
func providerOf(model string) string {
	switch provider, _, _ := strings.Cut(model, ":"); provider {
	case "openai", "anthropic", "playbook":
		return provider
	}
	return "other"
}
