package main

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/apps/appstest"
	"openbot/config"
)

const rootOfProxy = "/tools/openbot"

// behindProxy starts the program behind a reverse proxy that shows it under a path and
// sends its own name as Host. It gives the address of the proxy without that path, and a
// client of the API through it.
func behindProxy(t *testing.T, strips bool) (string, *client) {
	t.Helper()
	var to *url.URL
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		if strips {
			r.Out.URL.Path = strings.TrimPrefix(r.Out.URL.Path, rootOfProxy)
			r.Out.URL.RawPath = strings.TrimPrefix(r.Out.URL.RawPath, rootOfProxy)
		}
		r.SetURL(to)
		r.Out.Header.Set("X-Forwarded-For", "198.51.100.7")
	}})
	t.Cleanup(proxy.Close)
	cfg := backend{}.settings(t.TempDir())
	cfg.PublicURL = proxy.URL + rootOfProxy + "/"
	cfg.TrustedProxies = "127.0.0.0/8, ::1"
	direct, _, _ := startServe(t, cfg)
	var err error
	to, err = url.Parse(direct.base)
	must(t, err)
	return proxy.URL, &client{t: t, base: proxy.URL + rootOfProxy, token: direct.token}
}

// browser is a person's browser on one site, which sends no Sec-Fetch-Site: outside
// localhost browsers do so over TLS only.
type browser struct {
	*http.Client
	t    *testing.T
	site string
}

func newBrowser(t *testing.T, site string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	return &browser{t: t, site: site, Client: &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(r.URL.Path, rootOfProxy) {
			t.Errorf("a redirect leads to %s", r.URL)
		}
		return nil
	}}}
}

func (b *browser) see(path string) (int, string) {
	b.t.Helper()
	response, err := b.Get(b.site + path)
	must(b.t, err)
	return response.StatusCode, pageOf(b.t, response)
}

// send sends a form from a page of the given site.
func (b *browser) send(path, from string, form url.Values) (int, string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), "POST", b.site+path, strings.NewReader(form.Encode()))
	must(b.t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", from)
	response, err := b.Do(request)
	must(b.t, err)
	return response.StatusCode, pageOf(b.t, response)
}

var (
	addresses = regexp.MustCompile(` (?:href|src|action|formaction|hx-get|hx-post|hx-sse:connect|data-root)="([^"]*)"`)
	formToken = regexp.MustCompile(`name="form_token" value="([^"]+)"`)
)

// Behind a proxy and under a path everything works: each link and form of each page, the
// cookie, the stream, the API with its pages, and the queue's own pages. Whether the
// proxy takes the path away makes no difference.
func TestBehindAProxyUnderAPath(t *testing.T) {
	for name, strips := range map[string]bool{"the proxy takes the path away": true, "the proxy leaves the path": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site, c := behindProxy(t, strips)
			app := appstest.New(t)
			c.connect("desk", app.URL)
			bot := c.call("GET", "/v1/me", nil, 200)["mainBot"].(string)
			c.call("POST", "/v1/rules", object{"bot": bot, "text": "Never delete_things."}, 201)
			c.call("POST", "/v1/triggers", object{"name": "Signals", "kind": "webhook", "bot": bot, "task": "Look."}, 201)
			chat := c.newChat()
			turn := c.say(chat, `/call desk__send_email {"to":"ops@example.test"}`+"\n"+`/call openbot_delegate {"task":"/say Done.","limits":{"timeMs":60000}}`)
			c.awaitTurn(chat, turn, status("Waiting"))
			request := c.pending(turn)[0]

			b := newBrowser(t, site)
			if status, page := b.see(rootOfProxy + "/"); status != 401 || !strings.Contains(page, `action="`+rootOfProxy+`/login"`) {
				t.Fatalf("the first page gave %d:\n%s", status, page)
			}
			if status, _ := b.send(rootOfProxy+"/login", "https://elsewhere.example", url.Values{"token": {c.token}}); status != 403 {
				t.Errorf("a form of another site gave %d", status)
			}
			if status, page := b.send(rootOfProxy+"/login", site, url.Values{"token": {c.token}}); status != 200 || !strings.Contains(page, "send_email") {
				t.Fatalf("signing in gave %d:\n%s", status, page)
			}
			here, err := url.Parse(site)
			must(t, err)
			if got := b.Jar.Cookies(here); len(got) != 0 {
				t.Errorf("the cookie goes to the whole site: %v", got)
			}

			b.followsEverything()
			b.monitors(site, c)
			b.answers(site, c, request["id"].(string))
			c.awaitTurn(chat, turn, status("Completed"))

			for range 2 {
				c.newChat()
			}
			link := headerOf(t, c, "/v1/chats?limit=1", "Link")
			next, _, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
			if status, _ := b.seeAs(c, next); !strings.HasPrefix(next, rootOfProxy+"/v1/chats?") || status != 200 {
				t.Errorf("the next page is at %q, which gave %d", link, status)
			}
			if servers := c.call("GET", "/openapi.json", nil, 200)["servers"]; servers.([]any)[0].(object)["url"] != rootOfProxy {
				t.Errorf("the OpenAPI document names %v", servers)
			}
			c.poll("the audit log names the caller behind the proxy", 20*time.Second, func() bool {
				return slices.ContainsFunc(c.list("/v1/audit?limit=200"), func(e object) bool { return e["address"] == "198.51.100.7" })
			})
		})
	}
}

