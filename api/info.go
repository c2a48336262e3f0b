package api

import (
	"context"
	"net/http"
	"net/url"

	"openbot/domain"
	"openbot/domain/engine"
)

// info is what the middleware learned about a request.
type info struct {
	requestID string
	url       *url.URL
	root      string // the path before every address that a browser gets
	route     *route
	principal domain.Principal
	origin    *engine.Origin // who calls from where, for the audit log
	secret    string         // of the token, to look again while a stream is open
	formToken string         // of the forms of a session
	key       string         // Idempotency-Key
	body      [32]byte       // fingerprint of method, path and body
	signed    []byte         // the body of an operation that a signature allows
	header    http.Header
}

type infoKey struct{}

func withInfo(ctx context.Context, i *info) context.Context {
	return context.WithValue(ctx, infoKey{}, i)
}

func infoFrom(ctx context.Context) *info {
	i, ok := ctx.Value(infoKey{}).(*info)
	if !ok {
		return &info{url: &url.URL{}, origin: &engine.Origin{}}
	}
	return i
}

// identified notes whose token it was that came with the request.
func (i *info) identified(p domain.Principal) {
	i.principal = p
	i.origin.Member, i.origin.Token = p.Member.ID, p.Token.ID
}
