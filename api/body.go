package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxBody is the largest body that is read, in bytes.
	maxBody = 1 << 20
	// bodyTimeout is how long a body may take to arrive.
	bodyTimeout = 15 * time.Second
	// maxDepth is how deep a body may nest.
	maxDepth = 100
)

// readBody reads a whole JSON body, or says what is wrong with it.
func readBody(w http.ResponseWriter, r *http.Request, required bool) ([]byte, *Problem) {
	if r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every writer has one
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	_ = control.SetReadDeadline(time.Time{}) // a deadline that passes later would end the request's context
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newProblem(http.StatusRequestTimeout, "RequestTimeout", "The body took too long to arrive.")
	case err != nil:
		return nil, newProblem(http.StatusBadRequest, tagInvalidJSON, "The body could not be read to its end.")
	case len(body) > maxBody:
		return nil, tooLarge()
	case len(bytes.TrimSpace(body)) == 0:
		if required {
			return nil, newProblem(http.StatusBadRequest, tagInvalidJSON, "The body is empty. Send a JSON object.")
		}
		return nil, nil
	}
	if t := r.Header.Get("Content-Type"); t != "" {
		media, params, err := mime.ParseMediaType(t)
		charset := strings.ToLower(params["charset"])
		if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") || charset != "" && charset != "utf-8" {
			return nil, newProblem(http.StatusUnsupportedMediaType, "UnsupportedMediaType",
				"The body must be JSON in UTF-8, with Content-Type: application/json.")
		}
	}
	return body, checkJSON(body)
}

func tooLarge() *Problem {
	return newProblem(http.StatusRequestEntityTooLarge, "BodyTooLarge", "The body is larger than 1 MiB.")
}

// checkJSON refuses what is not JSON with 400, and JSON that readers understand
// differently with 422: names that stand twice in an object, texts with U+0000.
func checkJSON(body []byte) *Problem {
	if !utf8.Valid(body) {
		return newProblem(http.StatusBadRequest, tagInvalidJSON, "The body is not UTF-8.")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		detail := "The body is not JSON."
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			detail = fmt.Sprintf("The body is not JSON: something is wrong at byte %d.", syntax.Offset)
		}
		return newProblem(http.StatusBadRequest, tagInvalidJSON, detail)
	}
	w := walk{tokens: json.NewDecoder(bytes.NewReader(body))}
	w.tokens.UseNumber()
	if p := w.value("", 0); p != nil {
		return p
	}
	return nil
}

// walk goes through JSON that is known to be valid.
type walk struct{ tokens *json.Decoder }

func (w *walk) value(path string, depth int) *Problem {
	token, err := w.tokens.Token()
	if err != nil {
		return newProblem(http.StatusBadRequest, tagInvalidJSON, "The body is not JSON.")
	}
	if depth > maxDepth {
		return invalid(path, "nests too deep")
	}
	switch token := token.(type) {
	case string:
		return noNUL(path, token)
	case json.Delim:
		if token == '[' {
			for i := 0; w.tokens.More(); i++ {
				if p := w.value(path+"["+strconv.Itoa(i)+"]", depth+1); p != nil {
					return p
				}
			}
		} else {
			seen := map[string]bool{}
			for w.tokens.More() {
				if p := w.field(path, seen, depth); p != nil {
					return p
				}
			}
		}
		_, _ = w.tokens.Token() // the closing delimiter, which is there in valid JSON
	}
	return nil
}

func (w *walk) field(path string, seen map[string]bool, depth int) *Problem {
	token, err := w.tokens.Token()
	name, ok := token.(string)
	if err != nil || !ok {
		return newProblem(http.StatusBadRequest, tagInvalidJSON, "The body is not JSON.")
	}
	if path != "" {
		path += "."
	}
	path += name
	if seen[name] {
		return invalid(path, "stands twice in its object")
	}
	seen[name] = true
	if p := noNUL(path, name); p != nil {
		return p
	}
	return w.value(path, depth+1)
}

func noNUL(path, text string) *Problem {
	if strings.ContainsRune(text, 0) {
		return invalid(strings.ReplaceAll(path, "\x00", ""), "must not hold the character U+0000")
	}
	return nil
}

// readSigned reads a body of any form, within the bounds of every body.
func readSigned(w http.ResponseWriter, r *http.Request) ([]byte, *Problem) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every writer has one
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	_ = control.SetReadDeadline(time.Time{})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newProblem(http.StatusRequestTimeout, "RequestTimeout", "The body took too long to arrive.")
	case err != nil:
		return nil, newProblem(http.StatusBadRequest, tagInvalidJSON, "The body could not be read to its end.")
	case len(body) > maxBody:
		return nil, tooLarge()
	}
	return body, nil
}
