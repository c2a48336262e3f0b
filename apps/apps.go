package apps

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openbot/domain"
)

// Opener opens what a Sealer sealed; the owner of an App's secrets is its
// ConnectionID.
type Opener interface {
	Open(sealed []byte, organization domain.OrganizationID, owner string) ([]byte, error)
}

// Options say what Apps may do. The zero value allows the least.
type Options struct {
	// AllowPrivate lets HTTP Apps live on loopback and private addresses. Link-local
	// addresses stay out of reach all the same.
	AllowPrivate bool
	// AllowCommands lets Apps be commands of this machine.
	AllowCommands bool
	// Sealer opens the secrets of Connections.
	Sealer Opener
	// Logger gets what operators may want to know; nil drops it.
	Logger *slog.Logger
	// CallTimeout ends a tool call, its connecting included; 0 means 60 s.
	CallTimeout time.Duration
	// LookTimeout ends a look, and each connecting; 0 means 8 s.
	LookTimeout time.Duration
	// ResultLimit is how much text of a result is kept, in bytes; 0 means 256 KiB.
	ResultLimit int
	// InProcess serves the Apps of these hosts by handlers of this process.
	InProcess map[string]http.Handler
}

// errClosed is the answer of Apps that are shutting down.
var errClosed = notSent("The server is shutting down; the App was not reached", nil)

// Apps reaches the outside services. It is safe for concurrent use. Its errors are
// *domain.AppError, except that the error of ready is handed back as it is.
type Apps struct {
	options Options
	network *http.Transport
	hooks   *http.Transport // to receivers of messages
	life    context.Context
	cut     context.CancelFunc
	running sync.WaitGroup
	hostTLS *tls.Config // nil means the machine's certificates

	mu       sync.Mutex
	closed   bool
	slots    map[domain.ConnectionID]*slot
	sessions map[*session]*slot
}

// New makes Apps. Close must be called.
func New(options Options) *Apps {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.CallTimeout <= 0 {
		options.CallTimeout = 60 * time.Second
	}
	if options.LookTimeout <= 0 {
		options.LookTimeout = 8 * time.Second
	}
	if options.ResultLimit <= 0 {
		options.ResultLimit = 256 << 10
	}
	life, cut := context.WithCancel(context.Background())
	return &Apps{
		options: options, network: newNetwork(options.AllowPrivate), hooks: newNetwork(options.AllowPrivate), life: life, cut: cut,
		slots: make(map[domain.ConnectionID]*slot), sessions: make(map[*session]*slot),
	}
}

// Close ends every session and waits for it, a few seconds at most. A call that is
// out gets two seconds to come back.
func (a *Apps) Close() error {
	a.mu.Lock()
	a.closed = true
	for s := range a.sessions {
		s.retired = true
		if s.idle != nil {
			s.idle.Stop()
		}
		a.end(s)
	}
	a.mu.Unlock()
	timer := time.AfterFunc(closeGrace, a.cut)
	defer timer.Stop()
	a.running.Wait()
	a.cut()
	a.network.CloseIdleConnections()
	a.hooks.CloseIdleConnections()
	return nil
}

