// Package model calls models: OpenAI-compatible servers, Anthropic, and the
// deterministic playbook. It translates one request, sends it once, and translates
// the answer; it knows what models cost. It never tries again by itself, never
// decides anything, never writes state and never shows a key.
package model

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"openbot/domain"
)

// Names of the providers, as they stand before the colon of a model name.
const (
	// ProviderPlaybook is the deterministic model that needs no key and no network.
	ProviderPlaybook = "playbook"
	// ProviderOpenAI is any server that speaks OpenAI's chat completions.
	ProviderOpenAI = "openai"
	// ProviderAnthropic is any server that speaks Anthropic's messages.
	ProviderAnthropic = "anthropic"
)

const (
	defaultOpenAIBaseURL    = "https://api.openai.com/v1"
	defaultAnthropicBaseURL = "https://api.anthropic.com"
	maxModelName            = 200
)

// Options says how the providers are reached. Zero values are usable: without a
// key only the playbook is known.
type Options struct {
	OpenAIKey        string
	OpenAIBaseURL    string // with the /v1; "" means OpenAI itself
	AnthropicKey     string
	AnthropicBaseURL string       // without the /v1; "" means Anthropic itself
	HTTPClient       *http.Client // nil means a client of its own; redirects are never followed
}

// Models calls the models of all providers. It is safe for concurrent use.
type Models struct {
	openai    openAI
	anthropic anthropic
	client    *http.Client
}

// New makes Models. It checks nothing and touches no network: Known says what is
// missing for a model.
func New(options Options) *Models {
	client := newClient(options.HTTPClient)
	return &Models{
		client: client,
		openai: openAI{endpoint{
			provider: "OpenAI", keyVariable: "OPENAI_API_KEY", baseVariable: "OPENAI_BASE_URL",
			key: strings.TrimSpace(options.OpenAIKey), base: baseURL(options.OpenAIBaseURL, defaultOpenAIBaseURL),
			client: client,
		}},
		anthropic: anthropic{endpoint{
			provider: "Anthropic", keyVariable: "ANTHROPIC_API_KEY", baseVariable: "ANTHROPIC_BASE_URL",
			key: strings.TrimSpace(options.AnthropicKey), base: baseURL(options.AnthropicBaseURL, defaultAnthropicBaseURL),
			client: client,
		}},
	}
}

// Close drops idle connections. Calls that are under way are not touched.
func (m *Models) Close() { m.client.CloseIdleConnections() }

// Split cuts "provider:model" at the first colon, because model names may hold
// colons themselves. A model without a colon is a provider alone.
func Split(model string) (provider, name string) {
	provider, name, _ = strings.Cut(model, ":")
	return provider, name
}

// Known reports what keeps a model from being called: an unknown provider, a
// missing model name, or a provider whose key or address is missing or wrong. The
// error is a *domain.Error of code invalid with one line for people. It does not
// ask the provider whether it has the model.
func (m *Models) Known(model string) error {
	provider, name := Split(model)
	switch provider {
	case ProviderPlaybook:
		if model != ProviderPlaybook {
			return unknown("model %q: the playbook has no models; write %q", clip(model, 80), ProviderPlaybook)
		}
		return nil
	case ProviderOpenAI:
		return m.openai.known(model, name)
	case ProviderAnthropic:
		return m.anthropic.known(model, name)
	}
	return unknown("model %q: unknown provider; write openai:MODEL, anthropic:MODEL or playbook", clip(model, 80))
}

// Call makes one model call with one HTTP request at most. It ends with the
// context, and after five minutes at the latest. Its error is a *domain.ModelError
// that says whether the same call may go better later.
func (m *Models) Call(ctx context.Context, request domain.ModelRequest) (domain.ModelReply, error) {
	if err := m.Known(request.Model); err != nil {
		return domain.ModelReply{}, &domain.ModelError{Message: err.Error()}
	}
	provider, name := Split(request.Model)
	switch provider {
	case ProviderOpenAI:
		return m.openai.call(ctx, name, request)
	case ProviderAnthropic:
		return m.anthropic.call(ctx, name, request)
	}
	return playbook(ctx, request)
}

// Price gives what a model costs by the shipped table, in pico-USD a token; false
// when the table does not know it. The playbook has no shipped price.
func (m *Models) Price(model string) (domain.ModelPrice, bool) {
	provider, name := Split(model)
	return shippedPrice(provider, name)
}

func (e endpoint) known(model, name string) error {
	shown := clip(model, 80)
	if name == "" || len(name) > maxModelName || strings.ContainsFunc(name, unprintable) {
		return unknown("model %q: the name after the colon must be 1 to %d visible characters", shown, maxModelName)
	}
	if e.key == "" {
		return unknown("model %q: set %s (any text, if the server at %s asks for no key)", shown, e.keyVariable, e.baseVariable)
	}
	if strings.ContainsFunc(e.key, unprintable) {
		return unknown("model %q: %s holds blanks or control characters; check it", shown, e.keyVariable)
	}
	address, err := url.Parse(e.base)
	if err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https") {
		return unknown("model %q: %s must be an http or https address", shown, e.baseVariable)
	}
	return nil
}

func unknown(format string, args ...any) error {
	return domain.Errorf(domain.CodeInvalid, "ModelUnknown", format, args...)
}

func unprintable(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }

func baseURL(set, standard string) string {
	set = strings.TrimRight(strings.TrimSpace(set), "/")
	if set == "" {
		return standard
	}
	return set
}
