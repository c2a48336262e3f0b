// Package program runs the JavaScript programs that Bots write, each in a child
// process of the same binary that is killed at its deadline.
//
// It owns the sandbox: a program gets values and the one function app.call, and no
// network, files, clock or randomness. A program that waits for an answer holds no
// process. It ends, and is run again from its start with the answers that were
// saved; it must then make the same calls again, and a program that does not is
// reported as diverged.
//
// The package never makes a call itself, never decides whether one may run, and
// knows nothing of the engine, the database or HTTP. Why it is built this way is in
// docs/decisions/0007-programs.md.
package program
