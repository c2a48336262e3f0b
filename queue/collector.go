package queue

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector gives the metrics openbot_queue_up, openbot_queue_tasks by queue and
// state, and openbot_queue_lag_seconds by queue. While Redis is away only
// openbot_queue_up is there, and 0; a scrape never fails for it.
func (q *Queue) Collector() prometheus.Collector {
	return &collector{
		queue: q,
		up: prometheus.NewDesc("openbot_queue_up",
			"Whether Redis answered when the metrics were read.", nil, nil),
		tasks: prometheus.NewDesc("openbot_queue_tasks",
			"Tasks by queue and state.", []string{"queue", "state"}, nil),
		lag: prometheus.NewDesc("openbot_queue_lag_seconds",
			"Age of the oldest task that waits for a worker.", []string{"queue"}, nil),
	}
}

type collector struct {
	queue          *Queue
	up, tasks, lag *prometheus.Desc
}

// Describe lists the metrics.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- c.up
	out <- c.tasks
	out <- c.lag
}

// Collect reads the queues, within a second.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	depths, err := c.queue.depths(context.Background())
	up := 1.0
	if err != nil {
		up = 0
	}
	out <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, up)
	for u, d := range depths {
		for state, n := range d.tasks {
			out <- prometheus.MustNewConstMetric(c.tasks, prometheus.GaugeValue, float64(n), string(u), state)
		}
		out <- prometheus.MustNewConstMetric(c.lag, prometheus.GaugeValue, d.lag.Seconds(), string(u))
	}
}
