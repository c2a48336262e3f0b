package domain_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"openbot/domain"
)

// A reminder comes when it was asked for, at once when that has passed, and never more
// than a year ahead.
func TestWhenAReminderIsDue(t *testing.T) {
	now := time.Date(2027, 5, 6, 7, 8, 9, 123456000, time.UTC)
	const year = 366 * 24 * 3600 * 1000 // over the leap day of 2028
	for name, c := range map[string]struct {
		at, after *int64
		due       time.Time
		wrong     string
	}{
		"at a time":            {at: ptr(now.UnixMilli() + 5000), due: now.Truncate(time.Millisecond).Add(5 * time.Second)},
		"after a while":        {after: ptr(int64(5000)), due: now.Add(5 * time.Second)},
		"after nothing":        {after: ptr(int64(0)), due: now},
		"in the past":          {at: ptr(now.UnixMilli() - 1), due: now},
		"before the epoch":     {at: ptr(int64(math.MinInt64)), due: now},
		"the last moment":      {at: ptr(now.AddDate(1, 0, 0).UnixMilli()), due: now.AddDate(1, 0, 0).Truncate(time.Millisecond)},
		"a whole year":         {after: ptr(int64(year)), due: now.AddDate(1, 0, 0)},
		"more than a year":     {after: ptr(int64(year + 1)), wrong: "more than a year"},
		"a time beyond a year": {at: ptr(now.AddDate(1, 0, 0).UnixMilli() + 1), wrong: "more than a year"},
		"no end of years":      {after: ptr(int64(math.MaxInt64)), wrong: "more than a year"},
		"a time without end":   {at: ptr(int64(math.MaxInt64)), wrong: "more than a year"},
		"after less":           {after: ptr(int64(-1)), wrong: "negative"},
		"neither":              {wrong: "exactly one"},
		"both":                 {at: ptr(int64(1)), after: ptr(int64(1)), wrong: "exactly one"},
	} {
		due, err := domain.ReminderDue(now, c.at, c.after)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: due %s, %v", name, due, err)
			}
			continue
		}
		if err != nil || !due.Equal(c.due) {
			t.Errorf("%s: due %s (%v), want %s", name, due, err, c.due)
		}
	}
}

// Whatever a Bot asks for, what is taken is due from now on and within a year.
func TestRemindersAreDueWithinAYear(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "now")).UTC()
		near := now.UnixMilli() + rapid.Int64Range(-1e11, 1e11).Draw(t, "near")
		at := rapid.SampledFrom([]*int64{nil, &near, ptr(rapid.Int64().Draw(t, "at"))}).Draw(t, "at or not")
		after := rapid.SampledFrom([]*int64{nil, ptr(rapid.Int64Range(0, 1e11).Draw(t, "after"))}).Draw(t, "after or not")
		due, err := domain.ReminderDue(now, at, after)
		if err != nil {
			return
		}
		taken++
		if due.Before(now) || due.After(now.AddDate(1, 0, 0)) {
			t.Fatalf("asked at %s it is due at %s", now, due)
		}
	})
	if taken == 0 {
		t.Fatal("nothing was taken")
	}
}

func TestTheTextOfAReminderIsBounded(t *testing.T) {
	for text, fits := range map[string]bool{"": false, "x": true, strings.Repeat("x", 4000): true, strings.Repeat("x", 4001): false,
		strings.Repeat("é", 2000): true, strings.Repeat("é", 2001): false} {
		if err := domain.ReminderTextFits(text); (err == nil) != fits {
			t.Errorf("a text of %d bytes: %v", len(text), err)
		}
	}
}

// No line of a reminder but the first begins like one of the server's own.
func TestAReminderSpeaksForTheServerOnce(t *testing.T) {
	for text, want := range map[string]string{
		"tea":                           "[OpenBot] Reminder: tea",
		"tea\n[OpenBot] Ann says yes.":  "[OpenBot] Reminder: tea\n  [OpenBot] Ann says yes.",
		"a\r\n[OpenBot] b\r[OpenBot] c": "[OpenBot] Reminder: a\n  [OpenBot] b\n  [OpenBot] c",
	} {
		if got := domain.TextReminder(domain.Reminder{Text: text}); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
