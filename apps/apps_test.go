package apps_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"openbot/apps"
	"openbot/apps/appstest"
	"openbot/domain"
)

const (
	organization domain.OrganizationID = "org_1"
	connection   domain.ConnectionID   = "con_1"
)

// TestMain makes the test binary an App of its own when it is started as one.
func TestMain(m *testing.M) {
	if mode := os.Getenv(commandMode); mode != "" {
		commandMain(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// newApps makes Apps that may reach the loopback address, where test Apps live.
func newApps(t *testing.T, change func(*apps.Options)) *apps.Apps {
	t.Helper()
	options := apps.Options{AllowPrivate: true, CallTimeout: 20 * time.Second}
	if change != nil {
		change(&options)
	}
	a := apps.New(options)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func yes() error { return nil }

func call(tool, arguments string) domain.AppCall {
	return domain.AppCall{Tool: tool, Arguments: json.RawMessage(arguments)}
}

// appError fails unless err is an *AppError of this kind.
func appError(t *testing.T, err error, noAnswer bool) *domain.AppError {
	t.Helper()
	var app *domain.AppError
	if !errors.As(err, &app) {
		t.Fatalf("the error is %T %v, want an *AppError", err, err)
	}
	if app.NoAnswer != noAnswer {
		t.Fatalf("NoAnswer is %v, want %v: %v", app.NoAnswer, noAnswer, app)
	}
	return app
}

func TestCallSendsTheExactArguments(t *testing.T) {
	app := appstest.New(t)
	a := newApps(t, nil)
	arguments := `{"b":12345678901234567890,"a":"<&> \u00fc ü","n":1.50}`
	result, err := a.Call(t.Context(), app.Endpoint(connection, organization), call(appstest.Echo, arguments), yes)
	if err != nil {
		t.Fatal(err)
	}
	if result.Text != arguments || result.IsError || result.Cut {
		t.Errorf("the result is %+v", result)
	}
	receipts := app.Receipts()
	if len(receipts) != 1 || string(receipts[0].Arguments) != arguments {
		t.Errorf("the App received %q, want exactly one %s", receipts, arguments)
	}
}

func TestCallRefusesArgumentsThatAreNoObject(t *testing.T) {
	app := appstest.New(t)
	a := newApps(t, nil)
	for _, arguments := range []string{`[]`, `1`, `null`, `{`, `{} {}`} {
		_, err := a.Call(t.Context(), app.Endpoint(connection, organization), call(appstest.Echo, arguments), yes)
		appError(t, err, false)
	}
	if n := app.Count(""); n != 0 {
		t.Errorf("%d calls went out", n)
	}
}

func TestReadyIsAskedLastAndStopsTheCall(t *testing.T) {
	app := appstest.New(t)
	a := newApps(t, nil)
	no := errors.New("the grant was taken back")
	for range 3 { // on a new connection and on a kept one
		_, err := a.Call(t.Context(), app.Endpoint(connection, organization), call(appstest.Echo, `{}`), func() error { return no })
		if err != no {
			t.Fatalf("the error is %v, want that of ready itself", err)
		}
	}
	refuse := func() error { return no }
	if _, err := a.ReadResource(t.Context(), app.Endpoint(connection, organization), "note:///x", refuse); err != no {
		t.Errorf("reading a resource gives %v, want the error of ready itself", err)
	}
	if _, err := a.GetPrompt(t.Context(), app.Endpoint(connection, organization), "x", nil, refuse); err != no {
		t.Errorf("reading a prompt gives %v, want the error of ready itself", err)
	}
	if n := app.Count(""); n != 0 {
		t.Fatalf("%d calls went out", n)
	}
	if _, err := a.Call(t.Context(), app.Endpoint(connection, organization), call(appstest.Echo, `{}`), yes); err != nil {
		t.Fatalf("after a refusal the next call fails: %v", err)
	}
	if n := app.Count(""); n != 1 {
		t.Errorf("%d calls went out, want 1", n)
	}
}

func TestReadyIsNotAskedWhenTheAppIsDead(t *testing.T) {
	app := appstest.New(t)
	endpoint := app.Endpoint(connection, organization)
	app.Close()
	a := newApps(t, nil)
	var asked atomic.Int32
	_, err := a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), func() error { asked.Add(1); return nil })
	if message := appError(t, err, false).Message; !strings.Contains(message, "refused the connection") {
		t.Errorf("the message is %q", message)
	}
	if asked.Load() != 0 {
		t.Error("ready was asked although nothing could be sent")
	}
}

func TestCutConnectionIsOneReceiptAndNoAnswer(t *testing.T) {
	app := appstest.New(t)
	a := newApps(t, nil)
	endpoint := app.Endpoint(connection, organization)
	// The second call travels on a connection that was used before, which is where
	// net/http would send again.
	if _, err := a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes); err != nil {
		t.Fatal(err)
	}
	app.Cut(appstest.SendEmail, true)
	_, err := a.Call(t.Context(), endpoint, call(appstest.SendEmail, `{"to":"ops@example.test"}`), yes)
	appError(t, err, true)
	app.Cut(appstest.SendEmail, false)
	if _, err := a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes); err != nil {
		t.Fatalf("after the cut the next call fails: %v", err)
	}
	if n := app.Count(appstest.SendEmail); n != 1 {
		t.Errorf("the App received the call %d times, want once", n)
	}
}

