package domain

import (
	"bytes"
	"time"
)

// AppChange is what became different when a Connection got a new revision. It is kept
// for people to read; it decides nothing.
type AppChange struct {
	Revision int64    `json:"revision"`
	AtMs     int64    `json:"at"`
	Edited   bool     `json:"edited,omitempty"`  // a person changed the Connection itself
	Added    []string `json:"added,omitempty"`   // names of tools
	Removed  []string `json:"removed,omitempty"` // names of tools
	Schema   []string `json:"schema,omitempty"`  // tools whose arguments are others
	Words    []string `json:"words,omitempty"`   // tools that are described in other words
}

// maxAppChanges is how many changes of a Connection are kept.
const maxAppChanges = 20

// noteChange adds a change, newest first.
func noteChange(changes []AppChange, c AppChange) []AppChange {
	kept := append([]AppChange{c}, changes...)
	return kept[:min(len(kept), maxAppChanges)]
}

// Edit notes that a person changed the Connection, which makes a new revision.
func (c *Connection) Edit(at time.Time) {
	c.Revision++
	c.Look.Changes = noteChange(c.Look.Changes, AppChange{Revision: c.Revision, AtMs: at.UnixMilli(), Edited: true})
}

// changeOf compares what an App offered with what it offers.
func changeOf(before, now AppLook) AppChange {
	var c AppChange
	old := make(map[string]AppTool, len(before.Tools))
	for _, t := range before.Tools {
		old[t.Name] = t
	}
	for _, t := range now.Tools {
		was, there := old[t.Name]
		delete(old, t.Name)
		switch {
		case !there:
			c.Added = append(c.Added, t.Name)
		case !bytes.Equal(was.Schema, t.Schema):
			c.Schema = append(c.Schema, t.Name)
		case was.Description != t.Description || was.Title != t.Title:
			c.Words = append(c.Words, t.Name)
		}
	}
	for _, t := range before.Tools {
		if _, gone := old[t.Name]; gone {
			c.Removed = append(c.Removed, t.Name)
		}
	}
	return c
}
