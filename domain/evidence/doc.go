// Package evidence makes and checks what outsiders hold a server to: signed receipts,
// the hash chain of the audit log, and the signed end of that chain.
//
// It is pure: keys and entries are handed in, and nothing here reads a clock, a
// database or randomness. It never decides what is recorded.
package evidence
