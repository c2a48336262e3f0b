package domain

import (
	"fmt"
	"slices"
	"strings"
)

// Transition is one row of a state machine's law: an event that may happen in a
// state, and the states that it may lead to.
type Transition struct {
	From  string
	Event string
	To    []string
}

// legal reports whether a table lists the event in this state.
func legal(table []Transition, from, event string) bool {
	return slices.ContainsFunc(table, func(t Transition) bool { return t.From == from && t.Event == event })
}

// legalTo reports whether a table lists this way.
func legalTo(table []Transition, from, event, to string) bool {
	return slices.ContainsFunc(table, func(t Transition) bool {
		return t.From == from && t.Event == event && slices.Contains(t.To, to)
	})
}

// Mermaid draws a table as a state diagram for the documents.
func Mermaid(table []Transition) string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, t := range table {
		for _, to := range t.To {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", t.From, to, t.Event)
		}
	}
	return b.String()
}
