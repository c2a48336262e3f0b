package domain_test

import (
	"math"
	"testing"

	"openbot/domain"
)

func TestUsagesAddUp(t *testing.T) {
	a := domain.ModelUsage{InputTokens: 5, CachedInputTokens: 2, CacheWriteTokens: 1, OutputTokens: 3}
	if got, want := a.Plus(a), (domain.ModelUsage{InputTokens: 10, CachedInputTokens: 4, CacheWriteTokens: 2, OutputTokens: 6}); got != want {
		t.Errorf("twice is %+v", got)
	}
	huge := domain.ModelUsage{InputTokens: math.MaxInt64, OutputTokens: -7}
	if got := huge.Plus(a); got.InputTokens != math.MaxInt64 || got.OutputTokens != 3 {
		t.Errorf("beyond the largest number it is %+v", got)
	}
}
