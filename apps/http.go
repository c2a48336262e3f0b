package apps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"openbot/domain"
)

const (
	// maxBody is how much of one HTTP answer is read, in bytes.
	maxBody = 8 << 20
	// maxErrorBody is how much of an HTTP error's body is read, in bytes.
	maxErrorBody = 64 << 10
	// idleConn is how long an unused connection is kept. It stays below the five
	// seconds after which common servers close theirs, because a call that meets a
	// connection just being closed has an unknown outcome.
	idleConn = 2 * time.Second
)

// tooBigText is for a call whose answer was cut off.
var tooBigText = fmt.Sprintf("The App answered with more than %d MiB; the answer was dropped", maxBody>>20)

// errTooBig is an answer over maxBody.
var errTooBig = fmt.Errorf("the answer is larger than %d MiB", maxBody>>20)

// newNetwork makes the transport under all HTTP Apps. It speaks HTTP/1.1 alone,
// since HTTP/2 resends by itself what a server declares unprocessed, and takes no
// proxy from the environment, since a proxy would dial past the guard.
func newNetwork(allowPrivate bool) *http.Transport {
	dialer := guardedDialer(allowPrivate)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: conn}, nil
		},
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        idleConn,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
}

// watchedConn knows whether a write was tried since it was last asked, and can be
// shut for writing, so that nothing leaves after it was said that nothing left.
type watchedConn struct {
	net.Conn

	mu    sync.Mutex
	shut  bool
	tried bool
}

func (c *watchedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.shut {
		c.mu.Unlock()
		return 0, errRefused
	}
	c.tried = true
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// watch starts to watch for a write.
func (c *watchedConn) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried = false
}

// seal shuts the connection for writing and reports whether a write was tried.
func (c *watchedConn) seal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = true
	return c.tried
}

func watched(conn net.Conn) (*watchedConn, bool) {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // *tls.Conn
		conn = wrapped.NetConn()
	}
	w, ok := conn.(*watchedConn)
	return w, ok
}

// door is the HTTP way to one App: it adds the Connection's headers, keeps to the
// one host, bounds what is read, and sends each call once.
type door struct {
	host      string
	headers   http.Header
	network   http.RoundTripper
	inProcess bool
	life      context.Context // ends with the session and takes its requests along

	mu     sync.Mutex
	status int  // the last HTTP status that was no success, or 0
	tooBig bool // an answer was cut off at maxBody
	gone   bool // the App no longer knows the session, or its credentials
}

// ownHeaders belong to HTTP and MCP; a Connection cannot set them.
var ownHeaders = []string{"Host", "Content-Length", "Content-Type", "Content-Encoding", "Accept",
	"Accept-Encoding", "Connection", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Expect",
	"Last-Event-Id", "Idempotency-Key", "X-Idempotency-Key"}

func secretHeaders(headers map[string]string) http.Header {
	out := make(http.Header, len(headers))
	for name, value := range headers {
		out.Set(name, value)
	}
	for name := range out {
		if strings.HasPrefix(name, "Mcp-") {
			out.Del(name)
		}
	}
	for _, name := range ownHeaders {
		out.Del(name)
	}
	return out
}

// RoundTrip implements http.RoundTripper.
func (d *door) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host != d.host {
		return nil, fmt.Errorf("a request to another host than the App's was refused")
	}
	ctx, cancel := context.WithCancel(request.Context())
	unhook := context.AfterFunc(d.life, cancel)
	release := func() { unhook(); cancel() }

	request = request.Clone(ctx)
	for name, values := range d.headers {
		request.Header[name] = values
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "openbot")
	}
	call, message, err := d.callIn(request)
	if err != nil {
		release()
		return nil, err
	}
	var response *http.Response
	if message != nil {
		response, err = d.fire(request, call, message)
	} else {
		response, err = d.network.RoundTrip(request)
	}
	if err != nil {
		release()
		return nil, err
	}
	tooBig := d.noteTooBig
	if call != nil { // it says nothing about the other calls of the session
		tooBig = func() { call.judge(badAnswer(tooBigText)) }
	}
	limited := &limitedBody{body: response.Body, left: maxBody, onLimit: tooBig, release: release}
	response.Body = limited
	if response.StatusCode/100 != 2 {
		d.noteStatus(response.StatusCode, request.Header.Get("Mcp-Session-Id") != "")
	}
	switch {
	case message != nil:
		return d.receive(response, limited, call)
	case call != nil && mediaType(response) == "text/event-stream":
		limited.listen = (&eventEar{shot: call}).hear // the stream of a call, resumed
	}
	return response, nil
}

