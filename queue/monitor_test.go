package queue

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"

	"openbot/domain"
)

func visit(t *testing.T, h http.Handler, method, path string) (int, string) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, "http://openbot.example"+path, nil)
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	body, err := io.ReadAll(recorder.Body)
	if err != nil {
		t.Fatal(err)
	}
	return recorder.Code, string(body)
}

func TestMonitorShowsWhatTasksNameAndNoMore(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		rung := task("turn-1")
		rung.Trace = "00-traceparent-01"
		q.Ring(t.Context(), rung)
		writable, readOnly := q.Monitor("/monitoring", false), q.Monitor("/monitoring", true)

		for _, pages := range []http.Handler{writable, readOnly} {
			if code, body := visit(t, pages, "GET", "/monitoring/"); code != 200 || !strings.Contains(body, "<html") {
				t.Fatalf("the page answers %d", code)
			}
			code, body := visit(t, pages, "GET", "/monitoring/api/queues/turns/pending_tasks")
			if code != 200 || !strings.Contains(body, "turn.step turn-1 revision 1") || strings.Contains(body, "traceparent") {
				t.Fatalf("the pending tasks: %d %s", code, body)
			}
		}
		const pause = "/monitoring/api/queues/turns:pause"
		if code, _ := visit(t, readOnly, "POST", pause); code != http.StatusMethodNotAllowed {
			t.Fatalf("a reader could pause a queue: %d", code)
		}
		if code, _ := visit(t, writable, "POST", pause); code != http.StatusNoContent {
			t.Fatalf("an operator could not pause a queue: %d", code)
		}
	})
}

// gather reads all metrics as name{labels in order} to value.
func gather(t *testing.T, q *Queue) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(q.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = metric.GetGauge().GetValue()
		}
	}
	return values
}

func TestMetricsAgreeWithAsynq(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		later := task("later")
		later.At = roundUp(roundUp(later.At).AddDate(3000, 0, 0))
		q.Ring(t.Context(), task("a"), task("b"), task("dead"), later)
		inspector := asynq.NewInspectorFromRedisClient(p.raw)
		if err := inspector.ArchiveTask("turns", identity(task("dead"))); err != nil {
			t.Fatal(err)
		}
		info, err := inspector.GetQueueInfo("turns")
		if err != nil {
			t.Fatal(err)
		}
		got := gather(t, q)
		for name, want := range map[string]int{
			"openbot_queue_up":                      1,
			"openbot_queue_tasks turns pending":     info.Pending,
			"openbot_queue_tasks turns scheduled":   info.Scheduled,
			"openbot_queue_tasks turns archived":    info.Archived,
			"openbot_queue_tasks turns active":      info.Active,
			"openbot_queue_tasks turns retry":       info.Retry,
			"openbot_queue_tasks answers pending":   0,
			"openbot_queue_lag_seconds answers":     0,
			"openbot_queue_tasks rest archived":     0,
			"openbot_queue_tasks reviews scheduled": 0,
		} {
			if value, found := got[name]; !found || value != float64(want) {
				t.Errorf("%s is %v (%v), want %d", name, value, found, want)
			}
		}
		if info.Pending != 2 || info.Scheduled != 1 || info.Archived != 1 {
			t.Errorf("asynq counts %+v", info)
		}
		if lag := got["openbot_queue_lag_seconds turns"]; lag <= 0 || lag > patience.Seconds() {
			t.Errorf("the lag is %v", lag)
		}
		lags, err := q.Lag(t.Context())
		if err != nil || lags[domain.UrgencyTurn] <= 0 || lags[domain.UrgencyAnswer] != 0 {
			t.Errorf("Lag gives %v, %v", lags, err)
		}
	})
}

func TestMetricsWithoutRedis(t *testing.T) {
	p := &place{t: t, url: "redis://" + closedPort(t), logs: &logs{}}
	got := gather(t, p.open())
	if len(got) != 1 || got["openbot_queue_up"] != 0 {
		t.Fatalf("metrics are %v", got)
	}
}
