package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"openbot/domain"
)

const (
	maxCallTime     = 5 * time.Minute
	maxReplyBytes   = 16 << 20
	maxProviderText = 300
)

// endpoint is one provider's server and the key for it.
type endpoint struct {
	provider     string // its name for people
	keyVariable  string
	baseVariable string
	base         string // without a slash at the end
	key          string
	client       *http.Client
}

// newClient copies a client so that it follows no redirect: net/http would send
// the key in x-api-key, and the whole Chat, to wherever a redirect points.
func newClient(given *http.Client) *http.Client {
	client := http.Client{}
	if given != nil {
		client = *given
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 16
		client.Transport = transport
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// post sends one request and decodes the answer into reply. Every failure on the
// way is a *domain.ModelError.
func (e endpoint) post(ctx context.Context, path string, header http.Header, body, reply any) error {
	encoded, err := encode(body)
	if err != nil {
		return &domain.ModelError{Message: "the request to " + e.provider + " could not be written as JSON", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, maxCallTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base+path, bytes.NewReader(encoded))
	if err != nil {
		// The cause would show the address, which may hold a password.
		return &domain.ModelError{Message: e.baseVariable + " is not a usable address; check it"}
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "openbot")

	response, err := e.client.Do(request)
	if err != nil {
		return e.unreachable(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxReplyBytes+1))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return e.refused(response.StatusCode, content)
	}
	if err != nil {
		return e.unreachable(err)
	}
	if len(content) > maxReplyBytes {
		return &domain.ModelError{Message: fmt.Sprintf("%s answered with more than %d MiB", e.provider, maxReplyBytes>>20)}
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return e.garbled("an empty answer", nil)
	}
	if err := json.Unmarshal(content, reply); err != nil {
		return e.garbled("something that is not the JSON it should be; check "+e.baseVariable, err)
	}
	return nil
}

// unreachable is a call that got no whole answer. The url.Error is taken off since
// it shows the address.
func (e endpoint) unreachable(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	message := e.provider + " could not be reached, or stopped in the middle of its answer"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		message = e.provider + " did not answer in time"
	case errors.Is(err, context.Canceled):
		message = "the call to " + e.provider + " was cancelled"
	}
	return &domain.ModelError{Temporary: true, Message: message, Err: err}
}

// refused is an answer with a status that is no success.
func (e endpoint) refused(status int, content []byte) error {
	message := fmt.Sprintf("%s answered %d %s", e.provider, status, http.StatusText(status))
	switch {
	case status >= 300 && status <= 399:
		message += "; redirects are not followed, check " + e.baseVariable
	case status == http.StatusUnauthorized:
		message += "; check " + e.keyVariable
	}
	if text := e.quote(saidIn(content)); text != "" {
		message += ": " + text
	}
	return &domain.ModelError{Temporary: temporaryStatus(status), Message: strings.TrimSpace(message)}
}

// saidIn finds the provider's own words in the body of a failure. They are an
// extra: a body that is no JSON gives none.
func saidIn(content []byte) string {
	var reply struct {
		Error   providerError `json:"error"`
		Message any           `json:"message"`
	}
	if json.Unmarshal(content, &reply) != nil {
		return ""
	}
	if reply.Error.Message != "" {
		return reply.Error.Message
	}
	text, _ := reply.Message.(string)
	return text
}

func temporaryStatus(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusConflict ||
		status == http.StatusTooManyRequests || status >= 500
}

// garbled is a success whose content is of no use. What a proxy or a restart has
// mangled once may be whole the next time.
func (e endpoint) garbled(what string, err error) error {
	return &domain.ModelError{Temporary: true, Message: e.provider + " answered with " + what, Err: err}
}

// final is a failure that the same call would meet again.
func final(format string, args ...any) error {
	return &domain.ModelError{Message: fmt.Sprintf(format, args...)}
}

// providerError is the error object of both protocols. Compatible servers put a
// bare string, or a number as its code.
type providerError struct {
	Type    string
	Message string
	Code    int
}

func (p *providerError) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &p.Message) == nil {
		return nil
	}
	var object struct {
		Type    any `json:"type"`
		Message any `json:"message"`
		Code    any `json:"code"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	p.Type, _ = object.Type.(string)
	p.Message, _ = object.Message.(string)
	if code, ok := object.Code.(float64); ok && code >= 100 && code < 600 {
		p.Code = int(code)
	}
	return nil
}

// inside is an error object inside an answer with a success status.
func (e endpoint) inside(found providerError) error {
	temporary := found.Code == 0 || temporaryStatus(found.Code)
	switch found.Type {
	case "invalid_request_error", "authentication_error", "permission_error", "not_found_error", "request_too_large", "billing_error":
		temporary = false
	}
	message := e.provider + " answered with an error"
	if text := e.quote(found.Message); text != "" {
		message += ": " + text
	}
	return &domain.ModelError{Temporary: temporary, Message: message}
}

// keyShape catches keys that a provider quotes in part.
var keyShape = regexp.MustCompile(`\b(sk|pk)-[A-Za-z0-9_*.-]{3,}`)

// quote makes a provider's text fit to be shown: one line, no key, not long. The
// key goes before the cut, else half of it could stay.
func (e endpoint) quote(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(e.key) > 3 {
		text = strings.ReplaceAll(text, e.key, "[key]")
	}
	return clip(keyShape.ReplaceAllString(text, "[key]"), maxProviderText)
}

// clip cuts a text to a number of characters and shows the cut.
func clip(text string, limit int) string {
	count := 0
	for at := range text {
		if count == limit {
			return strings.ToValidUTF8(text[:at], "\uFFFD") + "…"
		}
		count++
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// encode writes JSON without turning <, > and & into escapes, which would cost
// tokens in every tool schema.
func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}
