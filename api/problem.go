package api

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"openbot/domain"
	"openbot/domain/engine"
)

// Problem is the body of every error, as RFC 9457 gives it, with a tag that
// programs can tell apart.
type Problem struct {
	Type   string         `json:"type,omitempty" format:"uri-reference" doc:"A link to words about this kind of problem, when there is one."`
	Tag    string         `json:"_tag" example:"RequestNotFound" doc:"The kind of problem, for programs."`
	Title  string         `json:"title" example:"Not Found" doc:"The words of the status."`
	Status int            `json:"status" example:"404" doc:"The HTTP status."`
	Detail string         `json:"detail" example:"There is no Request with this ID in your work." doc:"What is wrong and what to do."`
	Errors []ProblemError `json:"errors,omitempty" doc:"What does not fit in the input, each with its place."`

	retryAfter time.Duration
}

// ProblemError is one thing that does not fit in an input.
type ProblemError struct {
	Path    string `json:"path" example:"scopes[0]" doc:"Where it stands; empty for the body as a whole."`
	Message string `json:"message" example:"must be a string" doc:"Why it does not fit."`
}

// Error gives the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus gives the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType gives the media type of RFC 9457.
func (p *Problem) ContentType(string) string { return problemType }

// GetHeaders gives the headers that go with the problem.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.retryAfter+time.Second-1)/time.Second)))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	return h
}

const problemType = "application/problem+json"

// statuses is the one table from codes to HTTP statuses and default tags.
var statuses = map[domain.Code]struct {
	status int
	tag    string
}{
	domain.CodeInvalid:         {http.StatusUnprocessableEntity, tagInvalidInput},
	domain.CodeUnauthenticated: {http.StatusUnauthorized, "Unauthenticated"},
	domain.CodeForbidden:       {http.StatusForbidden, "Forbidden"},
	domain.CodeNotFound:        {http.StatusNotFound, "NotFound"},
	domain.CodeConflict:        {http.StatusConflict, "Conflict"},
	domain.CodePrecondition:    {http.StatusConflict, "Conflict"},
	domain.CodeExhausted:       {http.StatusTooManyRequests, "RateLimited"},
	domain.CodeUnavailable:     {http.StatusServiceUnavailable, "Unavailable"},
	domain.CodeInternal:        {http.StatusInternalServerError, "Internal"},
}

const (
	tagInvalidInput = "InvalidInput"
	tagInvalidJSON  = "InvalidJSON"
)

// internalDetail is all that a caller learns about a fault of the server.
const internalDetail = "The server failed to do this. Its log has the reason under the X-Request-Id of this answer."

func newProblem(status int, tag, detail string) *Problem {
	return &Problem{Tag: tag, Title: http.StatusText(status), Status: status, Detail: detail}
}

// problemOf gives the problem for an error. Only the message of a *domain.Error
// is shown, never its cause.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var e *domain.Error
	if !errors.As(err, &e) {
		e = &domain.Error{Code: domain.CodeInternal}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			e = domain.Errorf(domain.CodeUnavailable, "", "The server was too slow to do this. Try again.")
		}
	}
	row, ok := statuses[e.Code]
	if !ok {
		row = statuses[domain.CodeInternal]
	}
	tag, detail := e.Tag, e.Message
	if tag == "" {
		tag = row.tag
	}
	if row.status == http.StatusInternalServerError {
		tag, detail = row.tag, internalDetail
	}
	if detail == "" {
		detail = http.StatusText(row.status) + "."
	}
	p = newProblem(row.status, tag, detail)
	for _, f := range e.Faults {
		p.Errors = append(p.Errors, ProblemError(f))
	}
	if e.Code == domain.CodeUnavailable {
		p.retryAfter = time.Second
	}
	return p
}

// notFound is the problem of an ID that names nothing, or is none at all.
func notFound(kind string) *Problem {
	return newProblem(http.StatusNotFound, kind+"NotFound", "There is no "+kind+" with this ID.")
}

// invalid is the problem of one field that does not fit.
func invalid(path, message string) *Problem {
	return invalidAll([]ProblemError{{Path: path, Message: message}})
}

func invalidAll(faults []ProblemError) *Problem {
	p := newProblem(http.StatusUnprocessableEntity, tagInvalidInput, strings.TrimSpace(faults[0].Path+" "+faults[0].Message))
	p.Errors = faults
	return p
}

