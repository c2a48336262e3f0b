package apps_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"openbot/apps"
	"openbot/domain"
)

// hostile is an App made of bare HTTP, which may answer whatever it likes.
type hostile struct {
	url string

	mu     sync.Mutex
	counts map[string]int
	answer map[string]http.HandlerFunc
}

type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type rpcKey struct{}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{counts: make(map[string]int), answer: make(map[string]http.HandlerFunc)}
	h.answer["initialize"] = result(`{"protocolVersion":"2025-11-25","serverInfo":{"name":"hostile","version":"1"},"capabilities":{"tools":{}}}`)
	h.answer["tools/list"] = result(`{"tools":[]}`)
	server := httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	h.url = server.URL
	return h
}

func (h *hostile) serve(w http.ResponseWriter, r *http.Request) {
	var message rpc
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &message)
	h.mu.Lock()
	h.counts[message.Method]++
	answer := h.answer[message.Method]
	h.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r.WithContext(context.WithValue(r.Context(), rpcKey{}, message)))
	case len(message.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	default:
		write(w, "application/json", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, message.ID)
	}
}

func (h *hostile) on(method string, answer http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer[method] = answer
}

func (h *hostile) count(method string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[method]
}

func (h *hostile) endpoint() domain.AppEndpoint {
	return domain.AppEndpoint{Connection: connection, Organization: organization, Revision: 1, Transport: domain.TransportHTTP, URL: h.url}
}

func write(w http.ResponseWriter, kind, format string, args ...any) {
	w.Header().Set("Content-Type", kind)
	_, _ = fmt.Fprintf(w, format, args...)
}

func idOf(r *http.Request) json.RawMessage { return r.Context().Value(rpcKey{}).(rpc).ID }

func result(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		write(w, "application/json", `{"jsonrpc":"2.0","id":%s,"result":%s}`, idOf(r), text)
	}
}

func raw(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { write(w, kind, "%s", text) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
}

func cutOff(head string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, head)
			_ = conn.Close()
		}
	}
}

func TestBadAnswersToACall(t *testing.T) {
	const text = `{"content":[{"type":"text","text":"fine"}]}`
	cases := []struct {
		name     string
		answer   http.HandlerFunc
		noAnswer bool
		message  string
	}{
		{"nothing", cutOff(""), true, "ended before it answered"},
		{"half a header", cutOff("HTTP/1.1 200 O"), true, "ended before it answered"},
		{"half a body", cutOff("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"json"), true, "ended before it answered"},
		{"half a stream", cutOff("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"json"), true, "ended before it answered"},
		{"a stream without a reply", raw("text/event-stream", "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"), true, "ended before it answered"},
		{"no JSON", raw("application/json", "<html>"), false, "not a reply"},
		{"empty JSON", raw("application/json", ""), false, "not a reply"},
		{"JSON of something else", raw("application/json", `{"ok":true}`), false, "not a reply"},
		{"a reply to another call", raw("application/json", `{"jsonrpc":"2.0","id":4711,"result":{}}`), false, "not a reply"},
		{"a request", raw("application/json", `{"jsonrpc":"2.0","id":1,"method":"ping"}`), false, "not a reply"},
		{"junk in a stream", raw("text/event-stream", "data: junk\n\n"), false, "not an MCP message"},
		{"a result of the wrong shape", result(`{"content":"text"}`), false, "not a valid MCP result"},
		{"a result of an unknown kind", result(`{"content":[{"type":"hologram"}]}`), false, "not a valid MCP result"},
		{"a page", raw("text/html", "<html>"), false, "not MCP"},
		{"nothing to say", status(http.StatusAccepted), false, "not MCP"},
		{"a question back", result(`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"sure?","requestedSchema":{"type":"object","properties":{}}}}}}`), false, "question back"},
		{"a redirect to itself", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}, false, "redirects are not followed"},
		{"status 400", status(400), false, "400 Bad Request"},
		{"status 401", status(401), false, "credentials"},
		{"status 404", status(404), false, "connects anew"},
		{"status 429", status(429), false, "429"},
		{"status 500", status(500), false, "did not say whether the call ran"},
		{"status 503", status(503), false, "did not say whether the call ran"},
		{"a gateway's time-out", status(504), true, "504 Gateway Timeout"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHostile(t)
			a := newApps(t, nil)
			h.on("tools/call", result(text))
			if got, err := a.Call(t.Context(), h.endpoint(), call("x", `{}`), yes); err != nil || got.Text != "fine" {
				t.Fatalf("a good answer gives %+v, %v", got, err)
			}
			h.on("tools/call", c.answer)
			_, err := a.Call(t.Context(), h.endpoint(), call("x", `{}`), yes)
			if message := appError(t, err, c.noAnswer).Message; !strings.Contains(message, c.message) {
				t.Errorf("the message is %q, want it to say %q", message, c.message)
			}
			if n := h.count("tools/call"); n != 2 {
				t.Errorf("the App received %d calls, want 2", n)
			}
			h.on("tools/call", result(text))
			if _, err := a.Call(t.Context(), h.endpoint(), call("x", `{}`), yes); err != nil {
				t.Errorf("the next call fails: %v", err)
			}
		})
	}
}

func TestEndlessAnswerIsDropped(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream"} {
		h := newHostile(t)
		h.on("tools/call", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, "data: ")
			block := strings.Repeat("x", 64<<10)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, block); err != nil {
					return
				}
			}
		})
		_, err := newApps(t, nil).Call(t.Context(), h.endpoint(), call("x", `{}`), yes)
		if message := appError(t, err, false).Message; !strings.Contains(message, "8 MiB") {
			t.Errorf("%s: the message is %q", kind, message)
		}
		if n := h.count("tools/call"); n != 1 {
			t.Errorf("%s: the App received %d calls, want 1", kind, n)
		}
	}
}

