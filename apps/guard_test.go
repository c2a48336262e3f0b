package apps_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"openbot/apps"
	"openbot/apps/appstest"
	"openbot/domain"
)

func TestCheckURL(t *testing.T) {
	for _, good := range []string{
		"https://app.example.com/mcp", "http://app.example.com:8080", "https://[2606:4700::1]/mcp?x=1", "http://127.0.0.1:1/mcp",
	} {
		if err := apps.CheckURL(good); err != nil {
			t.Errorf("%s is refused: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "app.example.com", "ftp://app.example.com", "file:///etc/passwd", "https://", "https:///mcp", "https://:443/mcp",
		"https://user:pass@app.example.com/", "https://app.example.com/#x", "https://app.example.com:0/", "https://app.example.com:99999/",
		"http://169.254.169.254/latest", "http://[fe80::1]/", "http://[::ffff:169.254.169.254]/", "http://0.0.0.0/", "http://[::]/",
		"http://[64:ff9b::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::1]/", "http://224.0.0.1/", "http://[fd00:ec2::254]/",
		"https://app.example.com/" + strings.Repeat("a", 2048), "https://app.example.com/\x00",
	} {
		err := apps.CheckURL(bad)
		if !domain.IsCode(err, domain.CodeInvalid) {
			t.Errorf("%q gives %v, want an error of code invalid", bad, err)
		}
	}
}

// The guard looks at every address that is dialled, after the name was resolved.
func TestGuardRefusesPrivateAddresses(t *testing.T) {
	app := appstest.New(t)
	_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(app.URL, "http://"), "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	a := newApps(t, func(o *apps.Options) { o.AllowPrivate = false })
	for _, host := range []string{
		"127.0.0.1", "localhost", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "[fd00::1]", "[fec0::1]", "[2001::1]",
	} {
		endpoint := app.Endpoint(connection, organization)
		endpoint.URL = "http://" + host + ":" + port + "/mcp"
		_, err := a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes)
		if message := appError(t, err, false).Message; !strings.Contains(message, "private or reserved") {
			t.Errorf("%s: the message is %q", host, message)
		}
	}
	if n := app.Count(""); n != 0 {
		t.Errorf("%d calls reached the App", n)
	}
}

func TestLinkLocalStaysRefusedWithPrivateNetworksAllowed(t *testing.T) {
	a := newApps(t, nil)
	for _, host := range []string{"169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "0.0.0.0"} {
		_, err := a.Look(t.Context(), domain.AppEndpoint{Connection: connection, Organization: organization,
			Transport: domain.TransportHTTP, URL: "http://" + host + "/mcp"})
		if message := appError(t, err, false).Message; !strings.Contains(message, "never reached") {
			t.Errorf("%s: the message is %q", host, message)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	app := appstest.New(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		var hits atomic.Int32
		redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hits.Add(1)
			http.Redirect(w, r, app.URL, status)
		}))
		a := newApps(t, nil)
		endpoint := app.Endpoint(connection, organization)
		endpoint.URL = redirect.URL
		_, err := a.Call(t.Context(), endpoint, call(appstest.Echo, `{}`), yes)
		if message := appError(t, err, false).Message; !strings.Contains(message, "redirects are not followed") {
			t.Errorf("%d: the message is %q", status, message)
		}
		if hits.Load() == 0 {
			t.Errorf("%d: the redirecting server was not asked", status)
		}
		redirect.Close()
	}
	if n := app.Count(""); n != 0 {
		t.Errorf("%d calls reached the App behind the redirect", n)
	}
}

func TestProxiesOfTheEnvironmentAreNotUsed(t *testing.T) {
	var hits atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	a := newApps(t, func(o *apps.Options) { o.AllowPrivate = false })
	_, err := a.Look(t.Context(), domain.AppEndpoint{Connection: connection, Organization: organization,
		Transport: domain.TransportHTTP, URL: "http://10.1.2.3/mcp"})
	appError(t, err, false)
	if hits.Load() != 0 {
		t.Error("the proxy was asked")
	}
}
