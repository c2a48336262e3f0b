package api

import (
	"context"
	"net/http"
	"time"

	"openbot/domain"
)

// readyTimeout is how long the database or the queue may take to answer that it is
// there.
const readyTimeout = 2 * time.Second

// Health says that the process lives.
type Health struct {
	Status string `json:"status" enum:"ok" doc:"Always ok."`
}

// Readiness says whether the server can do its work.
type Readiness struct {
	Status string `json:"status" enum:"ready" doc:"The database answers."`
	Queue  string `json:"queue" enum:"ok,degraded" doc:"degraded: the queue does not answer; reads and input go on, work is taken up when it is back."`
}

func (s *server) healthRoutes() {
	register(s, route{id: "health", method: http.MethodGet, path: "/healthz", tag: "Server", summary: "The process lives", status: 200},
		func(context.Context, domain.Principal, *struct{}) (*struct{ Body Health }, error) {
			return &struct{ Body Health }{Health{Status: "ok"}}, nil
		})
	register(s, route{id: "readiness", method: http.MethodGet, path: "/readyz", tag: "Server", summary: "The server can work", status: 200},
		s.ready)
}

func (s *server) ready(ctx context.Context, _ domain.Principal, _ *struct{}) (*struct{ Body Readiness }, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.Engine.Store.Ready(ctx); err != nil {
		return nil, domain.Wrap(domain.CodeUnavailable, "Unavailable", "The database does not answer, or its schema is not that of this server.", err)
	}
	out := Readiness{Status: "ready", Queue: "ok"}
	if s.QueueReady != nil {
		if err := s.QueueReady(ctx); err != nil {
			out.Queue = "degraded"
		}
	}
	return &struct{ Body Readiness }{out}, nil
}
