package apps_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openbot/apps"
	"openbot/domain"
)

// inner is an App in this process that counts its sessions.
type inner struct {
	mu      sync.Mutex
	handler http.Handler
	opened  atomic.Int32 // initialize requests
	ended   atomic.Int32 // sessions that were said goodbye to
	calls   atomic.Int32
}

func (i *inner) restart() {
	server := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, &mcp.ServerOptions{})
	server.AddTool(&mcp.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			i.calls.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "fine"}}}, nil
		})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			if method == "initialize" {
				i.opened.Add(1)
			}
			return next(ctx, method, request)
		}
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{SessionTimeout: time.Minute})
}

// ServeHTTP speaks the older protocol, which has sessions.
func (i *inner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete {
		i.ended.Add(1)
	}
	if r.Header.Get("Mcp-Method") == "server/discover" {
		http.Error(w, "unknown", http.StatusNotFound)
		return
	}
	i.mu.Lock()
	handler := i.handler
	i.mu.Unlock()
	handler.ServeHTTP(w, r)
}

func newInner(t *testing.T) (*apps.Apps, *inner, domain.AppEndpoint) {
	t.Helper()
	i := &inner{}
	i.restart()
	a := apps.New(apps.Options{InProcess: map[string]http.Handler{"inner.test": i}})
	return a, i, domain.AppEndpoint{Connection: connection, Organization: organization, Revision: 1,
		Transport: domain.TransportHTTP, URL: "http://inner.test/mcp"}
}

func mustCall(t *testing.T, a *apps.Apps, endpoint domain.AppEndpoint) {
	t.Helper()
	if _, err := a.Call(t.Context(), endpoint, call("x", `{}`), yes); err != nil {
		t.Fatal(err)
	}
}

func TestSessionsAreKeptAndClosedWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, i, endpoint := newInner(t)
		defer func() { _ = a.Close() }()
		for range 3 {
			mustCall(t, a, endpoint)
		}
		if i.opened.Load() != 1 || i.ended.Load() != 0 {
			t.Fatalf("three calls opened %d sessions and ended %d", i.opened.Load(), i.ended.Load())
		}
		endpoint.Revision++
		mustCall(t, a, endpoint)
		synctest.Wait()
		if i.opened.Load() != 2 || i.ended.Load() != 1 {
			t.Fatalf("a new revision opened %d sessions and ended %d", i.opened.Load(), i.ended.Load())
		}
		time.Sleep(5*time.Minute + time.Second)
		synctest.Wait()
		if i.ended.Load() != 2 {
			t.Errorf("%d sessions ended after five idle minutes, want 2", i.ended.Load())
		}
	})
}

func TestACallAfterARestartOfTheAppIsSentOnceAndWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, i, endpoint := newInner(t)
		defer func() { _ = a.Close() }()
		mustCall(t, a, endpoint)
		i.restart()
		time.Sleep(10 * time.Second)
		mustCall(t, a, endpoint)
		if i.calls.Load() != 2 {
			t.Errorf("the App ran %d calls, want 2", i.calls.Load())
		}
		time.Sleep(2 * time.Minute) // the forgotten server gives up its session
	})
}

func TestManyCallersShareOneSession(t *testing.T) {
	a, i, endpoint := newInner(t)
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			if _, err := a.Call(t.Context(), endpoint, call("x", `{}`), yes); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if i.opened.Load() != 1 || i.calls.Load() != 50 {
		t.Errorf("%d sessions, %d calls; want 1 and 50", i.opened.Load(), i.calls.Load())
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if i.ended.Load() != 1 {
		t.Error("Close said no goodbye")
	}
	_, err := a.Call(t.Context(), endpoint, call("x", `{}`), yes)
	appError(t, err, false)
	if err := a.Close(); err != nil {
		t.Errorf("closing twice gives %v", err)
	}
}

func TestInProcessHandlerThatPanics(t *testing.T) {
	a := newApps(t, func(o *apps.Options) {
		o.InProcess = map[string]http.Handler{"inner.test": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("no") })}
	})
	_, err := a.Look(t.Context(), domain.AppEndpoint{Connection: connection, Organization: organization,
		Transport: domain.TransportHTTP, URL: "http://inner.test/mcp"})
	appError(t, err, false)
}
