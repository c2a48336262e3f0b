package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"openbot/domain"
)

// route describes one operation: what the OpenAPI document says about it and what
// the middleware must do before its handler runs.
type route struct {
	id      string
	method  string
	path    string
	tag     string
	summary string
	about   string
	role    string // needed to call it; "" for what anybody may call
	status  int    // of success
	stream  bool   // Server-Sent Events: no deadline
	signed  bool   // a signature over the body allows it, whatever form the body has
	script  bool   // a route for scripts, with errors and limits of its own
	errors  []int  // beside those that every operation can give
	// media gives the forms of a success that is not one JSON value of the handler's type.
	media map[string]*huma.MediaType
	// optionalBody is set where a body may be left out.
	optionalBody bool
	// fresh gives a kept answer as things stand now; nil gives it as it was kept.
	fresh func(ctx context.Context, p domain.Principal, kept []byte) ([]byte, error)
}

const routeKey = "route"

func (r *route) hasBody() bool { return r.method == http.MethodPost || r.method == http.MethodPatch }

func (r *route) operation() huma.Operation {
	op := huma.Operation{
		OperationID: r.id, Method: r.method, Path: r.path, Tags: []string{r.tag}, Summary: r.summary, Description: r.about,
		DefaultStatus: r.status, Metadata: map[string]any{routeKey: r},
		MaxBodyBytes: -1, BodyReadTimeout: -1, // the middleware has read the body within its own bounds
		Errors: append([]int{}, r.errors...),
	}
	if r.media != nil {
		op.Responses = map[string]*huma.Response{strconv.Itoa(r.status): {Content: r.media}}
	}
	if r.role != "" {
		op.Security = []map[string][]string{{"token": {}}}
		op.Extensions = map[string]any{"x-openbot-role": r.role}
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusTooManyRequests)
	}
	op.Errors = append(op.Errors, http.StatusServiceUnavailable, http.StatusInternalServerError)
	if r.hasBody() {
		op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	return op
}

// register adds an operation. handle gets whoever calls, with the role checked.
func register[I, O any](s *server, r route, handle func(ctx context.Context, p domain.Principal, in *I) (*O, error)) {
	at := &r
	op := at.operation()
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	huma.Register(s.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, infoFrom(ctx).principal, in)
		if err != nil {
			return nil, s.failure(ctx, err)
		}
		return out, nil
	})
	if at.script {
		describeScriptErrors(s.huma.OpenAPI(), op.Responses)
	}
}

// none is the output of what answers 204.
type none struct{}