// Call sends one tool call once. ready is asked right before the first byte goes
// out, when the session stands; when it returns an error nothing is sent and that
// error is returned as it is. Any other error is a *domain.AppError.
func (a *Apps) Call(ctx context.Context, endpoint domain.AppEndpoint, call domain.AppCall, ready func() error) (domain.AppResult, error) {
	var object map[string]json.RawMessage
	arguments := call.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if err := json.Unmarshal(arguments, &object); err != nil || object == nil {
		return domain.AppResult{}, notSent("The call was not sent: its arguments are not a JSON object", nil)
	}
	ctx, cancel := context.WithTimeout(ctx, a.options.CallTimeout)
	defer cancel()
	shot := &shot{ready: ready}
	var result *mcp.CallToolResult
	for {
		s, opened, err := a.awake(ctx, endpoint)
		if err != nil {
			return domain.AppResult{}, err
		}
		result, err = s.client.CallTool(withShot(ctx, shot), &mcp.CallToolParams{Name: call.Tool, Arguments: arguments})
		e := shot.end()
		// One bad answer is no reason to end the session; silence is.
		a.release(s, err == nil || e.answered || e.refused != nil || e.verdict != nil)
		if err == nil {
			break
		}
		// A kept session may have died this very moment. As long as the one send was
		// not even begun, another session may have it.
		if e.taken || opened || ctx.Err() != nil {
			return domain.AppResult{}, s.callError(err, e)
		}
	}
	if result.NeedsInput() {
		return domain.AppResult{}, badAnswer("The App asks a question back instead of giving a result, which is not supported; the call did not finish")
	}
	return a.result(callText(result), result.IsError), nil
}

// awake acquires a session for a call and makes sure that the App still knows it,
// so that the one send is not spent on finding out.
func (a *Apps) awake(ctx context.Context, endpoint domain.AppEndpoint) (s *session, opened bool, err error) {
	for {
		s, opened, err := a.acquire(ctx, endpoint)
		if err != nil {
			return nil, false, err
		}
		if opened || !a.stale(s) {
			return s, opened, nil
		}
		pinging, cancel := context.WithTimeout(ctx, a.options.LookTimeout)
		alive := s.ping(pinging)
		cancel()
		if alive {
			return s, false, nil
		}
		a.release(s, false)
	}
}

func (a *Apps) stale(s *session) bool {
	if s.door == nil || s.client.ID() == "" {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(s.usedAt) > staleAfter
}

// ReadResource reads one resource. ready is that of Call; a read may go out twice.
func (a *Apps) ReadResource(ctx context.Context, endpoint domain.AppEndpoint, uri string, ready func() error) (domain.AppResult, error) {
	return reading(a, ctx, endpoint, a.options.CallTimeout, ready, func(ctx context.Context, s *session) (domain.AppResult, error) {
		result, err := s.client.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return domain.AppResult{}, err
		}
		return a.result(resourceText(result), false), nil
	})
}

// GetPrompt reads one prompt, as ReadResource does.
func (a *Apps) GetPrompt(ctx context.Context, endpoint domain.AppEndpoint, name string, arguments map[string]string, ready func() error) (domain.AppResult, error) {
	return reading(a, ctx, endpoint, a.options.CallTimeout, ready, func(ctx context.Context, s *session) (domain.AppResult, error) {
		result, err := s.client.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
		if err != nil {
			return domain.AppResult{}, err
		}
		return a.result(promptText(result), false), nil
	})
}

// Look connects if needed and reads what the App offers.
func (a *Apps) Look(ctx context.Context, endpoint domain.AppEndpoint) (domain.AppLook, error) {
	return reading(a, ctx, endpoint, a.options.LookTimeout, func() error { return nil }, func(ctx context.Context, s *session) (domain.AppLook, error) {
		return s.look(ctx)
	})
}

// reading does a read, which may be done again: once, on a new session, when the
// kept one turned out to be dead. ready is asked before each.
func reading[T any](a *Apps, ctx context.Context, endpoint domain.AppEndpoint, timeout time.Duration, ready func() error,
	read func(context.Context, *session) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		s, opened, err := a.acquire(ctx, endpoint)
		if err != nil {
			var none T
			return none, err
		}
		if err := ready(); err != nil {
			a.release(s, true)
			var none T
			return none, err
		}
		value, err := read(ctx, s)
		if err == nil {
			a.release(s, true)
			return value, nil
		}
		fault := s.readError(errors.Join(err, ctx.Err()))
		a.release(s, spoke(err))
		if opened || ctx.Err() != nil || spoke(err) {
			a.options.Logger.DebugContext(ctx, "reading from an App failed", "connection", endpoint.Connection, "error", fault)
			return value, fault
		}
	}
}
