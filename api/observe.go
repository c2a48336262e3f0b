package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"openbot/domain"
)

const (
	// streamWrite is how long one write of a stream may take before its reader counts
	// as gone.
	streamWrite = 15 * time.Second
	// streamCheck is how often the token of an open stream is looked at again.
	streamCheck = 5 * time.Second
)

var errStreamEnds = errors.New("the token of the stream is not good any more")

// EventData is what stands in the data of one event, beside what changed.
type EventData struct {
	Sequence int64         `json:"sequence" doc:"Also the id of the event; give the last one as afterSequence or Last-Event-ID to go on without loss or repeat."`
	At       int64         `json:"at"`
	Kind     string        `json:"kind" enum:"message,reminder,notice,turn.status,call.status,request.pending,request.decided,request.verdict,delegation.status" doc:"Also the event name."`
	Subject  string        `json:"subject" doc:"The ID of what changed."`
	Chat     domain.ChatID `json:"chat"`
}

func (s *server) observeRoutes() {
	register(s, route{id: "observeChat", method: http.MethodGet, path: "/v1/chats/{chat}/observe", tag: "Chats",
		summary: "The events of a Chat, as they come", about: streamAbout, role: domain.RoleRead, status: 200, stream: true, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *struct {
			ChatPath
			Resumed
		}) (*huma.StreamResponse, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return s.resume(p, in.Resumed, func(ctx context.Context, after int64, send func([]domain.Event) error, quiet func() error) error {
				return s.Engine.ObserveChat(ctx, p, id, after, send, quiet)
			})
		})
	register(s, route{id: "observeEvents", method: http.MethodGet, path: "/v1/events", tag: "Requests",
		summary: "Everything that concerns you, as it comes", about: streamAbout, role: domain.RoleRead, status: 200, stream: true},
		func(ctx context.Context, p domain.Principal, in *struct {
			AfterSequence int64  `query:"afterSequence" default:"-1" minimum:"-1" doc:"Only what comes after it; left out or -1: what comes from now on."`
			LastEventID   string `header:"Last-Event-ID" doc:"Wins over afterSequence."`
		}) (*huma.StreamResponse, error) {
			after, err := resumeAfter(in.AfterSequence, in.LastEventID)
			if err != nil {
				return nil, err
			}
			return s.stream(p, func(ev domain.Event) int64 { return ev.Position },
				func(ctx context.Context, send func([]domain.Event) error, quiet func() error) error {
					return s.Engine.ObserveMember(ctx, p, after, send, quiet)
				}), nil
		})
}

const streamAbout = "Server-Sent Events from the saved log, then live: event is the kind, id the sequence, data an EventData with what changed."

// Resumed says where a reader of one numbered log goes on.
type Resumed struct {
	AfterSequence int64  `query:"afterSequence" minimum:"0" doc:"Only what comes after it; left out: everything."`
	LastEventID   string `header:"Last-Event-ID" doc:"Wins over afterSequence."`
}

// resume answers with the events of one numbered log after where the reader goes on.
func (s *server) resume(p domain.Principal, from Resumed,
	run func(ctx context.Context, after int64, send func([]domain.Event) error, quiet func() error) error) (*huma.StreamResponse, error) {
	after, err := resumeAfter(from.AfterSequence, from.LastEventID)
	if err != nil {
		return nil, err
	}
	return s.stream(p, func(ev domain.Event) int64 { return ev.Sequence },
		func(ctx context.Context, send func([]domain.Event) error, quiet func() error) error {
			return run(ctx, after, send, quiet)
		}), nil
}

func resumeAfter(after int64, last string) (int64, error) {
	if last == "" {
		return after, nil
	}
	n, err := strconv.ParseInt(last, 10, 64)
	if err != nil || n < 0 {
		return 0, invalid("Last-Event-ID", "must be the id of an event")
	}
	return n, nil
}

// stream answers with events until the reader goes, its token ends or the server
// stops. What fails before the first byte is answered as a problem.
func (s *server) stream(p domain.Principal, place func(domain.Event) int64,
	run func(ctx context.Context, send func([]domain.Event) error, quiet func() error) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) { s.streamTo(hc.Context(), humagin.Unwrap(hc), place, run) }}
}

func (s *server) streamTo(ctx context.Context, gc *gin.Context, place func(domain.Event) int64,
	run func(ctx context.Context, send func([]domain.Event) error, quiet func() error) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.Stopping, cancel)()
	w := &streamWriter{gc: gc, control: http.NewResponseController(gc.Writer), checked: time.Now()}
	w.check = func() error {
		again, err := s.Engine.Authenticate(ctx, infoFrom(ctx).secret)
		if domain.IsCode(err, domain.CodeUnauthenticated) || err == nil && !again.HasRole(domain.RoleRead) {
			return errStreamEnds
		}
		return nil
	}
	s.metrics.streams.Inc()
	defer s.metrics.streams.Dec()
	err := run(ctx, func(events []domain.Event) error { return w.events(events, place) }, w.quiet)
	if err != nil && !w.begun {
		s.refuse(gc, s.failure(ctx, err))
	}
}

// streamWriter writes Server-Sent Events. It begins the answer with the first
// thing to write.
type streamWriter struct {
	gc      *gin.Context
	control *http.ResponseController
	begun   bool
	check   func() error
	checked time.Time
}

func (w *streamWriter) quiet() error { return w.write([]byte(": nothing new\n\n")) }

func (w *streamWriter) events(events []domain.Event, place func(domain.Event) int64) error {
	var b bytes.Buffer
	for _, ev := range events {
		sequence := place(ev)
		fmt.Fprintf(&b, "event: %s\nid: %d\ndata: ", ev.Kind, sequence)
		b.Write(eventData(ev, sequence))
		b.WriteString("\n\n")
	}
	return w.write(b.Bytes())
}

func (w *streamWriter) write(b []byte) error {
	if time.Since(w.checked) >= streamCheck {
		if err := w.check(); err != nil {
			return err
		}
		w.checked = time.Now()
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(streamWrite)) // not every writer has one
	if !w.begun {
		w.begun = true
		_ = w.control.SetReadDeadline(time.Time{}) // that of the server would end a quiet stream
		h := w.gc.Writer.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no") // proxies that buffer would hold events back
		w.gc.Writer.WriteHeader(http.StatusOK)
	}
	if _, err := w.gc.Writer.Write(b); err != nil {
		return err
	}
	return w.control.Flush()
}

// eventData is one line of JSON: the fields that every event has, then what
// changed.
func eventData(ev domain.Event, sequence int64) []byte {
	head := encode(EventData{Sequence: sequence, At: ms(ev.At), Kind: ev.Kind, Subject: ev.Subject, Chat: ev.Chat})
	var data bytes.Buffer
	if json.Compact(&data, ev.Data) != nil || data.Len() <= 2 || data.Bytes()[0] != '{' {
		return head
	}
	head[len(head)-1] = ','
	return append(head, data.Bytes()[1:]...)
}
