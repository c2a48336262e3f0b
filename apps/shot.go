package apps

import (
	"context"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"openbot/domain"
)

// methodCall is the one method that must never be sent twice.
const methodCall = "tools/call"

// errSecondSend stops whoever tries to send a call again, be it the MCP library or
// net/http.
var errSecondSend = errors.New("this call was sent already and is never sent again")

// errRefused is what the transport reports when ready said no; the caller gets the
// error of ready itself.
var errRefused = errors.New("the call was taken back before it was sent")

// errVerdict is what the transport reports when the shot already holds the verdict.
var errVerdict = errors.New("the answer cannot be used")

// shot is one tool call on its way out. It travels in the context, so that the
// transport, where the bytes leave, can ask ready, refuse a second send, and note
// what came back.
type shot struct {
	ready func() error

	mu       sync.Mutex
	taken    bool
	id       jsonrpc.ID
	out      bool               // a byte may have gone out
	refused  error              // what ready answered
	answered bool               // the App's response to exactly this call was read
	verdict  *domain.AppError   // what the transport found out for certain
	seal     func() (sent bool) // shuts the way out, then tells whether a write was tried
}

type shotKey struct{}

func withShot(ctx context.Context, s *shot) context.Context {
	return context.WithValue(ctx, shotKey{}, s)
}

// shotOf gives the shot of a context when message is the call itself. The context
// goes with other messages too, such as the note that a call was given up.
func shotOf(ctx context.Context, message jsonrpc.Message) (*shot, bool) {
	s, ok := ctx.Value(shotKey{}).(*shot)
	if !ok {
		return nil, false
	}
	request, ok := message.(*jsonrpc.Request)
	return s, ok && request.IsCall() && request.Method == methodCall
}

// take claims the one send.
func (s *shot) take(id jsonrpc.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken {
		return errSecondSend
	}
	s.taken, s.id = true, id
	return nil
}

// ask asks ready, for the last time before the first byte.
func (s *shot) ask() error {
	err := s.ready()
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
	return errRefused
}

// leaves notes that from here on a byte may be out.
func (s *shot) leaves() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = true
}

// leavesBy notes that seal tells whether a byte went out.
func (s *shot) leavesBy(seal func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seal = seal
}

// failed closes the way out and settles whether a byte may have gone out.
func (s *shot) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seal != nil {
		s.out = s.seal()
		s.seal = nil
	}
}

// judge keeps the first verdict.
func (s *shot) judge(verdict *domain.AppError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verdict == nil && !s.answered {
		s.verdict = verdict
	}
}

// hear notes a message that came back, and reports whether it answers this call.
func (s *shot) hear(message jsonrpc.Message) bool {
	response, ok := message.(*jsonrpc.Response)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ok || response.ID != s.id {
		return false
	}
	s.answered = true
	return true
}

// end gives what is known when the call has returned.
type end struct {
	taken, out, answered bool
	refused              error
	verdict              *domain.AppError
}

func (s *shot) end() end {
	s.mu.Lock()
	defer s.mu.Unlock()
	return end{taken: s.taken, out: s.out, answered: s.answered, refused: s.refused, verdict: s.verdict}
}
