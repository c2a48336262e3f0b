package apps

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"openbot/domain"
)

const hostSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// hostTool is a tool of the host at an address, with its secret sealed.
func hostTool(t *testing.T, sealer *Sealer, endpoint string) domain.HostTool {
	t.Helper()
	tool := domain.HostTool{ID: "hook_1", Organization: "org_1", Name: "deploy", Endpoint: endpoint}
	sealed, err := sealer.Seal([]byte(hostSecret), tool.Organization, string(tool.ID))
	if err != nil {
		t.Fatal(err)
	}
	tool.Sealed = sealed
	return tool
}

// hosted starts a host that answers as handler does, and Apps that reach it.
func hosted(t *testing.T, handler http.HandlerFunc) (*Apps, domain.HostTool) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	sealer, err := NewSealer("a secret key of tests, 32 characters at least")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	a := New(Options{AllowPrivate: true, Sealer: sealer, CallTimeout: 3 * time.Second})
	a.hostTLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	t.Cleanup(func() { _ = a.Close() })
	return a, hostTool(t, sealer, server.URL+"/deploy")
}

var hostedCall = domain.Call{ID: "call_1", Chat: "chat_1", Turn: "turn_1", Arguments: json.RawMessage(`{"to":"production","n":12345678901234567890}`)}

func ready() error { return nil }

// The host can check that the call is ours, which call it is, and gets the exact
// arguments.
func TestACallOfAHostIsSigned(t *testing.T) {
	var body []byte
	var checked error
	a, tool := hosted(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		hook, err := standardwebhooks.NewWebhook(hostSecret)
		if err != nil {
			checked = err
			return
		}
		checked = hook.Verify(body, r.Header)
		io.WriteString(w, "deployed")
	})
	result, err := a.CallHost(t.Context(), tool, hostedCall, ready)
	if err != nil || result.Text != "deployed" {
		t.Fatalf("the call gave %v, %v", result, err)
	}
	if checked != nil {
		t.Errorf("the signature does not verify: %v", checked)
	}
	if !strings.Contains(string(body), `"arguments":{"to":"production","n":12345678901234567890}`) || !strings.Contains(string(body), `"call":"call_1"`) {
		t.Errorf("the host got %s", body)
	}
}

func TestACallOfAHostThatGoesWrong(t *testing.T) {
	refusal := errors.New("no longer wanted")
	var received atomic.Int64
	for name, test := range map[string]struct {
		handler  http.HandlerFunc
		ready    func() error
		noAnswer bool
		says     string
		received int64
	}{
		"an error status": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no such place", http.StatusUnprocessableEntity)
		}, ready, false, "422: no such place", 1},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, ready, false, "307", 1},
		"a connection that ends": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ready, true, "not known", 1},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // to return would be to answer
		}, ready, true, "not known", 1},
		"not wanted any more": {func(http.ResponseWriter, *http.Request) {}, func() error { return refusal }, false, refusal.Error(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			received.Store(0)
			a, tool := hosted(t, func(w http.ResponseWriter, r *http.Request) {
				received.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				test.handler(w, r)
			})
			_, err := a.CallHost(t.Context(), tool, hostedCall, test.ready)
			var failure *domain.AppError
			if errors.As(err, &failure) && failure.NoAnswer != test.noAnswer || err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("the call gave %v, want it to say %q", err, test.says)
			}
			if got := received.Load(); got != test.received {
				t.Errorf("the host got %d calls, want %d", got, test.received)
			}
		})
	}
}

// A host on a private address is not reached unless the operator allows it, and a
// host that is not there got nothing.
func TestAHostThatIsNotReached(t *testing.T) {
	a, tool := hosted(t, func(http.ResponseWriter, *http.Request) { t.Error("the host was reached") })
	a.options.AllowPrivate = false
	_, err := a.CallHost(context.Background(), tool, hostedCall, ready)
	var failure *domain.AppError
	if !errors.As(err, &failure) || failure.NoAnswer {
		t.Errorf("the call gave %v", err)
	}
	tool.Sealed = []byte("broken")
	if _, err = a.CallHost(context.Background(), tool, hostedCall, ready); !errors.As(err, &failure) || failure.NoAnswer {
		t.Errorf("with a broken secret the call gave %v", err)
	}
}
