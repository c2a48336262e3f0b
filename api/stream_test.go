package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"openbot/api"
)

// reader reads Server-Sent Events of a real server.
type reader struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
}

type event struct {
	kind, id string
	data     map[string]any
}

func (h *house) open(server *httptest.Server, path string, headers ...string) *reader {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), "GET", server.URL+path, nil)
	must(h.t, err)
	r.Header.Set("Authorization", "Bearer "+h.secret)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := server.Client().Do(r)
	must(h.t, err)
	h.t.Cleanup(func() { _ = response.Body.Close() })
	return &reader{t: h.t, response: response, lines: bufio.NewScanner(response.Body)}
}

// next gives the next event, passing comments over; nil at the end.
func (r *reader) next() *event {
	r.t.Helper()
	var e event
	for r.lines.Scan() {
		name, value, _ := strings.Cut(r.lines.Text(), ": ")
		switch name {
		case "event":
			e.kind = value
		case "id":
			e.id = value
		case "data":
			must(r.t, json.Unmarshal([]byte(value), &e.data))
		case "":
			if e.kind != "" {
				return &e
			}
		}
	}
	return nil
}

// A reader gets the saved events, then those that come; whoever comes back goes on
// without loss or repeat.
func TestObserveAChat(t *testing.T) {
	h := newHouse(t)
	h.connect()
	server := httptest.NewServer(h.handler)
	t.Cleanup(server.Close)
	chat, turn, request := h.asking()
	path := "/v1/chats/" + chat + "/observe"
	r := h.open(server, path)
	if got := r.response.Header.Get("Content-Type"); r.response.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("%d %s", r.response.StatusCode, got)
	}
	var seen []*event
	for len(seen) == 0 || seen[len(seen)-1].kind != "request.pending" {
		e := r.next()
		if e == nil {
			t.Fatal("the stream ended")
		}
		seen = append(seen, e)
	}
	for i, e := range seen {
		if e.id != fmt.Sprint(i+1) || e.data["sequence"] != float64(i+1) || e.data["kind"] != e.kind || e.data["chat"] != chat ||
			e.data["at"] != float64(h.clock.now().UnixMilli()) || text(e.data["subject"]) == "" {
			t.Errorf("event %d is %+v", i, e)
		}
	}
	last := seen[len(seen)-1]
	if last.data["request"] != request || last.data["turn"] != turn || last.data["status"] != "pending" {
		t.Errorf("the Request is told as %v", last.data)
	}
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"deny"}`)
	for {
		e := r.next() // live
		if e == nil {
			t.Fatal("the stream ended")
		}
		seen = append(seen, e)
		if e.kind == "request.decided" {
			break
		}
	}
	h.work()
	for _, resume := range [][]string{{path + "?afterSequence=2"}, {path + "?afterSequence=0", "Last-Event-ID", "2"}} {
		again := h.open(server, resume[0], resume[1:]...)
		if e := again.next(); e.id != "3" || e.kind != seen[2].kind {
			t.Errorf("%v goes on with %+v", resume, e)
		}
		_ = again.response.Body.Close()
	}
}

// The stream of a Member has everything of all its Chats and nothing of others.
func TestObserveEverything(t *testing.T) {
	h := newHouse(t)
	server := httptest.NewServer(h.handler)
	t.Cleanup(server.Close)
	_, secret := h.stranger(`["write"]`, `["write"]`)
	other := h.as(secret, "POST", "/v1/chats", `{}`).object(t)
	h.chat("before")
	r := h.open(server, "/v1/events")
	if a := h.as(secret, "POST", "/v1/chats/"+text(other["id"])+"/messages", `{"text":"hers"}`); a.status != 202 {
		t.Fatal(a.body)
	}
	chat, _ := h.chat("after")
	first := r.next()
	if first.data["chat"] != chat {
		t.Errorf("the first is %+v", first)
	}
	if fmt.Sprint(first.data["sequence"]) != first.id {
		t.Errorf("the id of %+v is not its sequence", first)
	}
	whole := h.open(server, "/v1/events?afterSequence=0")
	position := 0.0
	for {
		e := whole.next()
		if at := e.data["sequence"].(float64); at <= position {
			t.Errorf("%v comes after %v", at, position)
		} else {
			position = at
		}
		if e.data["chat"] == text(other["id"]) {
			t.Error("another Member's event")
		}
		if e.id == first.id {
			break
		}
	}
}

func TestStreamsRefuse(t *testing.T) {
	h := newHouse(t)
	chat, _ := h.chat("Hello")
	for _, path := range []string{"/v1/chats/" + chat + "/observe", "/v1/events"} {
		h.refused(h.call("GET", path+"?afterSequence=99999", ""), 422, "InvalidInput")
		h.refused(h.call("GET", path+"?afterSequence=-2", ""), 422, "InvalidInput")
		h.refused(h.call("GET", path, "", "Last-Event-ID", "x"), 422, "InvalidInput")
		h.refused(h.call("GET", path, "", "Last-Event-ID", "-1"), 422, "InvalidInput")
		h.refused(h.as("", "GET", path, ""), 401, "Unauthenticated")
	}
}

// A server that stops does not wait for its readers.
func TestStreamsEndWithTheServer(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	h := newHouse(t, func(o *api.Options) { o.Stopping = stopping })
	server := httptest.NewServer(h.handler)
	t.Cleanup(server.Close)
	r := h.open(server, "/v1/events")
	stop()
	if rest, err := io.ReadAll(r.response.Body); err != nil || !strings.HasPrefix(string(rest), ":") {
		t.Errorf("%q %v", rest, err)
	}
}

// tape is a response that can be read while it is written.
type tape struct {
	mu     sync.Mutex
	header http.Header
	text   strings.Builder
}

func (w *tape) Header() http.Header { return w.header }
func (w *tape) WriteHeader(int)     {}
func (w *tape) Flush()              {}
func (w *tape) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *tape) read() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// A quiet stream is kept alive by comments, and ends when its token does.
func TestQuietStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		id, secret := h.token(`["read"]`)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, "GET", "/v1/events", nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		w := &tape{header: http.Header{}}
		ended := make(chan struct{})
		go func() { defer close(ended); h.handler.ServeHTTP(w, r) }()
		synctest.Wait()
		if got := strings.Count(w.read(), ": "); got != 1 {
			t.Fatalf("the stream did not begin: %q", w.read())
		}
		time.Sleep(21 * time.Second)
		if got := strings.Count(w.read(), ": nothing new\n\n"); got != 5 {
			t.Errorf("%d comments in 21 s", got)
		}
		h.ok(204, "DELETE", "/v1/tokens/"+id, "")
		time.Sleep(6 * time.Second)
		select {
		case <-ended:
		default:
			t.Error("the stream outlives its token")
		}
	})
}
