package model

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"openbot/domain"
)

//go:embed prices/prices.json
var priceFile []byte

// priceTable is the shipped file: provider, model, price in pico-USD a token.
type priceTable struct {
	Providers map[string]map[string]struct {
		Input       int64  `json:"input"`
		CachedInput *int64 `json:"cachedInput"`
		CacheWrite  *int64 `json:"cacheWrite"`
		Output      int64  `json:"output"`
	} `json:"providers"`
}

// The file is a part of the program: a test reads it, so it cannot be broken in a
// build that passed. An empty table prices nothing.
var shippedPrices = sync.OnceValue(func() priceTable {
	var table priceTable
	if json.Unmarshal(priceFile, &table) != nil {
		return priceTable{}
	}
	return table
})

// shippedPrice finds a model by its name, or by its name without the date or
// "latest" at its end. Nothing else is taken off: gpt-5-mini is not gpt-5.
func shippedPrice(provider, name string) (domain.ModelPrice, bool) {
	models := shippedPrices().Providers[provider]
	found, ok := models[name]
	if !ok {
		found, ok = models[undated(name)]
	}
	return domain.ModelPrice{
		Input: found.Input, CachedInput: found.CachedInput, CacheWrite: found.CacheWrite, Output: found.Output,
	}, ok
}

// undated takes "-20250929", "-2025-09-29" or "-latest" off the end of a name.
func undated(name string) string {
	if short, ok := strings.CutSuffix(name, "-latest"); ok {
		return short
	}
	for _, shape := range []string{"-dddd-dd-dd", "-dddddddd"} {
		at := len(name) - len(shape)
		if at > 0 && fits(name[at:], shape) {
			return name[:at]
		}
	}
	return name
}

func fits(text, shape string) bool {
	for i := range len(shape) {
		digit := text[i] >= '0' && text[i] <= '9'
		if (shape[i] == 'd') != digit || (shape[i] != 'd' && shape[i] != text[i]) {
			return false
		}
	}
	return true
}
