package model_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"openbot/domain"
	"openbot/model"
)

const (
	openAIKey    = "oa_key_0123456789" // as other servers shape theirs
	anthropicKey = "sk-ant-api03-0123456789"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers every request with one status and body and keeps what it got.
type server struct {
	status int
	header http.Header
	body   string
	cut    bool // announce more than is sent

	mutex    sync.Mutex
	requests []received
}

// got is what the server has received so far.
func (s *server) got() []received {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.requests)
}

type received struct {
	path   string
	header http.Header
	body   map[string]any
	raw    string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	got := received{path: r.URL.Path, header: r.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &got.body)
	s.mutex.Lock()
	s.requests = append(s.requests, got)
	s.mutex.Unlock()
	for name, values := range s.header {
		w.Header()[name] = values
	}
	if s.cut {
		w.Header().Set("Content-Length", "100000")
	}
	w.WriteHeader(cmp.Or(s.status, http.StatusOK))
	_, _ = io.WriteString(w, s.body)
}

// start runs the server and gives Models that reach it as both providers.
func (s *server) start(t *testing.T) *model.Models {
	t.Helper()
	running := httptest.NewServer(s)
	models := model.New(model.Options{
		OpenAIKey: openAIKey, OpenAIBaseURL: running.URL + "/v1/",
		AnthropicKey: anthropicKey, AnthropicBaseURL: running.URL,
	})
	t.Cleanup(func() {
		models.Close()
		running.Close()
	})
	return models
}

