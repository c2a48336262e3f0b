// Package appstest is an App for tests and load programs: an MCP server over HTTP
// that records every tool call that reaches it, in order and byte by byte, and can
// be told to be slow, rude, huge or gone. It owns no check of its own and never
// calls anybody.
package appstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openbot/domain"
)

// Tools that every App has at first.
const (
	// Echo gives its arguments back.
	Echo = "echo"
	// SendEmail pretends to send mail: {to, subject, body}.
	SendEmail = "send_email"
	// ReadThing pretends to read: {id}.
	ReadThing = "read_thing"
)

// Receipt is one tool call that reached the App.
type Receipt struct {
	Tool      string
	Arguments json.RawMessage // the exact bytes
	At        time.Time
}

// Reply is what a Handler answers.
type Reply struct {
	Text    string
	IsError bool
}

// Handler answers one call. An error becomes a JSON-RPC error.
type Handler func(ctx context.Context, receipt Receipt) (Reply, error)

// T is the part of testing.TB that New needs.
type T interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// App is a running recorder. Its methods are safe for concurrent use.
type App struct {
	// URL is where the App answers, e.g. "http://127.0.0.1:40000/mcp".
	URL string

	server *httptest.Server

	mu       sync.Mutex
	mcp      *mcp.Server
	handler  http.Handler
	tools    map[string]tool
	receipts []Receipt
	grown    chan struct{} // closed and made anew with each receipt
	cuts     map[string]bool
	stop     chan struct{}
}

type tool struct {
	tool    *mcp.Tool
	handler Handler
}

// New starts an App on a free loopback port and stops it with the test.
func New(t T) *App {
	t.Helper()
	app, err := Start("127.0.0.1:0")
	if err != nil {
		t.Fatalf("starting the test App: %v", err)
	}
	t.Cleanup(app.Close)
	return app
}

// Start starts an App on address, such as "127.0.0.1:0". Close stops it.
func Start(address string) (*App, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	a := &App{
		tools: make(map[string]tool), grown: make(chan struct{}),
		cuts: make(map[string]bool), stop: make(chan struct{}),
	}
	a.tools[Echo] = tool{newTool(Echo, "Gives its arguments back.", `{"type":"object"}`), echo}
	a.tools[SendEmail] = tool{newTool(SendEmail, "Sends an email.",
		`{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"},"body":{"type":"string"}},"required":["to"]}`), sendEmail}
	a.tools[ReadThing] = tool{newTool(ReadThing, "Reads a thing.",
		`{"type":"object","properties":{"id":{"type":"string"}}}`), readThing}
	a.restart()
	a.server = &httptest.Server{Listener: listener, Config: &http.Server{
		Handler: http.HandlerFunc(a.serve), ReadHeaderTimeout: 10 * time.Second}}
	a.server.Start()
	a.URL = a.server.URL + "/mcp"
	return a, nil
}

// Close stops the App. Calls that it holds end.
func (a *App) Close() {
	a.mu.Lock()
	select {
	case <-a.stop:
		a.mu.Unlock()
		return
	default:
	}
	close(a.stop)
	a.mu.Unlock()
	a.server.CloseClientConnections()
	a.endSessions()
	a.server.Close()
}

// Endpoint is how to reach the App, as the first revision of a Connection.
func (a *App) Endpoint(connection domain.ConnectionID, organization domain.OrganizationID) domain.AppEndpoint {
	return domain.AppEndpoint{Connection: connection, Organization: organization, Revision: 1,
		Transport: domain.TransportHTTP, URL: a.URL}
}

// Tool adds a tool, or changes one. schema is a JSON Schema of type object; "" takes
// any object. A nil handler echoes.
func (a *App) Tool(name, description, schema string, handler Handler) {
	if schema == "" {
		schema = `{"type":"object"}`
	}
	if handler == nil {
		handler = echo
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tools[name] = tool{newTool(name, description, schema), handler}
	a.register(name)
}

// Handle changes what a tool does and leaves its description alone.
func (a *App) Handle(name string, handler Handler) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tools[name]
	t.handler = handler
	a.tools[name] = t
}

// Remove takes a tool away.
func (a *App) Remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tools, name)
	a.mcp.RemoveTools(name)
}

