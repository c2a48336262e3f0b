package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"openbot/apps/appstest"
)

// traceSink is an OTLP receiver that keeps what it gets.
type traceSink struct {
	*httptest.Server
	mu    sync.Mutex
	raw   strings.Builder
	spans []*otlp.Span
	roles map[*otlp.Span]string // of the process that each span comes from
}

func newTraceSink(t *testing.T) *traceSink {
	t.Helper()
	r := &traceSink{roles: map[*otlp.Span]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var sent collector.ExportTraceServiceRequest
		if err != nil || req.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raw.Write(body)
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
				for _, s := range scope.Spans {
					for _, a := range resource.Resource.GetAttributes() {
						if a.Key == "openbot.role" {
							r.roles[s] = a.Value.GetStringValue()
						}
					}
				}
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// find gives the span of a name in a trace, or of any trace when that is nil.
func (r *traceSink) find(t *testing.T, trace []byte, name string) *otlp.Span {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, s := range r.spans {
		if trace == nil || string(s.TraceId) == string(trace) {
			names = append(names, s.Name)
			if s.Name == name {
				return s
			}
		}
	}
	t.Fatalf("trace %s has no span %q; it has %q", hex.EncodeToString(trace), name, names)
	return nil
}

func attributes(s *otlp.Span) map[string]any {
	found := map[string]any{}
	for _, a := range s.Attributes {
		switch {
		case a.Value.GetStringValue() != "":
			found[a.Key] = a.Value.GetStringValue()
		default:
			found[a.Key] = a.Value.GetIntValue()
		}
	}
	return found
}

// An answer leads in one trace from the API over the queue to the worker, the App and
// the model, and nothing that anybody wrote is in it.
func TestOneTraceFromTheAnswerToTheAppAndTheModel(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		sink := newTraceSink(t)
		app := appstest.New(t)
		cfg := b.settings(t.TempDir())
		cfg.TracesEndpoint = sink.URL
		c, _, stop := startServe(t, cfg)
		c.connect("desk", app.URL)
		chat := c.newChat()
		turn := c.say(chat, `/call desk__send_email {"to":"argumentword@example.test","openbot_reason":"reasonword"}`+"\n/say answerword")
		c.awaitTurn(chat, turn, status("Waiting"))
		request := c.pending(turn)[0]
		c.answer(request, object{"decision": "allow", "reason": "deciderword"})
		c.awaitTurn(chat, turn, status("Completed"))
		stop() // sends what is left

		message := sink.find(t, nil, "POST /v1/chats/{chat}/messages")
		sink.find(t, message.TraceId, "task turn.step")
		sink.find(t, message.TraceId, "chat playbook")

		answer := sink.find(t, nil, "POST /v1/requests/{request}")
		task := sink.find(t, answer.TraceId, "task call.send")
		tool := sink.find(t, answer.TraceId, "execute_tool send_email")
		model := sink.find(t, answer.TraceId, "chat playbook")
		if string(task.ParentSpanId) != string(answer.SpanId) || string(tool.ParentSpanId) != string(task.SpanId) {
			t.Error("the spans of the answer, its task and its call do not hang together")
		}
		for span, want := range map[*otlp.Span]map[string]any{
			tool: {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "send_email"},
			task: {"gen_ai.conversation.id": chat, "openbot.turn.id": turn, "gen_ai.tool.call.id": request["toolCallId"]},
			model: {"gen_ai.operation.name": "chat", "gen_ai.request.model": "playbook", "gen_ai.provider.name": "playbook",
				"openbot.model.purpose": "turn"},
			answer: {"http.request.method": "POST", "http.response.status_code": int64(200)},
		} {
			got := attributes(span)
			for key, value := range want {
				if got[key] != value {
					t.Errorf("%s has %s %v, want %v", span.Name, key, got[key], value)
				}
			}
		}
		if used := attributes(model)["gen_ai.usage.output_tokens"]; used == nil || used == int64(0) {
			t.Errorf("the model's span counts %v tokens", used)
		}
		for _, word := range []string{"argumentword", "reasonword", "answerword", "deciderword", testToken} {
			if strings.Contains(sink.raw.String(), word) {
				t.Errorf("the traces hold %q", word)
			}
		}
	})
}

// A receiver that is away holds nothing up, and a stop ends in time.
func TestTracesThatNobodyTakesHoldNothingUp(t *testing.T) {
	cfg := backend{name: "SQLite"}.settings(t.TempDir())
	sink := newTraceSink(t)
	cfg.TracesEndpoint = sink.URL
	sink.Close()
	c, _, stop := startServe(t, cfg)
	chat := c.newChat()
	c.awaitTurn(chat, c.say(chat, "Hello"), status("Completed"))
	stop()
}