// protocols are the two providers and an answer of each that says "hi".
var protocols = []struct{ name, model, key, hi string }{
	{"OpenAI", "openai:gpt-5-mini", openAIKey, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`},
	{"Anthropic", "anthropic:claude-sonnet-4-5", anthropicKey, `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}`},
}

func ask(model string) domain.ModelRequest {
	return domain.ModelRequest{
		Model: model, Purpose: domain.PurposeTurn, System: "Be brief.",
		Messages: []domain.ModelMessage{{Role: domain.RoleUser, Text: "hello"}},
	}
}

// failure gives the ModelError of a call that must fail and must show no key.
func failure(t *testing.T, err error) *domain.ModelError {
	t.Helper()
	var found *domain.ModelError
	if !errors.As(err, &found) {
		t.Fatalf("got %v, want a ModelError", err)
	}
	for _, key := range []string{openAIKey, anthropicKey, "0123456789"} {
		if strings.Contains(err.Error(), key) {
			t.Errorf("the error shows a key: %v", err)
		}
	}
	if strings.ContainsFunc(found.Message, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(found.Message) > 1200 {
		t.Errorf("not one short line: %q", found.Message)
	}
	return found
}

func TestFailuresOfBothProtocols(t *testing.T) {
	long := strings.Repeat("é", 20000)
	cases := []struct {
		name      string
		server    *server
		temporary bool
		shows     string
	}{
		{"400", &server{status: 400, body: `{"error":{"type":"invalid_request_error","message":"bad tool"}}`}, false, "bad tool"},
		{"401 quoting the key", &server{status: 401, body: `{"error":{"message":"Incorrect API key: KEY, once more: KEY"}}`}, false, "API_KEY"},
		{"401 quoting a part of the key", &server{status: 401, body: `{"error":{"message":"Incorrect API key: sk-op****************6789."}}`}, false, "[key]"},
		{"403", &server{status: 403}, false, "403"},
		{"404", &server{status: 404, body: `{"error":{"message":"no such model"}}`}, false, "no such model"},
		{"408", &server{status: 408}, true, "408"},
		{"409", &server{status: 409}, true, "409"},
		{"413", &server{status: 413}, false, "413"},
		{"422 in another form", &server{status: 422, body: `{"message":"too many tools"}`}, false, "too many tools"},
		{"429", &server{status: 429, body: `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`}, true, "slow down"},
		{"500 without JSON", &server{status: 500, body: "<html>oops</html>"}, true, "500"},
		{"502 cut", &server{status: 502, body: "{", cut: true}, true, "502"},
		{"503 with a bare text", &server{status: 503, body: `{"error":"starting"}`}, true, "starting"},
		{"529", &server{status: 529, body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, true, "Overloaded"},
		{"a long message", &server{status: 400, body: `{"error":{"message":"` + long + `"}}`}, false, "é…"},
		{"a message with control characters", &server{status: 400, body: `{"error":{"message":"a\u001b[31m\nb\u0000\u202ec"}}`}, false, "a [31m b c"},
		{"a key where the message is cut", &server{status: 400, body: `{"error":{"message":"` + strings.Repeat("x", 285) + ` KEY"}}`}, false, "xxx"},
		{"a redirect", &server{status: 307, header: http.Header{"Location": {"/v1/elsewhere"}}}, false, "redirect"},
		{"an empty body", &server{}, true, "empty"},
		{"blanks", &server{body: " \n"}, true, "empty"},
		{"HTML", &server{body: "<!doctype html><title>Log in</title>"}, true, "JSON"},
		{"a cut body", &server{body: `{"choices":[{"mess`, cut: true}, true, "stopped in the middle"},
		{"a body cut at a line", &server{body: `{"choices":[{"message":{"content":"h`}, true, "JSON"},
		{"two answers", &server{body: `{} {}`}, true, "JSON"},
		{"null", &server{body: `null`}, true, ""},
		{"a list", &server{body: `[]`}, true, "JSON"},
		{"an empty object", &server{body: `{}`}, true, ""},
		{"wrong types", &server{body: `{"choices":7,"content":7}`}, true, "JSON"},
		{"deep nesting", &server{body: strings.Repeat("[", 100000)}, true, "JSON"},
		{"an overload inside a success", &server{body: `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`}, true, "busy"},
		{"a fault inside a success", &server{body: `{"error":{"type":"invalid_request_error","message":"bad"}}`}, false, "bad"},
		{"a numbered fault inside a success", &server{body: `{"error":{"code":402,"message":"no credit"}}`}, false, "no credit"},
		{"a numbered overload inside a success", &server{body: `{"error":{"code":503,"message":"busy"}}`}, true, "busy"},
		{"more than fits", &server{body: `{"x":"` + strings.Repeat("x", 17<<20) + `"}`}, false, "16 MiB"},
	}
	for _, protocol := range protocols {
		for _, c := range cases {
			t.Run(protocol.name+"/"+c.name, func(t *testing.T) {
				given := &server{status: c.server.status, header: c.server.header, body: strings.ReplaceAll(c.server.body, "KEY", protocol.key), cut: c.server.cut}
				models := given.start(t)
				reply, err := models.Call(t.Context(), ask(protocol.model))
				found := failure(t, err)
				if found.Temporary != c.temporary || !strings.Contains(found.Message, c.shows) {
					t.Errorf("temporary %v %q, want %v showing %q", found.Temporary, found.Message, c.temporary, c.shows)
				}
				if reply.Text != "" || reply.Calls != nil {
					t.Errorf("a reply beside the error: %+v", reply)
				}
				if len(given.got()) != 1 {
					t.Errorf("%d requests, want one", len(given.got()))
				}
			})
		}
	}
}

func TestProviderMessageIsCut(t *testing.T) {
	given := server{status: 400, body: `{"error":{"message":"` + strings.Repeat("é", 1000) + `"}}`}
	_, err := given.start(t).Call(t.Context(), ask("openai:gpt-5"))
	if got := strings.Count(failure(t, err).Message, "é"); got != 300 {
		t.Errorf("%d characters of the provider, want 300", got)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	running := httptest.NewServer(http.NotFoundHandler())
	address := running.URL
	running.Close()
	models := model.New(model.Options{
		OpenAIKey: openAIKey, OpenAIBaseURL: strings.Replace(address, "http://", "http://user:hunter2@", 1) + "/hunter2",
		AnthropicKey: anthropicKey, AnthropicBaseURL: address + "/hunter2",
	})
	t.Cleanup(models.Close)
	for _, protocol := range protocols {
		_, err := models.Call(t.Context(), ask(protocol.model))
		if found := failure(t, err); !found.Temporary || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", protocol.name, err)
		}
	}
}

func TestConnectionThatBreaks(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	models := model.New(model.Options{
		OpenAIKey: openAIKey, OpenAIBaseURL: broken.URL, AnthropicKey: anthropicKey, AnthropicBaseURL: broken.URL,
	})
	t.Cleanup(func() {
		models.Close()
		broken.Close()
	})
	for _, protocol := range protocols {
		_, err := models.Call(t.Context(), ask(protocol.model))
		if !failure(t, err).Temporary {
			t.Errorf("%s: %v", protocol.name, err)
		}
	}
}

// silence is a server that never answers.
type silence struct{}

func (silence) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestServerThatNeverAnswers(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				models := model.New(model.Options{
					OpenAIKey: openAIKey, AnthropicKey: anthropicKey, HTTPClient: &http.Client{Transport: silence{}},
				})
				start := time.Now()
				_, err := models.Call(t.Context(), ask(protocol.model))
				if !failure(t, err).Temporary || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Minute {
					t.Errorf("after %v: %v", time.Since(start), err)
				}

				start = time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(2*time.Second, cancel)
				_, err = models.Call(ctx, ask(protocol.model))
				if !failure(t, err).Temporary || !errors.Is(err, context.Canceled) || time.Since(start) != 2*time.Second {
					t.Errorf("cancelled, after %v: %v", time.Since(start), err)
				}
			})
		})
	}
}

