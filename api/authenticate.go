package api

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"openbot/domain"
)

// failedWindow is the window in which failed authentications of an address count.
const failedWindow = time.Minute

// authenticate finds who calls by the Authorization header. The token is looked
// at first and only a bad one is counted against its address: a good token never
// pays for a bad one, also not behind the same address.
func (s *server) authenticate(ctx context.Context, r *http.Request, address string) (domain.Principal, string, error) {
	secret, given := bearer(r)
	if !given {
		return domain.Principal{}, "", domain.Errorf(domain.CodeUnauthenticated, "Unauthenticated",
			"Send a token: Authorization: Bearer <token>.")
	}
	p, err := s.identify(ctx, secret, address)
	return p, secret, err
}

// identify finds whose secret it is, and counts a wrong one.
func (s *server) identify(ctx context.Context, secret, address string) (domain.Principal, error) {
	p, err := s.Engine.Authenticate(ctx, secret)
	if !domain.IsCode(err, domain.CodeUnauthenticated) {
		return p, err
	}
	return p, s.countWrong(ctx, address, err)
}

// countWrong counts a wrong token or signature against an address. It gives the error
// back, or another one when there were too many.
func (s *server) countWrong(ctx context.Context, address string, err error) error {
	fits, after := s.Engine.Limiter.Allow(ctx, "auth:"+addressKey(address), s.failedAuthLimit(), failedWindow)
	if fits {
		return err
	}
	limited := newProblem(http.StatusTooManyRequests, "RateLimited", "Too many wrong tokens came from your address. Wait before you try again.")
	limited.retryAfter = max(after, time.Second)
	return limited
}

func bearer(r *http.Request) (string, bool) {
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(secret), ok && strings.EqualFold(scheme, "Bearer")
}

// addressKey is what failures are counted against: an IPv4 address, or the /64
// that one IPv6 customer has.
func addressKey(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return "unknown"
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		prefix, _ := ip.Prefix(64) // 64 bits fit in every IPv6 address
		return prefix.String()
	}
	return ip.String()
}