func TestEndlessListsEnd(t *testing.T) {
	h := newHostile(t)
	a := newApps(t, nil)
	n := 0
	h.on("tools/list", func(w http.ResponseWriter, r *http.Request) {
		n++
		result(fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"%d"}`, n, n))(w, r)
	})
	look, err := a.Look(t.Context(), h.endpoint())
	if err != nil {
		t.Fatal(err)
	}
	if len(look.Tools) != 50 || len(look.Skipped) != 1 || h.count("tools/list") != 50 {
		t.Errorf("%d tools, %d pages, skipped %q", len(look.Tools), h.count("tools/list"), look.Skipped)
	}
	h.on("tools/list", result(`{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"again"}`))
	look, err = a.Look(t.Context(), h.endpoint())
	if err != nil || len(look.Tools) != 1 {
		t.Errorf("a list in a circle gives %+v, %v", look, err)
	}
	var many []string
	for i := range 600 {
		many = append(many, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
	}
	h.on("tools/list", result(`{"tools":[`+strings.Join(many, ",")+`]}`))
	look, err = a.Look(t.Context(), h.endpoint())
	if err != nil || len(look.Tools) != 500 || len(look.Skipped) != 1 {
		t.Errorf("600 tools give %d, skipped %q, %v", len(look.Tools), look.Skipped, err)
	}
}

func TestOddTools(t *testing.T) {
	long := strings.Repeat("n", 300)
	cases := []struct{ name, schema, skipped string }{
		{"greet (with a space)", `{"type":"object"}`, ""},
		{strings.Repeat("n", 256), `{"type":"object"}`, ""},
		{"recursive", `{"type":"object","properties":{"child":{"$ref":"#"},"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"n":{"$ref":"#/$defs/n"}}}}}`, ""},
		{"draft7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{"type":"array","items":[{"type":"string"}]}},"additionalProperties":false}`, ""},
		{"lookahead", `{"type":"object","properties":{"mail":{"type":"string","pattern":"^(?!\\.)x$"},"pattern":{"type":"string"}}}`, ""},
		{long, `{"type":"object"}`, "longer than 256"},
		{`bell\u0007`, `{"type":"object"}`, "control characters"},
		{"", `{"type":"object"}`, "no name"},
		{"remote", `{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:1/schema.json"}}}`, "does not resolve"},
		{"file", `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "does not resolve"},
		{"dangling", `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, "does not resolve"},
		{"array", `{"type":"array"}`, "not of type"},
		{"typeless", `{}`, "not of type"},
		{"boolean", `true`, "not of type"},
		{"none", `null`, "not of type"},
		{"large", `{"type":"object","description":"` + strings.Repeat("d", 64<<10) + `"}`, "larger than 64 KiB"},
		{"wrong", `{"type":"object","properties":5}`, "does not resolve"},
		{"nul", `{"type":"object","description":"\u0000"}`, "NUL"},
		{"recursive", `{"type":"object"}`, "another tool of this name"},
		{"header", `{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, "headers"},
	}
	h := newHostile(t)
	var tools []string
	kept := 0
	for _, c := range cases {
		tools = append(tools, fmt.Sprintf(`{"name":"%s","description":"%s","inputSchema":%s}`, c.name, strings.Repeat("ü", 4000), c.schema))
		if c.skipped == "" {
			kept++
		}
	}
	tools = append(tools, "null")
	h.on("tools/list", result(`{"tools":[`+strings.Join(tools, ",")+`]}`))
	look, err := newApps(t, nil).Look(t.Context(), h.endpoint())
	if err != nil {
		t.Fatal(err)
	}
	if len(look.Tools) != kept {
		t.Errorf("%d tools are kept, want %d; skipped: %q", len(look.Tools), kept, look.Skipped)
	}
	skipped := strings.Join(look.Skipped, "\n")
	for _, c := range cases {
		if c.skipped != "" && !strings.Contains(skipped, c.skipped) {
			t.Errorf("nothing is skipped because of %q: %s", c.skipped, skipped)
		}
	}
	for _, tool := range look.Tools {
		if len(tool.Description) != 4096 {
			t.Errorf("the description of %q has %d bytes", tool.Name, len(tool.Description))
		}
		if tool.Name == "lookahead" && (strings.Contains(string(tool.Schema), "?!") || !strings.Contains(string(tool.Schema), `"pattern":{`)) {
			t.Errorf("the schema is %s", tool.Schema)
		}
	}
}

func TestListsThatTheAppDoesNotKnowAreEmpty(t *testing.T) {
	h := newHostile(t)
	h.on("initialize", result(`{"protocolVersion":"2025-06-18","serverInfo":{"name":"h","version":"1"},"capabilities":{"resources":{},"prompts":{}}}`))
	look, err := newApps(t, nil).Look(t.Context(), h.endpoint())
	if err != nil || len(look.Tools)+len(look.Resources)+len(look.Prompts) != 0 || h.count("tools/list") != 0 {
		t.Errorf("the look is %+v, %v", look, err)
	}
}

func TestADeadOrSlowAppHoldsUpNobody(t *testing.T) {
	// It takes connections and says nothing.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	good := newHostile(t)
	a := newApps(t, func(o *apps.Options) { o.LookTimeout = 300 * time.Millisecond })
	slow := domain.AppEndpoint{Connection: "con_slow", Organization: organization, Transport: domain.TransportHTTP,
		URL: "http://" + listener.Addr().String()}
	var wait sync.WaitGroup
	for range 5 {
		wait.Go(func() {
			_, err := a.Look(t.Context(), slow)
			if message := appError(t, err, false).Message; !strings.Contains(message, "in time") {
				t.Errorf("the message is %q", message)
			}
		})
	}
	for range 20 {
		if _, err := a.Look(t.Context(), good.endpoint()); err != nil {
			t.Error(err)
		}
	}
	wait.Wait()
}

func TestAnAppThatRefusesToStartASession(t *testing.T) {
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		message string
	}{
		"error": {func(w http.ResponseWriter, r *http.Request) {
			write(w, "application/json", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"not today"}}`, idOf(r))
		}, "not today"},
		"401":     {status(401), "credentials"},
		"junk":    {raw("application/json", "<html>"), "not answer as an MCP server"},
		"version": {result(`{"protocolVersion":"1999-01-01","serverInfo":{"name":"h","version":"1"},"capabilities":{}}`), "not answer as an MCP server"},
		"cut":     {cutOff(""), "cannot be reached"},
	} {
		h := newHostile(t)
		h.on("initialize", c.answer)
		_, err := newApps(t, nil).Call(t.Context(), h.endpoint(), call("x", `{}`), yes)
		if message := appError(t, err, false).Message; !strings.Contains(message, c.message) {
			t.Errorf("%s: the message is %q, want it to say %q", name, message, c.message)
		}
		if h.count("tools/call") != 0 {
			t.Errorf("%s: a call went out", name)
		}
	}
}
