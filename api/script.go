package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
)

// scriptPrefix is where the routes for scripts stand. Everything below it answers in
// their form, also what is no route.
const scriptPrefix = "/api/v1"

// scriptRetryAfter is what every full bucket tells a script: its window has surely
// ended by then.
const scriptRetryAfter = time.Minute

// ScriptError is the body of every error of the routes for scripts.
type ScriptError struct {
	Fault ScriptFault `json:"error"`

	status int
	header http.Header
}

// ScriptFault says what went wrong.
type ScriptFault struct {
	Code    string `json:"code" enum:"unauthorized,forbidden,not_found,conflict,invalid_request,rate_limited,unavailable,internal" doc:"The kind of error, for programs."`
	Message string `json:"message" example:"There is no approval with this ID in your work." doc:"What is wrong and what to do."`
}

// Error gives the message.
func (e *ScriptError) Error() string { return e.Fault.Message }

// GetStatus gives the HTTP status.
func (e *ScriptError) GetStatus() int { return e.status }

// GetHeaders gives the headers that go with the error.
func (e *ScriptError) GetHeaders() http.Header { return e.header }

func isScript(path string) bool {
	return path == scriptPrefix || strings.HasPrefix(path, scriptPrefix+"/")
}

// scriptError gives a problem in the form of the routes for scripts.
func scriptError(p *Problem) *ScriptError {
	e := &ScriptError{Fault: ScriptFault{Code: scriptCode(p.Status), Message: p.Detail}, status: p.Status, header: p.GetHeaders()}
	if len(p.Errors) > 1 {
		var all []string
		for _, fault := range p.Errors {
			all = append(all, strings.TrimSpace(fault.Path+" "+fault.Message))
		}
		e.Fault.Message = strings.Join(all, "; ")
	}
	if p.Status == http.StatusTooManyRequests {
		e.header.Set("Retry-After", strconv.Itoa(int(scriptRetryAfter.Seconds())))
	}
	return e
}

func scriptCode(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusForbidden:
		return "forbidden"
	case http.StatusNotFound:
		return "not_found"
	case http.StatusConflict:
		return "conflict"
	case http.StatusTooManyRequests:
		return "rate_limited"
	case http.StatusServiceUnavailable:
		return "unavailable"
	}
	if status >= http.StatusInternalServerError {
		return "internal"
	}
	return "invalid_request"
}

func writeScriptError(gc *gin.Context, e *ScriptError) {
	for name, values := range e.header {
		gc.Writer.Header()[name] = values
	}
	gc.Data(e.status, "application/json", append(encode(e), '\n'))
	gc.Abort()
}

// describeScriptErrors puts the form of scripts in place of the problem in what the
// document says about an operation.
func describeScriptErrors(doc *huma.OpenAPI, responses map[string]*huma.Response) {
	schema := doc.Components.Schemas.Schema(typeOf[ScriptError](), true, "")
	for _, response := range responses {
		if _, failed := response.Content[problemType]; failed {
			response.Content = map[string]*huma.MediaType{"application/json": {Schema: schema}}
		}
	}
}
