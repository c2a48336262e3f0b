//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// Ways in which the App behaves towards a call.
const (
	appWell    = ""
	appError   = "error"   // 500 before the call reached it
	appRude    = "rude"    // it took the call and answers 502
	appGarbage = "garbage" // it took the call and answers what is no answer
	appTorn    = "torn"    // it took the call and its answer ends in the middle
	appGone    = "gone"    // it answers, and the connection dies at once
	appDead    = "dead"    // the connection is closed before the call reached it
	appMute    = "mute"    // it takes calls, and lets whoever connects wait
)

// gate stands before the App and lets it misbehave. What passes it is noted by the App
// itself.
type gate struct {
	how    atomic.Value
	lies   atomic.Int64
	server *http.Server
	url    string
}

func startGate(app string) (*gate, error) {
	target, err := url.Parse(app)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	proxy.FlushInterval = -1
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // broken connections are ordered
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	// An App that was just reached is reached by a new connection: a kept one that the
	// App closes meanwhile would be the gate's lie, not one that was ordered.
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	g := &gate{url: "http://" + listener.Addr().String() + target.Path}
	g.how.Store(appWell)
	g.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.serve(w, r, proxy)
	})}
	go func() { _ = g.server.Serve(listener) }()
	return g, nil
}

func (g *gate) close() { _ = g.server.Close() }

func (g *gate) serve(w http.ResponseWriter, r *http.Request, app http.Handler) {
	how, _ := g.how.Load().(string)
	if how == appWell || r.Method != http.MethodPost {
		app.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if how == appMute {
		for g.how.Load() == appMute && r.Context().Err() == nil && !bytes.Contains(body, []byte(`"tools/call"`)) {
			wait(r.Context(), 20*time.Millisecond)
		}
		app.ServeHTTP(w, r)
		return
	}
	n := g.lies.Add(1)
	switch how {
	case appDead:
		panic(http.ErrAbortHandler)
	case appError:
		http.Error(w, "not now", []int{http.StatusInternalServerError, http.StatusServiceUnavailable}[n%2])
		return
	}
	answer := httptest.NewRecorder()
	app.ServeHTTP(answer, r)
	switch how {
	case appRude:
		http.Error(w, "bad gateway", http.StatusBadGateway)
		return
	case appGarbage:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, []string{`{"jsonrpc":"2.0","id":99999,"result":{}}`, `{"content":`, `"yes"`}[n%3])
		return
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	said := answer.Body.Bytes()
	if how == appTorn {
		w.Header().Set("Content-Length", fmt.Sprint(len(said)+1))
		said = said[:len(said)/2]
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(said)
	if flush, ok := w.(http.Flusher); ok {
		flush.Flush()
	}
	panic(http.ErrAbortHandler)
}
