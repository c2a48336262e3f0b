package apps

import (
	"crypto/tls"
	"crypto/x509"
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

// told starts a receiver that answers as handler does, and Apps that reach it.
func told(t *testing.T, handler http.HandlerFunc) (*Apps, domain.HookMessage) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	sealer, err := NewSealer("a secret key of tests, 32 characters at least")
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := sealer.Seal([]byte(hostSecret), "org_1", "hook_1")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	a := New(Options{AllowPrivate: true, Sealer: sealer})
	a.hooks.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	t.Cleanup(func() { _ = a.Close() })
	return a, domain.HookMessage{ID: "dlv_1", Organization: "org_1", Owner: "hook_1", Sealed: sealed, URL: server.URL + "/in?key=hush",
		Payload: []byte(`{"type":"request.pending","n":12345678901234567890}`)}
}

// A receiver can check that the message is ours and tell a repeat; every try is signed at
// its own time.
func TestAMessageIsSigned(t *testing.T) {
	hook, err := standardwebhooks.NewWebhook(hostSecret)
	if err != nil {
		t.Fatal(err)
	}
	var got []http.Header
	a, message := told(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := hook.Verify(body, r.Header); err != nil {
			t.Errorf("the signature does not verify: %v", err)
		}
		if string(body) != `{"type":"request.pending","n":12345678901234567890}` || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %s %s", r.Method, r.Header.Get("Content-Type"), body)
		}
		forged := append([]byte(nil), body...)
		forged[2] = 'T'
		if hook.Verify(forged, r.Header) == nil {
			t.Error("the signature fits another body")
		}
		got = append(got, r.Header)
		w.WriteHeader(http.StatusAccepted)
	})
	for range 2 {
		status, err := a.Deliver(t.Context(), message)
		if err != nil || status != http.StatusAccepted {
			t.Fatalf("the try gave %d, %v", status, err)
		}
	}
	for _, h := range got {
		if h.Get("Webhook-Id") != "dlv_1" {
			t.Errorf("the ID is %q", h.Get("Webhook-Id"))
		}
	}
}

// What goes wrong is said in words, without the address and the secret, and nothing is
// sent anywhere else.
func TestAMessageThatIsNotTaken(t *testing.T) {
	var received atomic.Int64
	for name, test := range map[string]struct {
		handler  http.HandlerFunc
		change   func(a *Apps, m *domain.HookMessage)
		status   int
		says     string
		received int64
	}{
		"an error status": {handler: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }, status: 503, received: 1},
		"a redirect": {handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, status: 307, received: 1},
		"an endless answer": {handler: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, status: 200, received: 1},
		"a connection that ends": {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, says: "ended before it answered", received: 1},
		"a private address":      {change: func(a *Apps, _ *domain.HookMessage) { a.hooks = newNetwork(false) }, says: "private or reserved"},
		"nobody there":           {change: func(_ *Apps, m *domain.HookMessage) { m.URL = "http://127.0.0.1:1/?key=hush" }, says: "refused the connection"},
		"a strange certificate":  {change: func(a *Apps, _ *domain.HookMessage) { a.hooks.TLSClientConfig = nil }, says: "certificate is not trusted"},
		"another's secret":       {change: func(_ *Apps, m *domain.HookMessage) { m.Owner = "hook_2" }, says: "secret cannot be opened"},
		"a broken address":       {change: func(_ *Apps, m *domain.HookMessage) { m.URL = "http://[::hush" }, says: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			received.Store(0)
			a, message := told(t, func(w http.ResponseWriter, r *http.Request) {
				received.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				if test.handler != nil {
					test.handler(w, r)
				}
			})
			if test.change != nil {
				test.change(a, &message)
			}
			begun := time.Now()
			status, err := a.Deliver(t.Context(), message)
			var failure *domain.AppError
			if (err != nil) != errors.As(err, &failure) || status != test.status || (failure == nil) != (test.says == "") {
				t.Fatalf("the try gave %d, %v", status, err)
			}
			if failure != nil && (!strings.Contains(failure.Message, test.says) || strings.Contains(failure.Error(), "hush") || strings.Contains(failure.Error(), "whsec")) {
				t.Errorf("the error is %q", failure.Error())
			}
			if got := received.Load(); got != test.received || time.Since(begun) > 5*time.Second {
				t.Errorf("the receiver got %d messages in %s", got, time.Since(begun))
			}
		})
	}
}
