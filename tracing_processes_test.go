//go:build unix

package main

import (
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"openbot/apps/appstest"
)

// The task carries the trace from one process to another: what the API began goes on in
// a worker, in the same trace, to the model and the App.
func TestOneTraceOverSeveralProcesses(t *testing.T) {
	b := newBackend(t)
	migrate(t, b)
	app := appstest.New(t)
	sink := newTraceSink(t)
	address, traced := freeAddress(t), "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL
	door := startProcess(t, b, "api", address, traced)
	worker := startProcess(t, b, "worker", "127.0.0.1:0", traced)
	sweeper := startProcess(t, b, "scheduler", "127.0.0.1:0", traced)
	c := &client{t: t, base: "http://" + address, token: testToken}
	c.awaitReady()
	c.connect("desk", app.URL)
	chat := c.newChat()
	turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`)
	c.awaitTurn(chat, turn, status("Waiting"))
	c.answer(c.pending(turn)[0], object{"decision": "allow"})
	c.awaitTurn(chat, turn, status("Completed"))
	for _, p := range []*process{door, worker, sweeper} {
		p.stop() // sends what is left
	}

	message := sink.find(t, nil, "POST /v1/chats/{chat}/messages")
	answer := sink.find(t, nil, "POST /v1/requests/{request}")
	first := sink.find(t, message.TraceId, "task turn.step")
	asked := sink.find(t, message.TraceId, "chat playbook")
	task := sink.find(t, answer.TraceId, "task call.send")
	tool := sink.find(t, answer.TraceId, "execute_tool send_email")
	again := sink.find(t, answer.TraceId, "chat playbook")
	for _, pair := range []struct{ below, above *otlp.Span }{{first, message}, {asked, first}, {task, answer}, {tool, task}, {again, task}} {
		if string(pair.below.ParentSpanId) != string(pair.above.SpanId) {
			t.Errorf("%s does not hang below %s", pair.below.Name, pair.above.Name)
		}
	}
	for span, want := range map[*otlp.Span]string{message: "api", answer: "api", first: "worker", asked: "worker", task: "worker", tool: "worker", again: "worker"} {
		if got := sink.roles[span]; got != want {
			t.Errorf("%s comes from the %s, want the %s", span.Name, got, want)
		}
	}
}
