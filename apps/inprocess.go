package apps

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// inMemory serves requests by a handler of this process. Nothing is dialled and no
// port is open.
type inMemory struct {
	handler http.Handler
}

// RoundTrip implements http.RoundTripper. It returns when the handler has sent its
// headers; the body streams after that.
func (m inMemory) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	reader, writer := io.Pipe()
	w := &pipeWriter{header: make(http.Header), body: writer, ready: make(chan struct{})}
	served := request.Clone(ctx)
	served.RequestURI = request.URL.RequestURI()
	served.Host = request.URL.Host
	served.RemoteAddr = "in-process"
	if served.Body == nil {
		served.Body = http.NoBody
	}
	go func() {
		// A panic of the handler becomes an aborted body, as net/http does it.
		defer func() {
			if recover() != nil {
				w.abort(io.ErrUnexpectedEOF)
				return
			}
			w.WriteHeader(http.StatusOK)
			_ = writer.Close()
		}()
		m.handler.ServeHTTP(w, served)
	}()
	select {
	case <-w.ready:
	case <-ctx.Done():
		_ = reader.CloseWithError(ctx.Err())
		return nil, ctx.Err()
	}
	if w.failed != nil {
		return nil, w.failed
	}
	// The handler must not hang on a reader who has gone.
	stop := context.AfterFunc(ctx, func() { _ = reader.CloseWithError(ctx.Err()) })
	body := &hangUp{ReadCloser: reader, stop: stop}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body, ContentLength: -1, Request: request,
	}, nil
}

// pipeWriter is an http.ResponseWriter whose body is a pipe.
type pipeWriter struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	ready  chan struct{}

	// Set once, before ready is closed.
	status int
	sent   http.Header
	failed error
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.ready)
	})
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush sends the headers; the body is never held back.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

func (w *pipeWriter) abort(err error) {
	w.once.Do(func() {
		w.failed = err
		close(w.ready)
	})
	_ = w.body.CloseWithError(err)
}

type hangUp struct {
	io.ReadCloser
	stop func() bool
}

func (h *hangUp) Close() error {
	h.stop()
	return h.ReadCloser.Close()
}
