package apps

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openbot/domain"
)

// closeGrace is how long a session may take to say goodbye before it is cut off.
const closeGrace = 2 * time.Second

// staleAfter is how long an HTTP session may rest before it is pinged ahead of a
// call: an App that restarted meanwhile no longer knows it, and the call itself is
// not the place to find out.
const staleAfter = 2 * time.Second

// clientInfo is how OpenBot introduces itself to an App.
var clientInfo = &mcp.Implementation{Name: "openbot", Title: "OpenBot", Version: "1"}

// session is one MCP session with one App, for one revision of its Connection.
type session struct {
	revision int64
	url      string
	secrets  []string
	door     *door    // of an HTTP App, else nil
	process  *process // of a command, else nil
	client   *mcp.ClientSession
	life     context.Context
	cut      context.CancelFunc // ends everything of this session at once
	dead     chan struct{}      // closed when the session has ended by itself or by us

	// Guarded by Apps.mu.
	users   int
	retired bool
	ending  bool
	usedAt  time.Time
	idle    *time.Timer
}

// notes gives what the way to the App noticed, of HTTP alone.
func (s *session) notes() (status int, tooBig, gone bool) {
	if s.door == nil {
		return 0, false, false
	}
	return s.door.notes()
}

// ended reports whether the session can take no more calls.
func (s *session) ended() bool {
	select {
	case <-s.dead:
		return true
	default:
	}
	_, _, gone := s.notes()
	return gone
}

// connect opens a session. Its error is a *domain.AppError: a call that waits for
// the session has not been sent.
func (a *Apps) connect(ctx context.Context, endpoint domain.AppEndpoint) (*session, error) {
	secrets, err := a.secrets(endpoint)
	if err != nil {
		return nil, err
	}
	s := &session{revision: endpoint.Revision, secrets: secretsToHide(secrets), dead: make(chan struct{})}
	s.life, s.cut = context.WithCancel(a.life)
	transport, err := a.transport(s, endpoint, secrets)
	if err != nil {
		s.cut()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.options.LookTimeout)
	defer cancel()
	// The library waits for some goodbyes after its context is over; cutting the
	// session makes them short.
	unhook := context.AfterFunc(ctx, s.cut)
	s.client, err = newClient().Connect(ctx, transport, nil)
	if !unhook() && err == nil {
		err = ctx.Err()
		_ = s.client.Close()
	}
	if err != nil {
		s.cut()
		if s.process != nil {
			_ = s.process.Close()
		}
		return nil, s.readError(errors.Join(err, ctx.Err()))
	}
	a.running.Go(func() {
		_ = s.client.Wait()
		close(s.dead)
	})
	s.learnHeaders(ctx)
	return s, nil
}

func (a *Apps) secrets(endpoint domain.AppEndpoint) (domain.AppSecrets, error) {
	var secrets domain.AppSecrets
	if len(endpoint.Sealed) == 0 {
		return secrets, nil
	}
	if a.options.Sealer == nil {
		return secrets, notSent("The secrets of the App's connection cannot be opened: the server has no key", nil)
	}
	plain, err := a.options.Sealer.Open(endpoint.Sealed, endpoint.Organization, string(endpoint.Connection))
	if err == nil {
		err = json.Unmarshal(plain, &secrets)
	}
	if err != nil {
		// The cause is left out: a JSON error may quote the secret.
		return secrets, notSent("The secrets of the App's connection cannot be opened; enter them again, or restore OPENBOT_SECRET_KEY", nil)
	}
	return secrets, nil
}

func (a *Apps) transport(s *session, endpoint domain.AppEndpoint, secrets domain.AppSecrets) (mcp.Transport, error) {
	switch endpoint.Transport {
	case domain.TransportHTTP:
		u, err := parseURL(endpoint.URL)
		if err != nil {
			return nil, notSent(err.Error(), nil)
		}
		s.url = u.String()
		s.door = &door{host: u.Host, headers: secretHeaders(secrets.Headers), network: a.network, life: s.life}
		if handler, ok := a.options.InProcess[u.Host]; ok {
			s.door.network, s.door.inProcess = inMemory{handler: handler}, true
		}
		return &mcp.StreamableClientTransport{
			Endpoint: s.url,
			HTTPClient: &http.Client{
				Transport:     s.door,
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
			// Reconnects are GETs that resume the stream of an answer; they carry no call.
			MaxRetries:           3,
			DisableStandaloneSSE: true,
			MaxEventSize:         maxBody,
		}, nil
	case domain.TransportStdio:
		if !a.options.AllowCommands {
			return nil, notSent("This server starts no commands as Apps; an operator can allow them", nil)
		}
		process, err := startProcess(endpoint.Command, endpoint.Args, secrets.Env)
		if err != nil {
			return nil, notSent("The command of the App cannot be started. "+s.unreachable(err), s.cause(err))
		}
		s.process = process
		context.AfterFunc(s.life, process.kill)
		return process, nil
	}
	return nil, notSent("The App's connection has no known transport", nil)
}

// newClient makes an MCP client that offers nothing to the App and repeats nothing:
// the library would otherwise answer a question of the App by sending the call again.
func newClient() *mcp.Client {
	client := mcp.NewClient(clientInfo, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	client.AddSendingMiddleware(fresh)
	return client
}

// fresh forbids the library to answer a list or a read from its cache, whose time
// the App sets, and keeps the list of tools as it came, before the library drops
// some without a word.
func fresh(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, request)
		switch r := result.(type) {
		case *mcp.ListToolsResult:
			if r != nil {
				r.TTLMs = 0
				if all, ok := ctx.Value(allToolsKey{}).(*[]*mcp.Tool); ok {
					*all = r.Tools
				}
			}
		case *mcp.ListResourcesResult:
			if r != nil {
				r.TTLMs = 0
			}
		case *mcp.ListResourceTemplatesResult:
			if r != nil {
				r.TTLMs = 0
			}
		case *mcp.ListPromptsResult:
			if r != nil {
				r.TTLMs = 0
			}
		case *mcp.ReadResourceResult:
			if r != nil {
				r.TTLMs = 0
			}
		}
		return result, err
	}
}

type allToolsKey struct{}

// learnHeaders lists the tools once where a call repeats some of its arguments as
// headers (from protocol version 2026-07-28 on), since only the list says which.
// Without it the App may refuse such calls, so a failure is no reason to stop.
func (s *session) learnHeaders(ctx context.Context) {
	result := s.client.InitializeResult()
	if s.door == nil || result == nil || result.ProtocolVersion < "2026-07-28" ||
		result.Capabilities == nil || result.Capabilities.Tools == nil {
		return
	}
	_ = s.eachTool(ctx, func(*mcp.Tool) bool { return true }, func(string) {})
}

// ping reports whether the App still knows the session. Any reply is a yes.
func (s *session) ping(ctx context.Context) bool {
	err := s.client.Ping(ctx, nil)
	return err == nil || spoke(err)
}
