package api

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"openbot/domain/engine"
)

// outermost is the middleware around everything: the request's ID, the headers of
// every answer, one line in the log, the metrics, and panics.
func (s *server) outermost(gc *gin.Context) {
	began := time.Now()
	i := &info{requestID: requestID(gc.Request.Header), url: gc.Request.URL, root: s.place.root}
	i.origin = &engine.Origin{Address: gc.ClientIP(), HTTPRequest: i.requestID}
	gc.Request = gc.Request.WithContext(engine.WithOrigin(withInfo(gc.Request.Context(), i), i.origin))
	// Set for every request: a deadline stays on a connection that is used again.
	_ = http.NewResponseController(gc.Writer).SetWriteDeadline(began.Add(bodyTimeout + requestTimeout + streamWrite)) // not every writer has one
	h := gc.Writer.Header()
	h.Set("X-Request-Id", i.requestID)
	safeHeaders(h)
	defer func() {
		if failed := recover(); failed != nil {
			if err, ok := failed.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(failed)
			}
			s.Logger.ErrorContext(gc.Request.Context(), "a handler panicked", "httpRequest", i.requestID,
				"panic", fmt.Sprint(failed), "stack", string(debug.Stack()))
			if !gc.Writer.Written() {
				writeProblem(gc, newProblem(http.StatusInternalServerError, "Internal", internalDetail))
			}
		}
		s.observe(gc, i, time.Since(began))
	}()
	gc.Next()
}

// observe logs and counts a request: its route and outcome, never its query,
// body or token.
func (s *server) observe(gc *gin.Context, i *info, took time.Duration) {
	path, stream := gc.FullPath(), false
	switch {
	case i.route != nil:
		path, stream = i.route.path, i.route.stream
	case path == "":
		path = "unmatched"
	}
	nameSpan(gc.Request.Context(), gc.Request.Method, path, gc.Writer.Status(), i.requestID)
	s.metrics.count(path, gc.Request.Method, gc.Writer.Status(), took, stream)
	s.Logger.InfoContext(gc.Request.Context(), "request", "httpRequest", i.requestID, "method", gc.Request.Method, "route", path,
		"status", gc.Writer.Status(), "bytes", max(gc.Writer.Size(), 0), "ms", took.Milliseconds(),
		"member", i.principal.Member.ID, "address", gc.ClientIP())
}

// requestID takes the caller's own ID when it is harmless, and makes one if not.
func requestID(h http.Header) string {
	id := h.Get("X-Request-Id")
	sane := id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
	if sane {
		return id
	}
	return uuid.NewString()
}

// safeHeaders are those of every answer. Pages loosen the policy for their own
// style sheet alone.
func safeHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
