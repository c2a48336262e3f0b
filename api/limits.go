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

// count refuses a call beyond what the organization lets its tokens do a minute.
func (s *server) count(ctx context.Context, r *route, p domain.Principal) error {
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
	switch {
	case r.script:
		// What a key may not do any more is not counted against the organization: one
		// that floods must not use up what the others may.
		if err := s.within(ctx, "approvals:"+string(p.Token.ID), known.ApprovalsPerKey, "Your key"); err != nil {
			return err
		}
		return s.within(ctx, "approvals:"+string(p.Organization), known.ApprovalsPerOrganization, "The keys of your organization together")
	case known.V1PerKey != nil:
		return s.within(ctx, "v1:"+string(p.Token.ID), *known.V1PerKey, "Your token")
	}
	return nil
}

// within counts a call into a bucket of one minute.
func (s *server) within(ctx context.Context, bucket string, limit int, whose string) error {
	fits, after := s.Engine.Limiter.Allow(ctx, bucket, limit, time.Minute)
	if fits {
		return nil
	}
	limited := newProblem(http.StatusTooManyRequests, "RateLimited", whose+" made more calls in a minute than the organization allows. Wait before you go on.")
	limited.retryAfter = max(after, time.Second)
	return limited
}
