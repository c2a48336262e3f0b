package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"openbot/domain"
)

// requestTimeout is how long a request may work; the look at an App that a
// Connection waits for fits in it.
const requestTimeout = 30 * time.Second

// guard stands before every operation: who calls and whether the role allows it,
// the body within its bounds, the answer that is already kept, and a deadline. A
// stranger's body is never read.
func (s *server) guard(hc huma.Context, next func(huma.Context)) {
	gc := humagin.Unwrap(hc)
	r, ok := hc.Operation().Metadata[routeKey].(*route)
	if !ok {
		s.refuse(gc, newProblem(http.StatusInternalServerError, "Internal", internalDetail))
		return
	}
	ctx := hc.Context()
	i := infoFrom(ctx)
	i.route = r
	if r.signed {
		s.guardSigned(hc, gc, next)
		return
	}
	if r.role == "" {
		next(hc)
		return
	}
	if !r.stream {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
		defer cancel()
	}
	var err error
	if i.principal, i.secret, err = s.authenticate(ctx, gc.Request, gc.ClientIP()); err != nil {
		s.refuse(gc, s.failure(ctx, err))
		return
	}
	i.identified(i.principal)
	if err := s.count(ctx, r, i.principal); err != nil {
		s.refuse(gc, s.failure(ctx, err))
		return
	}
	if err := mayCall(i.principal, r.role); err != nil {
		s.refuse(gc, err)
		return
	}
	if _, err := url.ParseQuery(gc.Request.URL.RawQuery); err != nil {
		s.refuse(gc, newProblem(http.StatusUnprocessableEntity, tagInvalidInput, "The query of the address is not well formed."))
		return
	}
	if r.hasBody() {
		body, p := readBody(gc.Writer, gc.Request, !r.optionalBody)
		if p != nil {
			s.refuse(gc, p)
			return
		}
		gc.Request.Body = io.NopCloser(bytes.NewReader(body))
		i.body = fingerprint(r.method, gc.Request.URL.Path, body)
	}
	if r.method == http.MethodPost {
		if err := s.lookUpKey(ctx, i, gc.Request.Header); err != nil {
			s.refuse(gc, s.failure(ctx, err))
			return
		}
	}
	next(huma.WithContext(hc, ctx))
}

// guardSigned stands before operations that are allowed by a signature over the body.
func (s *server) guardSigned(hc huma.Context, gc *gin.Context, next func(huma.Context)) {
	ctx, cancel := context.WithTimeout(hc.Context(), requestTimeout)
	defer cancel()
	i := infoFrom(ctx)
	body, p := readSigned(gc.Writer, gc.Request)
	if p != nil {
		s.refuse(gc, p)
		return
	}
	gc.Request.Body = http.NoBody
	i.signed, i.header = body, gc.Request.Header
	next(huma.WithContext(hc, ctx))
}

// mayCall refuses a caller without the role, and says whose it lacks.
func mayCall(p domain.Principal, role string) error {
	if p.HasRole(role) {
		return nil
	}
	if !p.Token.Scopes.HasRole(role) {
		return domain.Errorf(domain.CodeForbidden, "Forbidden", "This needs the scope %s, which your token does not have.", role)
	}
	return domain.Errorf(domain.CodeForbidden, "Forbidden", "This needs the permission %s, which the Member of your token does not have.", role)
}

func fingerprint(method, path string, body []byte) [32]byte {
	return sha256.Sum256(append([]byte(method+" "+path+"\n"), body...))
}

// refuse answers with the problem of err.
func (s *server) refuse(gc *gin.Context, err error) {
	var kept *replay
	if errors.As(err, &kept) {
		gc.Data(kept.kept.Status, "application/json", append(kept.kept.Body, '\n'))
		return
	}
	var script *ScriptError
	if errors.As(err, &script) {
		writeScriptError(gc, script)
		return
	}
	writeProblem(gc, problemOf(err))
}

func writeProblem(gc *gin.Context, p *Problem) {
	if isScript(gc.Request.URL.Path) {
		writeScriptError(gc, scriptError(p))
		return
	}
	for name, values := range p.GetHeaders() {
		gc.Writer.Header()[name] = values
	}
	gc.Data(p.Status, problemType, append(encode(p), '\n'))
	gc.Abort()
}