// replay is an answer that was kept under a key, given again.
type replay struct{ kept domain.KeptAnswer }

func (r *replay) Error() string                { return "an answer that was kept" }
func (r *replay) GetStatus() int               { return r.kept.Status }
func (r *replay) MarshalJSON() ([]byte, error) { return r.kept.Body, nil }

// failure turns the error of a handler into what is answered, and logs what only
// the operator may know.
func (s *server) failure(ctx context.Context, err error) error {
	var kept *engine.KeptError
	if errors.As(err, &kept) {
		return s.replayed(ctx, kept.Answer)
	}
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && !errors.Is(ctx.Err(), context.Canceled) {
		s.Logger.ErrorContext(ctx, "a request failed", "request", infoFrom(ctx).requestID, "status", p.Status, "error", err)
	}
	if isScript(infoFrom(ctx).url.Path) {
		return scriptError(p)
	}
	if r := infoFrom(ctx).route; r != nil && r.tag == tagDelegations && p.Status == http.StatusServiceUnavailable {
		p.Tag = "DelegationStorageUnavailable" // clients of delegations know it by this name
	}
	return p
}

func init() {
	// huma keeps these for the whole process. The forms are the same for every API of
	// it; arrays are never null here; a field has one spelling.
	huma.NewErrorWithContext = func(hc huma.Context, status int, message string, errs ...error) huma.StatusError {
		p := humaProblem(status, message, errs)
		if at := hc.URL(); isScript(at.Path) {
			return scriptError(p)
		}
		return p
	}
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return humaProblem(status, message, errs)
	}
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
}

var goField = regexp.MustCompile(`Go struct field [^ .]*\.(\S+) of type`)

// humaProblem words what huma found wrong with an input. The values that did not
// fit are never given back. The body is JSON by now, so that a text that does not
// decode is one that does not fit.
func humaProblem(status int, message string, errs []error) *Problem {
	if status == http.StatusBadRequest {
		status = http.StatusUnprocessableEntity
	}
	switch {
	case status >= http.StatusInternalServerError:
		return newProblem(status, "Internal", internalDetail)
	case status == http.StatusUnsupportedMediaType:
		return newProblem(status, "UnsupportedMediaType", "The body must be JSON, with Content-Type: application/json.")
	case status != http.StatusUnprocessableEntity:
		return newProblem(status, strings.ReplaceAll(http.StatusText(status), " ", ""), message)
	}
	var faults []ProblemError
	for _, err := range errs {
		var d huma.ErrorDetailer
		if errors.As(err, &d) {
			faults = append(faults, faultOf(*d.ErrorDetail()))
		}
	}
	if len(faults) == 0 {
		return newProblem(status, tagInvalidInput, "The input does not fit: "+message+".")
	}
	return invalidAll(faults)
}

func faultOf(d huma.ErrorDetail) ProblemError {
	path := d.Location
	for _, place := range []string{"body", "query", "path", "header"} {
		if rest, ok := strings.CutPrefix(path, place); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			path = strings.TrimPrefix(rest, ".")
			break
		}
	}
	message := d.Message
	if name, ok := strings.CutPrefix(message, "expected required property "); ok {
		if path != "" {
			path += "."
		}
		path += strings.TrimSuffix(name, " to be present")
		return ProblemError{Path: path, Message: "is required"}
	}
	switch {
	case message == "unexpected property":
		message = "is not a known field"
	case message == "unknown query parameter":
		message = "is not a known query parameter"
	case strings.HasPrefix(message, "json: "):
		if m := goField.FindStringSubmatch(message); m != nil {
			path = m[1]
		}
		message = "does not fit the type of this field"
	default:
		for _, w := range wording {
			if rest, ok := strings.CutPrefix(message, w[0]); ok {
				message = w[1] + rest
				break
			}
		}
	}
	return ProblemError{Path: path, Message: message}
}

// wording says in our words how huma's messages begin; the first that fits wins.
var wording = [][2]string{
	{"expected value to be ", "must be "},
	{"expected length ", "must have a length in characters "},
	{"expected array length ", "must have a number of entries "},
	{"expected string to match pattern ", "must match "},
	{"expected value to match at least one schema but matched none", "fits none of the forms that it may have"},
	{"expected ", "must be "},
}