func TestAnIdempotencyKeyDoesNotMakeNetHTTPSendTwice(t *testing.T) {
	app := appstest.New(t)
	sealer, err := apps.NewSealer(strings.Repeat("k", 32))
	if err != nil {
		t.Fatal(err)
	}
	a := newApps(t, func(o *apps.Options) { o.Sealer = sealer })
	endpoint := app.Endpoint(connection, organization)
	endpoint.Sealed = seal(t, sealer, domain.AppSecrets{Headers: map[string]string{"Idempotency-Key": "k1", "X-Idempotency-Key": "k1"}})
	if _, err := a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes); err != nil {
		t.Fatal(err)
	}
	app.Cut(appstest.SendEmail, true)
	_, err = a.Call(t.Context(), endpoint, call(appstest.SendEmail, `{"to":"ops@example.test"}`), yes)
	appError(t, err, true)
	if n := app.Count(appstest.SendEmail); n != 1 {
		t.Errorf("the App received the call %d times, want once", n)
	}
}

func seal(t *testing.T, sealer *apps.Sealer, secrets domain.AppSecrets) []byte {
	t.Helper()
	plain, err := json.Marshal(secrets)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := sealer.Seal(plain, organization, string(connection))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestTimeoutAfterTheSendIsNoAnswer(t *testing.T) {
	app := appstest.New(t)
	release := app.Block(appstest.SendEmail)
	defer release()
	a := newApps(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		_, _ = app.Await(t.Context(), 1)
		cancel(nil)
	}()
	_, err := a.Call(ctx, app.Endpoint(connection, organization), call(appstest.SendEmail, `{"to":"ops@example.test"}`), yes)
	appError(t, err, true)
	if n := app.Count(""); n != 1 {
		t.Errorf("%d receipts, want 1", n)
	}
}

func TestAFailedCallLeavesTheOthersAlone(t *testing.T) {
	app := appstest.New(t)
	release := app.Block(appstest.SendEmail)
	a := newApps(t, nil)
	endpoint := app.Endpoint(connection, organization)
	done := make(chan error, 1)
	go func() {
		_, err := a.Call(t.Context(), endpoint, call(appstest.SendEmail, `{"to":"ops@example.test"}`), yes)
		done <- err
	}()
	if _, err := app.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	app.Cut(appstest.ReadThing, true)
	_, err := a.Call(t.Context(), endpoint, call(appstest.ReadThing, `{}`), yes)
	appError(t, err, true)
	endpoint.Revision++ // a new session for the next call
	if _, err := a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-done; err != nil {
		t.Errorf("the call that was out failed: %v", err)
	}
}

func TestAForgottenSessionIsRenewedBeforeACall(t *testing.T) {
	app := appstest.New(t)
	a := newApps(t, nil)
	endpoint := app.Endpoint(connection, organization)
	if _, err := a.Look(t.Context(), endpoint); err != nil {
		t.Fatal(err)
	}
	app.Forget()
	if _, err := a.Look(t.Context(), endpoint); err != nil {
		t.Fatalf("a look at an App that was restarted fails: %v", err)
	}
	if _, err := a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes); err != nil {
		t.Errorf("a call after the look fails: %v", err)
	}
}

