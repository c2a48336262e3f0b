package worker

import (
	"github.com/prometheus/client_golang/prometheus"

	"openbot/domain"
)

// Metrics counts what workers sent out. A nil Metrics counts nothing.
type Metrics struct {
	models *prometheus.CounterVec
	calls  *prometheus.CounterVec
	hooks  *prometheus.CounterVec
}

// NewMetrics registers the counters of workers.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		models: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openbot_model_calls_total",
			Help: "Model calls by outcome."}, []string{"outcome"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openbot_tool_calls_total",
			Help: "Tool calls that went out, by kind and outcome."}, []string{"kind", "outcome"}),
		hooks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openbot_webhook_tries_total",
			Help: "Messages that went out to receivers, by event and outcome."}, []string{"event", "outcome"}),
	}
	registry.MustRegister(m.models, m.calls, m.hooks)
	// Series that are there from the start: an alert on a rate misses the first of a kind.
	for _, outcome := range []string{"ok", "failed"} {
		m.models.WithLabelValues(outcome)
		for _, event := range domain.HookEvents() {
			m.hooks.WithLabelValues(event, outcome)
		}
	}
	for _, kind := range []domain.CallKind{domain.CallApp, domain.CallHost, domain.CallResource, domain.CallPrompt} {
		for _, outcome := range []string{"ok", "failed", "unknown"} {
			m.calls.WithLabelValues(string(kind), outcome)
		}
	}
	return m
}

func (m *Metrics) model(outcome string) {
	if m != nil {
		m.models.WithLabelValues(outcome).Inc()
	}
}

func (m *Metrics) call(kind domain.CallKind, outcome string) {
	if m != nil {
		m.calls.WithLabelValues(string(kind), outcome).Inc()
	}
}

func (m *Metrics) hook(event, outcome string) {
	if m != nil {
		m.hooks.WithLabelValues(event, outcome).Inc()
	}
}