// Block holds every call of a tool, after it was recorded, until release is called
// or its caller has gone.
func (a *App) Block(name string) (release func()) {
	gate := make(chan struct{})
	a.mu.Lock()
	before := a.tools[name].handler
	a.mu.Unlock()
	a.Handle(name, func(ctx context.Context, r Receipt) (Reply, error) {
		select {
		case <-gate:
			return before(ctx, r)
		case <-a.stop:
			return Reply{}, errors.New("the App was stopped")
		case <-ctx.Done():
			return Reply{}, ctx.Err()
		}
	})
	return sync.OnceFunc(func() { close(gate) })
}

// Fail answers every call of a tool with a JSON-RPC error.
func (a *App) Fail(name, message string) {
	a.Handle(name, func(context.Context, Receipt) (Reply, error) {
		return Reply{}, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message}
	})
}

// Huge answers every call of a tool with this many bytes of text.
func (a *App) Huge(name string, size int) {
	a.Handle(name, func(context.Context, Receipt) (Reply, error) {
		return Reply{Text: strings.Repeat("x", size)}, nil
	})
}

// Cut closes the connection of every call of a tool once it was recorded, without an
// answer; false ends that.
func (a *App) Cut(name string, cut bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cuts[name] = cut
}

// Forget drops every session, as an App does that was restarted.
func (a *App) Forget() {
	a.endSessions()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restart()
}

// Receipts gives every call so far, in the order in which they came.
func (a *App) Receipts() []Receipt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.receipts)
}

// Count is how many calls of a tool came; "" counts all.
func (a *App) Count(name string) int {
	n := 0
	for _, r := range a.Receipts() {
		if name == "" || r.Tool == name {
			n++
		}
	}
	return n
}

// Await waits until n calls came and gives them. It ends with the context.
func (a *App) Await(ctx context.Context, n int) ([]Receipt, error) {
	for {
		a.mu.Lock()
		receipts, grown := slices.Clone(a.receipts), a.grown
		a.mu.Unlock()
		if len(receipts) >= n {
			return receipts, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return receipts, fmt.Errorf("%d of %d calls came: %w", len(receipts), n, ctx.Err())
		}
	}
}

// serve records a call where its bytes arrive, before anything can go wrong with it.
func (a *App) serve(w http.ResponseWriter, request *http.Request) {
	a.mu.Lock()
	handler := a.handler
	a.mu.Unlock()
	if request.Method == http.MethodPost {
		data, err := io.ReadAll(http.MaxBytesReader(w, request.Body, 16<<20))
		if err != nil {
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
			return
		}
		request.Body = io.NopCloser(bytes.NewReader(data))
		if a.record(data) {
			panic(http.ErrAbortHandler)
		}
	}
	handler.ServeHTTP(w, request)
}

func (a *App) record(data []byte) (cut bool) {
	var call struct {
		Method string `json:"method"`
		Params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(data, &call) != nil || call.Method != "tools/call" {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.receipts = append(a.receipts, Receipt{Tool: call.Params.Name, Arguments: call.Params.Arguments, At: time.Now()})
	close(a.grown)
	a.grown = make(chan struct{})
	return a.cuts[call.Params.Name]
}

// restart makes a server without sessions. a.mu is held, except at the start.
func (a *App) restart() {
	a.mcp = mcp.NewServer(&mcp.Implementation{Name: "appstest", Version: "1"}, nil)
	for name := range a.tools {
		a.register(name)
	}
	server := a.mcp
	a.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

func (a *App) endSessions() {
	a.mu.Lock()
	server := a.mcp
	a.mu.Unlock()
	for session := range server.Sessions() {
		_ = session.Close()
	}
}

func (a *App) register(name string) {
	a.mcp.AddTool(a.tools[name].tool, func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		a.mu.Lock()
		handler := a.tools[name].handler
		a.mu.Unlock()
		reply, err := handler(ctx, Receipt{Tool: name, Arguments: request.Params.Arguments, At: time.Now()})
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: reply.Text}}, IsError: reply.IsError}, nil
	})
}

func newTool(name, description, schema string) *mcp.Tool {
	return &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}
}

func echo(_ context.Context, r Receipt) (Reply, error) {
	return Reply{Text: string(r.Arguments)}, nil
}

func sendEmail(_ context.Context, r Receipt) (Reply, error) {
	var mail struct {
		To string `json:"to"`
	}
	if err := json.Unmarshal(r.Arguments, &mail); err != nil || mail.To == "" {
		return Reply{Text: "the mail has no recipient", IsError: true}, nil
	}
	return Reply{Text: "sent to " + mail.To}, nil
}

func readThing(_ context.Context, r Receipt) (Reply, error) {
	var thing struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(r.Arguments, &thing)
	return Reply{Text: "thing " + thing.ID}, nil
}
