package engine_test

import (
	"context"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// oneToken is a store that finds the same token whatever it is asked for, or none.
type oneToken struct {
	engine.Store
	principal domain.Principal
	any       bool // it gives the token also for another hash
}

func (s oneToken) Principal(_ context.Context, hash string) (domain.Principal, error) {
	if !s.any && hash != s.principal.Token.Hash {
		return domain.Principal{}, domain.Errorf(domain.CodeNotFound, "", "")
	}
	return s.principal, nil
}

func (oneToken) TouchToken(context.Context, domain.TokenID, time.Time) error { return nil }

// Only the secret itself opens the door, while its token lives and its Member is
// there; a store that finds the wrong token changes nothing.
func FuzzAuthenticate(f *testing.F) {
	const secret = "obt_a-secret-of-this-test"
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	for _, seed := range []string{"", secret, secret + " ", secret[:len(secret)-1], "OBT_A-SECRET-OF-THIS-TEST", "0123456789abcdef", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		f.Add(seed, int64(1), false, false, false)
		f.Add(seed, int64(0), true, false, true)
		f.Add(seed, int64(-1), false, true, true)
	}
	f.Fuzz(func(t *testing.T, given string, expiresIn int64, revoked, disabled, lies bool) {
		p := domain.Principal{Organization: "org_1", Member: domain.Member{ID: "mem_1"}, Token: domain.Token{ID: "tok_1", Hash: engine.HashSecret(secret)}}
		expires := now.Add(time.Duration(expiresIn))
		p.Token.ExpiresAt = &expires
		if revoked {
			p.Token.RevokedAt = &now
		}
		if disabled {
			p.Member.DisabledAt = &now
		}
		e := engine.New(engine.Options{Store: oneToken{principal: p, any: lies}, Clock: func() time.Time { return now }})
		found, err := e.Authenticate(t.Context(), given)
		good := given == secret && now.Before(expires) && !revoked && !disabled
		if (err == nil) != good {
			t.Fatalf("%q gave %v", given, err)
		}
		if err != nil && (domain.CodeOf(err) != domain.CodeUnauthenticated || found.Token.ID != "") {
			t.Fatalf("%q is refused with %v and gives %v", given, err, found)
		}
	})
}
