package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"openbot/domain"
)

// limitsAge is how old the limits of an organization may be. A change through this
// process counts at once.
const limitsAge = 5 * time.Second

// limits remembers the rate limits of organizations, so that a call need not read
// them each time. Wrong tokens belong to no organization: for them the limit of
// the one seen last counts.
type limits struct {
	mu         sync.Mutex
	of         map[domain.OrganizationID]knownLimits
	failedAuth int
}

type knownLimits struct {
	domain.RateLimits
	readAt time.Time
}

func (l *limits) get(id domain.OrganizationID, now time.Time) (domain.RateLimits, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.of[id]
	return known.RateLimits, ok && now.Before(known.readAt.Add(limitsAge))
}

func (l *limits) set(id domain.OrganizationID, r domain.RateLimits, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[domain.OrganizationID]knownLimits{}
	}
	l.of[id] = knownLimits{r, now}
	l.failedAuth = r.FailedAuthPerAddress
}

// failedAuthLimit is how many wrong tokens an address may send a minute.
func (s *server) failedAuthLimit() int {
	if s.FailedAuthLimit > 0 {
		return s.FailedAuthLimit
	}
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	if s.limits.failedAuth > 0 {
		return s.limits.failedAuth
	}
	return domain.DefaultSettings().RateLimits.FailedAuthPerAddress
}

// count refuses a call beyond what the organization lets one token do a minute.
func (s *server) count(ctx context.Context, p domain.Principal) error {
	now := s.Engine.Clock()
	known, ok := s.limits.get(p.Organization, now)
	if !ok {
		settings, err := s.Engine.Settings(ctx, p)
		if err != nil {
			return err
		}
		known = settings.RateLimits
		s.limits.set(p.Organization, known, now)
	}
	if known.V1PerKey == nil {
		return nil
	}
	fits, after := s.Engine.Limiter.Allow(ctx, "v1:"+string(p.Token.ID), *known.V1PerKey, time.Minute)
	if fits {
		return nil
	}
	limited := newProblem(http.StatusTooManyRequests, "RateLimited", "Your token made more calls in a minute than the organization allows. Wait before you go on.")
	limited.retryAfter = max(after, time.Second)
	return limited
}
