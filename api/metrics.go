package api

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by route template, never by address.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	streams  prometheus.Gauge
}

func newMetrics(registry *prometheus.Registry) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openbot_http_requests_total",
			Help: "HTTP requests by route template, method and status."}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "openbot_http_request_duration_seconds",
			Help:    "How long HTTP requests took, streams left out.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}}, []string{"route", "method"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "openbot_http_streams", Help: "Open event streams."}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.streams} {
		errs = append(errs, registry.Register(c))
	}
	return m, errors.Join(errs...)
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

func (m *metrics) count(route, method string, status int, took time.Duration, stream bool) {
	if !slices.Contains(methods, method) {
		method = "other" // a stranger must not be able to make new series
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	if !stream {
		m.seconds.WithLabelValues(route, method).Observe(took.Seconds())
	}
}
