package api

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/web"
)

// LinkTime is how long a login link is good for.
const LinkTime = 15 * time.Minute

// linkSeal binds a sealed text to its purpose: a link is no cookie.
const linkSeal = "openbot_login_link"

// LoginLink makes the path of a page that signs a browser in once, within LinkTime,
// with a token. It holds the token sealed by the session key.
func LoginLink(sessionKey []byte, secret string, now time.Time) (string, error) {
	s, err := newSessions(sessionKey)
	if err != nil {
		return "", err
	}
	return s.link(secret, now), nil
}

func (s *sessions) link(secret string, now time.Time) string {
	plain := binary.BigEndian.AppendUint64(nil, uint64(now.Add(LinkTime).Unix()))
	plain = append(plain, rand.Text()[:16]...)
	return "/login?link=" + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, append(plain, secret...), []byte(linkSeal)))
}

// openLink gives the token in a link, and what tells this link from every other.
func (s *sessions) openLink(link string, now time.Time) (secret, mark string, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(link)
	if err != nil {
		return "", "", false
	}
	plain, err := s.aead.Open(nil, nil, sealed, []byte(linkSeal))
	if err != nil || len(plain) < 24 || !now.Before(time.Unix(int64(binary.BigEndian.Uint64(plain)), 0)) {
		return "", "", false
	}
	return string(plain[24:]), string(plain[8:24]), true
}

// showLogin asks for a token, or before a link is used up: what fetches links by
// itself, such as a mail scanner, must not use it up.
func (s *server) showLogin(_ context.Context, gc *gin.Context) error {
	v := web.Login{Link: gc.Query("link")}
	if v.Link != "" {
		if _, _, ok := s.session.openLink(v.Link, time.Now()); !ok {
			v = web.Login{Fault: linkFault}
		}
	}
	s.write(gc, http.StatusOK, v.View(), web.Shell{})
	return nil
}

const linkFault = "This link is used up or too old. Sign in with a token, or make a new link."

func (s *server) login(ctx context.Context, gc *gin.Context) error {
	secret, link := gc.Request.PostForm.Get("token"), gc.Request.PostForm.Get("link")
	mark := ""
	if link != "" {
		var ok bool
		if secret, mark, ok = s.session.openLink(link, time.Now()); !ok {
			s.write(gc, http.StatusUnauthorized, web.Login{Fault: linkFault}.View(), web.Shell{})
			return nil
		}
	}
	p, err := s.identify(ctx, strings.TrimSpace(secret), gc.ClientIP())
	if domain.IsCode(err, domain.CodeUnauthenticated) {
		s.write(gc, http.StatusUnauthorized, web.Login{Fault: "This token is wrong, expired or revoked."}.View(), web.Shell{})
		return nil
	}
	if err != nil {
		return err
	}
	if err := mayCall(p, domain.RoleRead); err != nil {
		return err
	}
	if link != "" {
		first, err := s.Engine.UseOnce(ctx, p, "login-link:"+mark)
		if err != nil {
			return err
		}
		if !first {
			s.write(gc, http.StatusUnauthorized, web.Login{Fault: linkFault}.View(), web.Shell{})
			return nil
		}
	}
	http.SetCookie(gc.Writer, s.cookie(gc, s.session.seal(strings.TrimSpace(secret), time.Now().Add(sessionTime))))
	gc.Redirect(http.StatusSeeOther, at(gc, "/"))
	return nil
}

// logout ends the session. Without one there is nothing to protect.
func (s *server) logout(ctx context.Context, gc *gin.Context) error {
	if _, err := s.fromBrowser(ctx, gc); err == nil {
		if err := s.formFits(ctx, gc); err != nil {
			return err
		}
	}
	http.SetCookie(gc.Writer, s.cookie(gc, ""))
	gc.Redirect(http.StatusSeeOther, at(gc, "/"))
	return nil
}