// followsEverything visits every address that a page gives, from the inbox on, and its
// assets. None may lead out of the path of the proxy.
func (b *browser) followsEverything() {
	b.t.Helper()
	seen, waiting := map[string]bool{}, []string{rootOfProxy + "/", rootOfProxy + "/docs"}
	for len(waiting) > 0 && len(seen) < 400 {
		path := waiting[0]
		waiting = waiting[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		status, page := b.see(path)
		if status != 200 {
			b.t.Errorf("%s gave %d", path, status)
		}
		if strings.Contains(path, "/static/") || strings.Contains(path, "/audit/export") {
			continue
		}
		for _, found := range addresses.FindAllStringSubmatch(page, -1) {
			address, _, _ := strings.Cut(strings.ReplaceAll(found[1], "&amp;", "&"), "#")
			switch {
			case address == "":
			case !strings.HasPrefix(address, rootOfProxy+"/"):
				b.t.Errorf("%s holds%s", path, found[0])
			case strings.Contains(found[0], "action=") || strings.Contains(found[0], "hx-post=") || strings.Contains(address, "/live?"):
			case strings.HasSuffix(address, "/monitoring/"): // its links are its own
			default:
				waiting = append(waiting, address)
			}
		}
	}
	for _, must := range []string{"/chats", "/work", "/apps", "/grants", "/rules", "/usage", "/audit", "/history", "/settings", "/tokens", "/triggers", "/openapi.json"} {
		if !seen[rootOfProxy+must] {
			b.t.Errorf("nothing leads to %s", must)
		}
	}
	if len(seen) < 25 {
		b.t.Errorf("only %d pages were found", len(seen))
	}
}

// monitors looks at the queue's own pages, as they look for themselves in a browser.
func (b *browser) monitors(site string, c *client) {
	b.t.Helper()
	status, page := b.see(rootOfProxy + "/monitoring")
	if status != 200 || !strings.Contains(page, rootOfProxy+`/monitoring`) {
		b.t.Fatalf("the queue's page gave %d:\n%s", status, page)
	}
	assets := regexp.MustCompile(`(?:src|href)="([^"]+\.(?:js|css)[^"]*)"`).FindAllStringSubmatch(page, -1)
	for _, a := range assets {
		if status, _ := b.see(a[1]); status != 200 || !strings.HasPrefix(a[1], rootOfProxy+"/monitoring/") {
			b.t.Errorf("the queue's page loads %s, which gave %d", a[1], status)
		}
	}
	if status, said := b.see(rootOfProxy + "/monitoring/api/queues"); len(assets) == 0 || status != 200 || !strings.Contains(said, `"queue":"turns"`) {
		b.t.Errorf("the queue's page has %d assets, its API gave %d: %s", len(assets), status, said)
	}
	const pause, resume = rootOfProxy + "/monitoring/api/queues/rest:pause", rootOfProxy + "/monitoring/api/queues/rest:resume"
	reader := newBrowser(b.t, site)
	read := c.call("POST", "/v1/tokens", object{"name": "reader", "scopes": []string{"read"}}, 201)["token"].(string)
	reader.send(rootOfProxy+"/login", site, url.Values{"token": {read}})
	for _, try := range []struct {
		by   *browser
		path string
		from string
		want int
	}{{b, pause, "https://elsewhere.example", 403}, {reader, pause, site, 405}, {b, pause, site, 204}, {b, resume, site, 204}} {
		if status, said := try.by.send(try.path, try.from, nil); status != try.want {
			b.t.Errorf("%s from %s gave %d, want %d: %s", try.path, try.from, status, try.want, said)
		}
	}
	if status, _ := reader.see(rootOfProxy + "/monitoring/api/queues"); status != 200 {
		b.t.Errorf("a reader looking at the queue gave %d", status)
	}
}

// answers answers a Request by its form, while a stream is open that tells of it.
func (b *browser) answers(site string, c *client, request string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	stream, err := http.NewRequestWithContext(ctx, "GET", site+rootOfProxy+"/live", nil)
	must(b.t, err)
	response, err := b.Do(stream)
	must(b.t, err)
	defer response.Body.Close()
	_, page := b.see(rootOfProxy + "/requests/" + request)
	token := formToken.FindStringSubmatch(page)
	if token == nil {
		b.t.Fatalf("the Request has no form:\n%s", page)
	}
	status, shown := b.send(rootOfProxy+"/requests/"+request, site, url.Values{"form_token": {token[1]}, "expected": {"0"}, "way": {"allow-once"}})
	if status != 200 || c.call("GET", "/v1/requests/"+request, nil, 200)["status"] != "allowed" {
		b.t.Fatalf("the answer gave %d:\n%s", status, shown)
	}
	told, piece := "", make([]byte, 4096)
	for !strings.Contains(told, "event: request.decided") {
		n, err := response.Body.Read(piece)
		must(b.t, err)
		told += string(piece[:n])
	}
}

func headerOf(t *testing.T, c *client, path, name string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", c.base+path, nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	response.Body.Close()
	return response.Header.Get(name)
}

// seeAs reads an address of the API with a token.
func (b *browser) seeAs(c *client, path string) (int, error) {
	status, _, err := (&client{t: b.t, base: b.site, token: c.token}).try("GET", path, nil)
	return status, err
}

// A path that is one of the server's own is refused at the start.
func TestAPathOfTheProxyThatIsOurOwnIsRefused(t *testing.T) {
	cfg := backend{}.settings(t.TempDir())
	cfg.PublicURL = "https://bots.example/v1/openbot"
	_, err := Open(t.Context(), Options{Config: cfg, Role: config.RoleServe, Logger: testLogger(t)})
	if err == nil || !strings.Contains(err.Error(), "OPENBOT_PUBLIC_URL") || !strings.Contains(err.Error(), "/openbot") {
		t.Errorf("it gave %v", err)
	}
}
