package api

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/domain"
)

const (
	sessionCookie = "openbot_session"
	sessionTime   = 12 * time.Hour
)

// sessions seals the token of a person into a cookie, so that a browser can keep
// it without being able to read it. The token is looked at with every request, so
// that revoking it ends the session.
type sessions struct {
	aead cipher.AEAD
	form []byte // key of the tokens of forms
}

func newSessions(key []byte) (*sessions, error) {
	if len(key) < 16 {
		return nil, errors.New("the session key must have at least 16 bytes")
	}
	derived, err := hkdf.Key(sha256.New, key, nil, "openbot session cookie", 32)
	if err != nil {
		return nil, fmt.Errorf("derive the session key: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("make the session cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make the session cipher: %w", err)
	}
	form, err := hkdf.Key(sha256.New, key, nil, "openbot form token", 32)
	if err != nil {
		return nil, fmt.Errorf("derive the key of forms: %w", err)
	}
	return &sessions{aead: aead, form: form}, nil
}

// formToken is what every form of a session carries: another site can make a browser
// send the cookie, but it cannot read this from a page.
func (s *sessions) formToken(secret string) string {
	mac := hmac.New(sha256.New, s.form)
	mac.Write([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:24])
}

func (s *sessions) seal(secret string, until time.Time) string {
	plain := binary.BigEndian.AppendUint64(nil, uint64(until.Unix()))
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, append(plain, secret...), []byte(sessionCookie)))
}

func (s *sessions) open(value string, now time.Time) (string, bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return "", false
	}
	plain, err := s.aead.Open(nil, nil, sealed, []byte(sessionCookie))
	if err != nil || len(plain) < 8 || !now.Before(time.Unix(int64(binary.BigEndian.Uint64(plain)), 0)) {
		return "", false
	}
	return string(plain[8:]), true
}

// cookie makes the session cookie; an empty value takes it away.
func (s *server) cookie(gc *gin.Context, value string) *http.Cookie {
	path := s.place.root
	if path == "" {
		path = "/"
	}
	c := &http.Cookie{Name: sessionCookie, Value: value, Path: path, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: secure(gc), MaxAge: int(sessionTime / time.Second)}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// secure reports whether the browser speaks TLS, to us or to a proxy before us.
func secure(gc *gin.Context) bool {
	return gc.Request.TLS != nil || gc.Request.Header.Get("X-Forwarded-Proto") == "https"
}

// fromBrowser finds who calls by the session cookie.
func (s *server) fromBrowser(ctx context.Context, gc *gin.Context) (domain.Principal, error) {
	refused := domain.Errorf(domain.CodeUnauthenticated, "Unauthenticated", "Sign in first.")
	c, err := gc.Request.Cookie(sessionCookie)
	if err != nil {
		return domain.Principal{}, refused
	}
	secret, ok := s.session.open(c.Value, time.Now())
	if !ok {
		return domain.Principal{}, refused
	}
	i := infoFrom(ctx)
	i.secret, i.formToken = secret, s.session.formToken(secret)
	// A token that was revoked meanwhile is no guess, so it is not counted.
	return s.Engine.Authenticate(ctx, secret)
}
