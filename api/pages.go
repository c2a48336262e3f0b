package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/web"
)

// pages adds everything that is made for browsers: the inbox with its forms, the
// documentation and the OpenAPI document. It comes after all operations.
func (s *server) pages(r *gin.Engine) error {
	document, err := s.huma.OpenAPI().MarshalJSON()
	if err != nil {
		return err
	}
	r.GET("/openapi.json", func(gc *gin.Context) { gc.Data(http.StatusOK, "application/json", document) })
	docs, err := s.site.Bytes(docsPage(s.huma.OpenAPI()).View(), web.Shell{})
	if err != nil {
		return err
	}
	r.GET("/docs", func(gc *gin.Context) { writePage(gc, http.StatusOK, "", docs) })
	for _, a := range web.Assets() {
		r.GET(a.Path, func(gc *gin.Context) { writeAsset(gc, a) })
	}
	r.GET("/login", s.browsing(s.showLogin))
	r.POST("/login", s.form(s.login))
	r.POST("/logout", s.form(s.logout))
	r.GET("/live", s.live)
	s.requestPages(r)
	s.chatPages(r)
	s.workPages(r)
	s.botPages(r)
	s.appPages(r)
	s.grantPages(r)
	s.rulePages(r)
	s.triggerPages(r)
	s.webhookPages(r)
	r.GET("/usage", s.seeing("usage", domain.RoleRead, s.showUsage))
	s.auditPages(r)
	r.GET("/history", s.seeing("history", domain.RoleRead, s.showHistory))
	s.settingPages(r)
	s.tokenPages(r)
	return nil
}

func writeAsset(gc *gin.Context, a web.Asset) {
	body := a.Body
	gc.Header("Cache-Control", "public, max-age=31536000, immutable")
	gc.Header("Vary", "Accept-Encoding")
	if strings.Contains(gc.GetHeader("Accept-Encoding"), "gzip") {
		gc.Header("Content-Encoding", "gzip")
		body = a.Gzip
	}
	gc.Data(http.StatusOK, a.Type, body)
}

type pageHandler func(ctx context.Context, gc *gin.Context) error

// browsing gives a page its deadline, and a page for what goes wrong.
func (s *server) browsing(handle pageHandler) gin.HandlerFunc {
	return func(gc *gin.Context) {
		ctx, cancel := context.WithTimeout(gc.Request.Context(), requestTimeout)
		defer cancel()
		err := handle(ctx, gc)
		if err == nil {
			return
		}
		p := problemOf(s.failure(ctx, err))
		for name, values := range p.GetHeaders() {
			gc.Writer.Header()[name] = values
		}
		fault := web.Fault{Title: p.Title, Detail: p.Detail, Sent: gc.Request.Method == http.MethodPost && p.Status == http.StatusUnprocessableEntity}
		for _, e := range p.Errors {
			fault.Errors = append(fault.Errors, web.FaultAt{Place: e.Path, Message: e.Message})
		}
		switch {
		case p.Status == http.StatusUnauthorized:
			gc.Header("HX-Refresh", "true") // a part of a page cannot sign in; the whole page asks
			s.write(gc, p.Status, web.Login{}.View(), web.Shell{})
		case fromScript(gc):
			gc.Header("HX-Retarget", "#toast")
			gc.Header("HX-Reswap", "innerHTML")
			s.write(gc, p.Status, fault.Part(), web.Shell{})
		default:
			s.write(gc, p.Status, fault.View(), web.Shell{})
		}
	}
}

// fromScript reports whether a part of a page asks, which can take a part alone.
func fromScript(gc *gin.Context) bool { return gc.GetHeader("HX-Request") == "true" }

// partFor reports whether the part of this ID asks.
func partFor(gc *gin.Context, id string) bool {
	_, target, _ := strings.Cut(gc.GetHeader("HX-Target"), "#")
	return fromScript(gc) && target == id
}

// seeing is for pages that somebody with the role looks at. here is the entry of the
// menu.
func (s *server) seeing(here, role string, handle func(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error)) gin.HandlerFunc {
	return s.browsing(func(ctx context.Context, gc *gin.Context) error {
		p, err := s.fromBrowser(ctx, gc)
		if err != nil {
			return err
		}
		infoFrom(ctx).principal = p
		if err := mayCall(p, role); err != nil {
			return err
		}
		// Before anything is read, so that nothing can come between what the page shows
		// and the events after it.
		position, err := s.Engine.Position(ctx, p)
		if err != nil {
			return err
		}
		v, err := handle(ctx, gc, p)
		if err != nil || v.IsNone() {
			return err
		}
		shell, err := s.shell(ctx, p, here, !v.IsPart())
		if err != nil {
			return err
		}
		shell.Position = position
		s.write(gc, http.StatusOK, v, shell)
		return nil
	})
}

