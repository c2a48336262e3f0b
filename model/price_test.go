package model_test

import (
	"testing"

	"openbot/domain"
	"openbot/model"
)

func TestPrice(t *testing.T) {
	usage := domain.ModelUsage{InputTokens: 1000, CachedInputTokens: 200, OutputTokens: 100}
	writing := domain.ModelUsage{InputTokens: 1000, CacheWriteTokens: 400, OutputTokens: 10}
	cases := []struct {
		model  string
		usage  domain.ModelUsage
		micros int64
		why    string
	}{
		{"openai:gpt-5", usage, 2025, "800 × 1.25 + 200 × 0.125 + 100 × 10"},
		{"openai:gpt-5-2025-08-07", usage, 2025, "a date with dashes is the same model"},
		{"openai:gpt-5-mini-2025-08-07", usage, 405, "the longest name counts: not gpt-5"},
		{"openai:gpt-4o-mini", usage, 195, "half price for cached input"},
		{"openai:gpt-4o-2024-05-13", usage, 6500, "a dated model with a price of its own; cached input costs as input"},
		{"openai:gpt-chat-latest", usage, 7100, "latest may be the name itself"},
		{"anthropic:claude-sonnet-4-5", usage, 3960, "800 × 3 + 200 × 0.3 + 100 × 15, the base tier"},
		{"anthropic:claude-sonnet-4-5-20250929", usage, 3960, "a date without dashes is the same model"},
		{"anthropic:claude-3-7-sonnet-latest", usage, 3960, "latest is the same model"},
		{"anthropic:claude-sonnet-4-5", writing, 3450, "600 × 3 + 400 × 3.75 + 10 × 15: writing a cache costs more"},
	}
	models := model.New(model.Options{})
	for _, c := range cases {
		price, ok := models.Price(c.model)
		if !ok {
			t.Errorf("%s has no price: %s", c.model, c.why)
			continue
		}
		if got := domain.MicrosFromNanos(price.CostNanos(c.usage)); got != c.micros {
			t.Errorf("%s costs %d micro-USD, want %d: %s", c.model, got, c.micros, c.why)
		}
	}
}

func TestPriceOfUnknownModels(t *testing.T) {
	models := model.New(model.Options{})
	for _, name := range []string{
		"", "playbook", "openai", "openai:", "openai:gpt-5-huge", "openai:gpt-5-2025-08", "openai:gpt-5-2025-08-0x",
		"openai:-2025-08-07", "openai:claude-sonnet-4-5", "anthropic:gpt-5", "other:gpt-5", "gpt-5", "openai:GPT-5",
		"openai:gpt-oss-120b", "openai:20250807", "openai:-20250807",
	} {
		if price, ok := models.Price(name); ok {
			t.Errorf("%q has a price: %+v", name, price)
		}
	}
}
