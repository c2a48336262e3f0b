//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// keepLogs copies the logs of all processes out of the folder of the run.
func keepLogs(from, to string) error {
	if to == "" {
		return nil
	}
	logs, err := filepath.Glob(filepath.Join(from, "*.log"))
	if err != nil {
		return err
	}
	faults := []error{os.MkdirAll(to, 0o700)}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		faults = append(faults, err, os.WriteFile(filepath.Join(to, filepath.Base(log)), text, 0o600))
	}
	return errors.Join(faults...)
}

// keepRecord writes down everything that the checker compared: a line for each thing
// that was noted, in order of time, and what the server said of each story.
func keepRecord(r *record, s *seen, to string) error {
	if to == "" {
		return nil
	}
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	note := func(at time.Time, form string, values ...any) {
		lines = append(lines, line{at, fmt.Sprintf(form, values...)})
	}
	for _, one := range r.stories {
		note(one.begun, "story %d: begun: %s, limit %q, Chat %s", one.number, one.kind, one.limit, one.chat)
	}
	for _, a := range r.arrivals {
		note(a.at, "story %d: the App got call %d", a.part.story, a.part.number)
	}
	for _, a := range r.advice {
		note(a.at, "story %d: the model %s about call %d says %q", a.story, a.role, a.part.number, a.said)
	}
	for _, a := range r.answers {
		note(a.asked, "story %d: %s for %s to %s, call %d, work %q, unknown %t, stale %t: %s", a.story, a.decision, a.scope, a.request, a.part.number, a.work, a.unknown, a.stale, a.outcome)
	}
	for _, a := range r.stops {
		note(a.at, "story %d: stopped: Chat %q, work %q", a.story, a.chat, a.work)
	}
	for _, w := range r.windows {
		note(w.from, "strike: %s, until %s", w.name, w.to.Format(time.StampMilli))
	}
	var text bytes.Buffer
	for _, l := range byTime(lines, func(l line) time.Time { return l.at }) {
		fmt.Fprintf(&text, "%s %s\n", l.at.Format(time.StampMilli), l.text)
	}
	said, err := json.MarshalIndent(s.stories, "", " ")
	return errors.Join(err, os.MkdirAll(to, 0o700), os.WriteFile(filepath.Join(to, "record.txt"), text.Bytes(), 0o600),
		os.WriteFile(filepath.Join(to, "stories.json"), said, 0o600))
}
