// Package domain holds what OpenBot is about: its types, its states, the events
// that move them, and the pure functions that decide.
//
// It owns every rule. It never reads a clock, a random source, the environment, a
// file or a socket, and it imports the standard library alone: times and new IDs
// come inside events, so that the same event always gives the same decision and
// can be decided again after a conflict.
//
// Decide functions take values and return values. A refusal returns its input
// unchanged together with an *Error; it never returns a half-made state.
package domain

//go:generate go test . -run "TestStatesDocument|TestResultsSay" -update
