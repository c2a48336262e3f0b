package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"openbot/domain"
)

const (
	// standingWithin is how long the database may take to count what is open.
	standingWithin = 2 * time.Second
	// standingKept is how long a count is shown again: /metrics takes no token, and
	// whoever asks often must not load the database.
	standingKept = 5 * time.Second
)

// Standing counts what is open.
type Standing func(ctx context.Context, now time.Time) (domain.Standing, error)

// Open shows what is open in the database: every process that shows it shows the same.
// While the database is away only openbot_database_up is there, and 0.
func Open(read Standing) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("openbot_"+name, help, labels, nil)
	}
	return &open{read: read,
		up:      desc("database_up", "Whether the database answered when the metrics were read."),
		pending: desc("requests_pending", "Requests that wait for an answer."),
		oldest:  desc("requests_oldest_pending_seconds", "Age of the oldest Request that waits; 0 when none does."),
		turns:   desc("turns_open", "Turns that have not ended, by status.", "status"),
		unknown: desc("calls_unknown", "Calls whose outcome nobody knows and a person is asked about."),
		overdue: desc("rows_overdue", "Open rows that nobody moved for a minute after they were due."),
	}
}

type open struct {
	read                                         Standing
	up, pending, oldest, turns, unknown, overdue *prometheus.Desc

	mu     sync.Mutex
	kept   domain.Standing
	failed error
	at     time.Time
}

// Describe lists the metrics.
func (o *open) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{o.up, o.pending, o.oldest, o.turns, o.unknown, o.overdue} {
		out <- d
	}
}

// Collect counts, within two seconds.
func (o *open) Collect(out chan<- prometheus.Metric) {
	s, err := o.count()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if err != nil {
		gauge(o.up, 0)
		return
	}
	gauge(o.up, 1)
	gauge(o.pending, float64(s.RequestsPending))
	gauge(o.oldest, s.OldestPending.Seconds())
	gauge(o.unknown, float64(s.CallsUnknown))
	gauge(o.overdue, float64(s.Overdue))
	for status, n := range s.TurnsOpen {
		gauge(o.turns, float64(n), string(status))
	}
}

func (o *open) count() (domain.Standing, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.at.IsZero() && time.Since(o.at) < standingKept {
		return o.kept, o.failed
	}
	ctx, cancel := context.WithTimeout(context.Background(), standingWithin)
	defer cancel()
	o.kept, o.failed = o.read(ctx, time.Now().UTC())
	o.at = time.Now()
	return o.kept, o.failed
}
