package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

// pages adds everything that is made for browsers: the plain inbox with its forms,
// the documentation and the OpenAPI document. It comes after all operations.
func (s *server) pages(r *gin.Engine) error {
	document, err := s.huma.OpenAPI().MarshalJSON()
	if err != nil {
		return err
	}
	r.GET("/openapi.json", func(gc *gin.Context) { gc.Data(http.StatusOK, "application/json", document) })
	var docs bytes.Buffer
	if err := docsPage(s.huma.OpenAPI()).Write(&docs); err != nil {
		return err
	}
	r.GET("/docs", func(gc *gin.Context) { writePage(gc, http.StatusOK, docs.Bytes()) })
	r.GET(web.StylePath, func(gc *gin.Context) {
		gc.Header("Cache-Control", "public, max-age=31536000, immutable")
		gc.Data(http.StatusOK, "text/css; charset=utf-8", web.Style())
	})
	r.GET("/", s.browsing(s.showInbox))
	r.POST("/login", s.form(s.login))
	r.POST("/logout", s.form(func(_ context.Context, gc *gin.Context) error {
		http.SetCookie(gc.Writer, s.cookie(gc, ""))
		gc.Redirect(http.StatusSeeOther, "/")
		return nil
	}))
	r.POST("/answer", s.form(s.acting(s.answerForm)))
	r.POST("/chat", s.form(s.acting(s.chatForm)))
	return nil
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
		if p.Status == http.StatusUnauthorized {
			writeView(gc, p.Status, web.Login{})
			return
		}
		for name, values := range p.GetHeaders() {
			gc.Writer.Header()[name] = values
		}
		writeView(gc, p.Status, web.Fault{Title: p.Title, Detail: p.Detail})
	}
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

// acting is for forms that only somebody with the role write may send.
func (s *server) acting(handle func(ctx context.Context, gc *gin.Context, p domain.Principal) error) pageHandler {
	return func(ctx context.Context, gc *gin.Context) error {
		p, err := s.fromBrowser(ctx, gc)
		if err != nil {
			return err
		}
		infoFrom(ctx).identified(p)
		if err := mayCall(p, domain.RoleWrite); err != nil {
			return err
		}
		return handle(ctx, gc, p)
	}
}

type view interface{ Write(w io.Writer) error }

func writeView(gc *gin.Context, status int, v view) {
	var b bytes.Buffer
	if err := v.Write(&b); err != nil {
		panic("a page cannot be written: " + err.Error())
	}
	writePage(gc, status, b.Bytes())
}

func writePage(gc *gin.Context, status int, body []byte) {
	gc.Header("Content-Security-Policy", web.Policy)
	gc.Header("Referrer-Policy", "same-origin") // forms need their origin for the check against other sites
	gc.Data(status, "text/html; charset=utf-8", body)
}

func (s *server) login(ctx context.Context, gc *gin.Context) error {
	secret := gc.Request.PostForm.Get("token")
	p, err := s.identify(ctx, secret, gc.ClientIP())
	if domain.IsCode(err, domain.CodeUnauthenticated) {
		writeView(gc, http.StatusUnauthorized, web.Login{Fault: "This token is wrong, expired or revoked."})
		return nil
	}
	if err != nil {
		return err
	}
	if err := mayCall(p, domain.RoleRead); err != nil {
		return err
	}
	http.SetCookie(gc.Writer, s.cookie(gc, s.session.seal(secret, time.Now().Add(sessionTime))))
	gc.Redirect(http.StatusSeeOther, "/")
	return nil
}

// answerForm answers a Request once. What came of it is shown on the inbox, as the
// Request says it: also when somebody else was faster.
func (s *server) answerForm(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	id := form.Get("request")
	expected, err := strconv.ParseInt(form.Get("expected"), 10, 64)
	if !domain.ValidID(id, domain.PrefixRequest) || err != nil {
		return notFound("Request")
	}
	answer := engine.Answer{Expected: expected, Decision: form.Get("decision"), Scope: domain.ScopeOnce}
	if reason := form.Get("reason"); reason != "" {
		answer.Reason = &reason
	}
	to := url.Values{"request": {id}}
	_, err = s.Engine.AnswerRequest(ctx, p, domain.RequestID(id), answer)
	switch {
	case domain.IsCode(err, domain.CodeConflict):
		to.Set("stale", "1")
	case err != nil:
		return err
	}
	if chat := form.Get("chat"); domain.ValidID(chat, domain.PrefixChat) {
		to.Set("chat", chat)
	}
	gc.Redirect(http.StatusSeeOther, "/?"+to.Encode())
	return nil
}

// chatForm gives a message to the Chat of the page, or to a new one. The key of
// the form makes sending it twice harmless.
func (s *server) chatForm(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	id, text, key := domain.ChatID(form.Get("chat")), form.Get("text"), form.Get("key")
	if text == "" || len(text) > domain.MaxMessage {
		return invalid("text", "must have 1 to "+strconv.Itoa(domain.MaxMessage)+" bytes")
	}
	if !visible(key) {
		return invalid("key", "is missing; load the page again")
	}
	if id == "" {
		chat, err := s.chatUnder(ctx, p, "page:chat:"+key)
		if err != nil {
			return err
		}
		id = chat
	} else if !domain.ValidID(string(id), domain.PrefixChat) {
		return notFound("Chat")
	}
	k := &engine.Keeping{Member: p.Member.ID, Key: "page:message:" + key, Fingerprint: string(id), Status: http.StatusAccepted,
		Render: func(any) ([]byte, error) { return []byte("{}"), nil }}
	if err := s.Engine.Kept(ctx, k); err == nil {
		_, err = s.Engine.PostMessage(engine.WithKeeping(ctx, k), p, id, text)
		if err != nil && !isKept(err) {
			return err
		}
	} else if !isKept(err) {
		return err
	}
	gc.Redirect(http.StatusSeeOther, "/?chat="+string(id))
	return nil
}