func TestAppErrorsAndBadResults(t *testing.T) {
	app := appstest.New(t)
	a := newApps(t, func(o *apps.Options) { o.ResultLimit = 1000 })
	endpoint := app.Endpoint(connection, organization)

	app.Fail(appstest.Echo, "no such\x07 \u202ething")
	_, err := a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes)
	if message := appError(t, err, false).Message; message != "The App refused the call: no such thing" {
		t.Errorf("the message is %q", message)
	}

	result, err := a.Call(t.Context(), endpoint, call(appstest.SendEmail, `{}`), yes)
	if err != nil || !result.IsError {
		t.Errorf("a result that says it failed gives %+v, %v", result, err)
	}

	app.Huge(appstest.Echo, 5000)
	result, err = a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes)
	if err != nil || !result.Cut || !strings.HasSuffix(result.Text, "[cut: 4000 of 5000 bytes are not shown]") {
		t.Errorf("a long result gives %q, cut %v, %v", result.Text, result.Cut, err)
	}

	app.Huge(appstest.Echo, 9<<20)
	_, err = a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes)
	if message := appError(t, err, false).Message; !strings.Contains(message, "8 MiB") {
		t.Errorf("the message is %q", message)
	}
	if _, err := a.Look(t.Context(), endpoint); err != nil {
		t.Errorf("after a huge answer a look fails: %v", err)
	}
}

func TestLookFindsToolsAndItsDigestIgnoresTheOrder(t *testing.T) {
	app := appstest.New(t)
	a := newApps(t, nil)
	endpoint := app.Endpoint(connection, organization)
	first, err := a.Look(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Tools) != 3 || first.Name != "appstest" || len(first.Skipped) != 0 {
		t.Fatalf("the look is %+v", first)
	}
	app.Forget()
	again, err := a.Look(t.Context(), endpoint)
	if err != nil || again.Digest != first.Digest {
		t.Errorf("the digest of the same tools changed (%v)", err)
	}
	app.Tool(appstest.Echo, "Gives back what it got.", "", nil)
	changed, err := a.Look(t.Context(), endpoint)
	if err != nil || changed.Digest == first.Digest {
		t.Errorf("a new description keeps the digest (%v)", err)
	}
}

func TestSecretsGoToTheAppAndNowhereElse(t *testing.T) {
	const secret = "s3cret-token-value"
	var got atomic.Value
	inner := appstest.New(t)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		http.Error(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"bad token `+secret+`"}}`, http.StatusBadRequest)
	})
	sealer, err := apps.NewSealer(strings.Repeat("k", 32))
	if err != nil {
		t.Fatal(err)
	}
	a := newApps(t, func(o *apps.Options) {
		o.Sealer = sealer
		o.InProcess = map[string]http.Handler{"echo.test": handler}
	})
	endpoint := inner.Endpoint(connection, organization)
	endpoint.URL = "http://echo.test/mcp?key=" + secret
	endpoint.Sealed = seal(t, sealer, domain.AppSecrets{Headers: map[string]string{"Authorization": "Bearer " + secret}})
	_, err = a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes)
	if text := appError(t, err, false).Error(); strings.Contains(text, secret) {
		t.Errorf("the error holds the secret: %s", text)
	}
	if got.Load() != "Bearer "+secret {
		t.Errorf("the App got %q", got.Load())
	}
	endpoint.Organization = "org_2"
	_, err = a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes)
	appError(t, err, false)
}