// mostWaiting is how far the Requests that wait are counted for the menu.
const mostWaiting = 99

func (s *server) shell(ctx context.Context, p domain.Principal, here string, whole bool) (web.Shell, error) {
	shell := web.Shell{Here: here, FormToken: infoFrom(ctx).formToken, Member: p.Member.Name, MayAct: p.HasRole(domain.RoleWrite),
		MayAdmin: p.HasRole(domain.RoleAdmin), MayMonitor: s.Monitoring != nil}
	if !whole {
		return shell, nil
	}
	org, err := s.Engine.Organization(ctx, p)
	if err != nil {
		return shell, err
	}
	waiting, err := s.Engine.CountRequests(ctx, p, domain.RequestFilter{Status: domain.RequestPending}, mostWaiting+1)
	if err != nil {
		return shell, err
	}
	shell.Organization, shell.Waiting, shell.MoreWait = org.Name, min(waiting, mostWaiting), waiting > mostWaiting
	shell.Nonce = rand.Text()
	return shell, nil
}

// form is browsing for what a page sends: from our own pages alone, and within
// bounds.
func (s *server) form(handle pageHandler) gin.HandlerFunc {
	return s.browsing(func(ctx context.Context, gc *gin.Context) error {
		if err := s.origins.Check(gc.Request); err != nil {
			return domain.Errorf(domain.CodeForbidden, "Forbidden", "This form was sent from another site and was refused.")
		}
		control := http.NewResponseController(gc.Writer)
		_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every writer has one
		gc.Request.Body = http.MaxBytesReader(gc.Writer, gc.Request.Body, maxBody)
		err := gc.Request.ParseForm()
		_ = control.SetReadDeadline(time.Time{})
		if err != nil {
			return newProblem(http.StatusBadRequest, tagInvalidInput, "The form could not be read, or is larger than 1 MiB.")
		}
		for name, values := range gc.Request.PostForm {
			for _, v := range values {
				if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
					return invalid(name, "must be text in UTF-8 without the character U+0000")
				}
			}
		}
		return handle(ctx, gc)
	})
}

// acting is for forms that only somebody with the role may send. The form must carry
// the token of the session.
func (s *server) acting(role string, handle func(ctx context.Context, gc *gin.Context, p domain.Principal) error) gin.HandlerFunc {
	return s.form(func(ctx context.Context, gc *gin.Context) error {
		p, err := s.fromBrowser(ctx, gc)
		if err != nil {
			return err
		}
		infoFrom(ctx).identified(p)
		infoFrom(ctx).principal = p
		if err := s.formFits(ctx, gc); err != nil {
			return err
		}
		if err := mayCall(p, role); err != nil {
			return err
		}
		return handle(ctx, gc, p)
	})
}

func (s *server) formFits(ctx context.Context, gc *gin.Context) error {
	given := gc.Request.PostForm.Get("form_token")
	if subtle.ConstantTimeCompare([]byte(given), []byte(infoFrom(ctx).formToken)) != 1 {
		return domain.Errorf(domain.CodeForbidden, "Forbidden", "This form is of another session. Load the page again and send it once more.")
	}
	return nil
}

// write shows a view.
func (s *server) write(gc *gin.Context, status int, v web.View, shell web.Shell) {
	var b bytes.Buffer
	if err := s.site.Write(&b, v, shell); err != nil {
		panic("a page cannot be written: " + err.Error())
	}
	writePage(gc, status, shell.Nonce, b.Bytes())
}

func writePage(gc *gin.Context, status int, nonce string, body []byte) {
	gc.Header("Content-Security-Policy", web.Policy(nonce))
	gc.Header("Referrer-Policy", "same-origin") // forms need their origin for the check against other sites
	gc.Data(status, "text/html; charset=utf-8", body)
}

// onward sends the browser on after a form: scripts follow the header.
func onward(gc *gin.Context, to string) {
	if fromScript(gc) {
		gc.Header("HX-Redirect", at(gc, to))
		gc.Status(http.StatusNoContent)
		return
	}
	gc.Redirect(http.StatusSeeOther, at(gc, to))
}
