package apps

import (
	"context"
	"time"

	"openbot/domain"
)

// idleAfter is how long an unused session is kept.
const idleAfter = 5 * time.Minute

// slot holds the session of one Connection. Only those who want this very
// Connection wait for its lock.
type slot struct {
	lock    chan struct{} // holds one value while somebody connects
	session *session      // guarded by Apps.mu
}

// acquire gives the session of a Connection, opened if need be, and whether it was
// opened for this caller. The caller must release it.
func (a *Apps) acquire(ctx context.Context, endpoint domain.AppEndpoint) (*session, bool, error) {
	sl, err := a.slot(endpoint.Connection)
	if err != nil {
		return nil, false, err
	}
	select {
	case sl.lock <- struct{}{}:
		defer func() { <-sl.lock }()
	case <-ctx.Done():
		return nil, false, notSent("The App is still being connected and did not answer in time", ctx.Err())
	}
	if s := a.cached(sl, endpoint.Revision); s != nil {
		return s, false, nil
	}
	if !a.begin() {
		return nil, false, errClosed
	}
	defer a.running.Done()
	s, err := a.connect(ctx, endpoint)
	if err != nil {
		return nil, false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		a.end(s)
		return nil, false, errClosed
	}
	s.users, s.usedAt = 1, time.Now()
	sl.session = s
	a.sessions[s] = sl
	a.slots[endpoint.Connection] = sl
	return s, true, nil
}

// begin makes Close wait for a connect that is under way.
func (a *Apps) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.running.Add(1)
	return true
}

func (a *Apps) slot(connection domain.ConnectionID) (*slot, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errClosed
	}
	sl, ok := a.slots[connection]
	if !ok {
		sl = &slot{lock: make(chan struct{}, 1)}
		a.slots[connection] = sl
	}
	return sl, nil
}

// cached gives the slot's session if it fits and lives; otherwise it retires it.
func (a *Apps) cached(sl *slot, revision int64) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := sl.session
	if s == nil {
		return nil
	}
	if s.revision != revision || s.retired || s.ended() {
		a.retire(s)
		return nil
	}
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	s.users++
	return s
}

// release gives a session back. One that is not to be kept takes no new callers and
// ends when its last one has left: a call that is out is never cut off because
// another one failed.
func (a *Apps) release(s *session, keep bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.users--
	s.usedAt = time.Now()
	switch {
	case s.retired && s.users == 0:
		a.end(s)
	case !keep || s.ended():
		a.retire(s)
	case s.users == 0:
		s.idle = time.AfterFunc(idleAfter, func() { a.rest(s) })
	}
}

// rest retires a session that nobody took up again.
func (a *Apps) rest(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.users == 0 && !s.retired && s.idle != nil {
		a.retire(s)
	}
}

// retire takes a session out of use. a.mu is held.
func (a *Apps) retire(s *session) {
	if s.retired {
		return
	}
	s.retired = true
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	if sl := a.sessions[s]; sl != nil && sl.session == s {
		sl.session = nil
	}
	if s.users == 0 {
		a.end(s)
	}
}

// end closes a session: politely first, then for good. a.mu is held.
func (a *Apps) end(s *session) {
	if s.ending {
		return
	}
	s.ending = true
	delete(a.sessions, s)
	a.running.Go(func() {
		timer := time.AfterFunc(closeGrace, s.cut)
		_ = s.client.Close()
		timer.Stop()
		s.cut()
	})
}