func TestKnown(t *testing.T) {
	keyed := model.Options{OpenAIKey: "k", AnthropicKey: "k"}
	cases := []struct {
		name    string
		options model.Options
		model   string
		shows   string // "" is known
	}{
		{"playbook needs nothing", model.Options{}, "playbook", ""},
		{"openai with a key", keyed, "openai:gpt-5-mini", ""},
		{"anthropic with a key", keyed, "anthropic:claude-sonnet-4-5", ""},
		{"a name with colons", keyed, "openai:llama3:8b", ""},
		{"a key with a line end, as files have", model.Options{OpenAIKey: "k\n"}, "openai:x", ""},
		{"no key", model.Options{}, "openai:gpt-5", "OPENAI_API_KEY"},
		{"the other's key", model.Options{OpenAIKey: "k"}, "anthropic:x", "ANTHROPIC_API_KEY"},
		{"a key of blanks", model.Options{OpenAIKey: "  "}, "openai:gpt-5", "OPENAI_API_KEY"},
		{"a key that no header can hold", model.Options{OpenAIKey: "a\r\nb"}, "openai:gpt-5", "OPENAI_API_KEY"},
		{"an address that is none", model.Options{OpenAIKey: "k", OpenAIBaseURL: "localhost:11434"}, "openai:x", "OPENAI_BASE_URL"},
		{"a file", model.Options{AnthropicKey: "k", AnthropicBaseURL: "file:///etc/passwd"}, "anthropic:x", "ANTHROPIC_BASE_URL"},
		{"empty", keyed, "", "unknown provider"},
		{"no provider", keyed, "gpt-5", "unknown provider"},
		{"unknown provider", keyed, "other:gpt-5", "unknown provider"},
		{"capitals", keyed, "OpenAI:gpt-5", "unknown provider"},
		{"no name", keyed, "openai:", "after the colon"},
		{"provider alone", keyed, "anthropic", "after the colon"},
		{"a name with blanks", keyed, "openai:gpt 5", "after the colon"},
		{"a name with a line end", keyed, "openai:gpt\n5", "after the colon"},
		{"a long name", keyed, "openai:" + strings.Repeat("x", 201), "after the colon"},
		{"a model of the playbook", keyed, "playbook:x", "playbook"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			models := model.New(c.options)
			err := models.Known(c.model)
			if c.shows == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !domain.IsCode(err, domain.CodeInvalid) || !strings.Contains(err.Error(), c.shows) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.shows)
			}
			if _, err = models.Call(t.Context(), ask(c.model)); failure(t, err).Temporary {
				t.Errorf("a call that can never go well is temporary: %v", err)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	for _, c := range [][3]string{
		{"openai:gpt-5", "openai", "gpt-5"}, {"playbook", "playbook", ""},
		{"openai:llama3:8b", "openai", "llama3:8b"}, {"", "", ""}, {":", "", ""},
	} {
		if provider, name := model.Split(c[0]); provider != c[1] || name != c[2] {
			t.Errorf("Split(%q) = %q, %q", c[0], provider, name)
		}
	}
}
