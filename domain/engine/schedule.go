package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// schedule is when a trigger of kind cron fires.
//
// A schedule of fixed hours goes by the wall clock: each wall time fires once, also on
// the two days a year on which clocks change. A time that the change skips fires as long
// after the change as it stands after the change's beginning (02:30 becomes 03:30); one
// that comes twice fires the first time. A schedule of every hour, or every few, goes by
// real time and fires in each hour that passes.
type schedule struct {
	spec  cron.SpecSchedule
	zone  *time.Location
	fixed bool
}

var cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// readSchedule reads the five fields of cron, or a word such as @daily, and an IANA time
// zone.
func readSchedule(text, zone string) (s schedule, err error) {
	if strings.Contains(text, "=") || len(text) > 200 {
		return s, errors.New("must have five fields, such as 0 9 * * 1-5, or be a word such as @daily; the time zone stands in timeZone")
	}
	parsed, err := cronParser.Parse(text)
	if err != nil {
		return s, fmt.Errorf("must have five fields, such as 0 9 * * 1-5, or be a word such as @daily (%s)", cut(err.Error(), 120))
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return s, errors.New("@every is not taken: use five fields, such as */10 * * * *")
	}
	if zone == "" || zone == "Local" {
		return s, errors.New("needs an IANA time zone, such as Europe/Berlin or UTC")
	}
	if s.zone, err = time.LoadLocation(zone); err != nil {
		return s, errors.New("needs an IANA time zone, such as Europe/Berlin or UTC")
	}
	s.spec = *spec
	fields := strings.Fields(text)
	s.fixed = len(fields) == 5 && !strings.Contains(fields[1], "*") || text != "@hourly" && strings.HasPrefix(text, "@")
	return s, nil
}

// next gives the first time after a moment; the zero time when there is none for years.
func (s schedule) next(after time.Time) time.Time {
	if !s.fixed {
		s.spec.Location = s.zone
		return s.spec.Next(after.In(s.zone)).UTC()
	}
	s.spec.Location = time.UTC
	for wall := wallOf(after.In(s.zone)); ; {
		if wall = s.spec.Next(wall); wall.IsZero() {
			return time.Time{}
		}
		if at := momentOf(wall, s.zone); at.After(after) {
			return at.UTC()
		}
	}
}

// wallOf gives what a clock on the wall shows, as if it hung in UTC.
func wallOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// momentOf gives the first moment at which the clock on the wall shows a time, and for a
// time that it skips the moment at which it would without the change.
func momentOf(wall time.Time, zone *time.Location) time.Time {
	offset := func(near time.Time) time.Duration {
		_, seconds := near.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := wall.Add(-offset(wall.Add(-36*time.Hour))), wall.Add(-offset(wall.Add(36*time.Hour)))
	first, second := before, after
	if second.Before(first) {
		first, second = second, first
	}
	for _, at := range []time.Time{first, second} {
		if wallOf(at.In(zone)).Equal(wall) {
			return at
		}
	}
	return before
}