// callIn finds out whether the request carries a call. It takes the body, which can
// then be sent only once: without GetBody net/http resends nothing.
func (d *door) callIn(request *http.Request) (*shot, *jsonrpc.Request, error) {
	call, ok := request.Context().Value(shotKey{}).(*shot)
	if !ok {
		return nil, nil, nil
	}
	if request.Method != http.MethodPost || request.Body == nil {
		return call, nil, nil
	}
	data, err := io.ReadAll(request.Body)
	_ = request.Body.Close()
	if err != nil {
		return nil, nil, err
	}
	request.Body, request.GetBody = io.NopCloser(bytes.NewReader(data)), nil
	request.ContentLength = int64(len(data))
	message, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil, nil, err
	}
	if _, isCall := shotOf(request.Context(), message); isCall {
		return call, message.(*jsonrpc.Request), nil
	}
	return nil, nil, nil
}

// fire sends the call once. ready is asked when the connection stands, with nothing
// of the request written yet.
func (d *door) fire(request *http.Request, call *shot, message *jsonrpc.Request) (*http.Response, error) {
	if err := call.take(message.ID); err != nil {
		return nil, err
	}
	if d.inProcess {
		if err := call.ask(); err != nil {
			return nil, err
		}
		call.leaves()
		return d.network.RoundTrip(request)
	}
	asked := false
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		conn, ok := watched(info.Conn)
		if !ok || asked {
			// Neither happens: every connection is ours and a body without GetBody is
			// not sent again. Closing is the safe answer all the same.
			_ = info.Conn.Close()
			return
		}
		asked = true
		conn.watch()
		if call.ask() != nil {
			conn.seal()
			return
		}
		call.leavesBy(conn.seal)
	}}
	response, err := d.network.RoundTrip(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
	if err != nil {
		call.failed()
		return nil, err
	}
	call.leaves()
	call.leavesBy(nil)
	return response, nil
}

// receive looks at the answer to a call before the MCP library does, since the
// library ends the whole session, and every other call in it, over one bad answer.
func (d *door) receive(response *http.Response, body *limitedBody, call *shot) (*http.Response, error) {
	if response.StatusCode/100 != 2 {
		data, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
		_ = body.Close()
		call.judge(statusVerdict(response.StatusCode, data))
		return nil, errVerdict
	}
	switch mediaType(response) {
	case "text/event-stream":
		body.listen = (&eventEar{shot: call}).hear
		return response, nil
	case "application/json":
	default:
		_ = body.Close()
		call.judge(badAnswer("The App answered in a form that is not MCP; whether the call ran is not known"))
		return nil, errVerdict
	}
	data, err := io.ReadAll(body)
	_ = body.Close()
	switch {
	case errors.Is(err, errTooBig):
		call.judge(badAnswer(tooBigText))
		return nil, errVerdict
	case err != nil:
		return nil, err // cut off: the caller sees that it went out and that nothing usable came back
	}
	message, err := jsonrpc.DecodeMessage(data)
	if err != nil || !call.hear(message) {
		call.judge(badAnswer("The App answered something that is not a reply to the call; whether the call ran is not known"))
		return nil, errVerdict
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response, nil
}

// statusVerdict reads an HTTP status that is no success. Only a gateway that waited
// in vain leaves it open whether the App has the call.
func statusVerdict(status int, body []byte) *domain.AppError {
	if message, err := jsonrpc.DecodeMessage(body); err == nil {
		if response, ok := message.(*jsonrpc.Response); ok {
			if fault := new(jsonrpc.Error); errors.As(response.Error, &fault) {
				return badAnswer("The App refused the call: " + cleanLine(fault.Message, maxFault))
			}
		}
	}
	verdict := badAnswer(statusText(status))
	verdict.NoAnswer = status == http.StatusGatewayTimeout
	return verdict
}

func statusText(status int) string {
	what := fmt.Sprintf("The App answered with HTTP status %d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return what + "; the credentials of its connection need a look"
	case status == http.StatusNotFound:
		return what + ": it does not know the session or the address; the next attempt connects anew"
	case status/100 == 3:
		return what + ": redirects are not followed; put the address that it names into the connection"
	case status/100 == 5:
		return what + "; it did not say whether the call ran"
	}
	return what
}

func (d *door) noteStatus(status int, inSession bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status = status
	if status == http.StatusNotFound && inSession || status == http.StatusUnauthorized || status == http.StatusForbidden {
		d.gone = true
	}
}

func (d *door) noteTooBig() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tooBig = true
}

func (d *door) notes() (status int, tooBig, gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status, d.tooBig, d.gone
}

func mediaType(response *http.Response) string {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return kind
}

// limitedBody reads at most left bytes and lets listen hear them on their way.
type limitedBody struct {
	body    io.ReadCloser
	left    int64
	onLimit func()
	listen  func([]byte)
	release func()
	once    sync.Once
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		if n, err := b.body.Read(one[:]); n == 0 {
			return 0, err
		}
		b.onLimit()
		return 0, errTooBig
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.body.Read(p)
	b.left -= int64(n)
	if b.listen != nil && n > 0 {
		b.listen(p[:n])
	}
	return n, err
}

func (b *limitedBody) Close() error {
	err := b.body.Close()
	b.once.Do(b.release)
	return err
}
