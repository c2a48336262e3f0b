// Package repository keeps every fact in PostgreSQL or SQLite.
//
// It owns the schema, the rows, the reads and the one commit. It decides nothing:
// it never changes a state by itself, never rings a task, never reads the clock for
// a fact, and never writes outside a commit except for the end of a lease, the due
// time of a Turn under way, and the last use of a token.
//
// Times are kept in microseconds since the epoch, in UTC, on both databases. The
// caller cuts its times to microseconds before it commits; what is finer is lost.
// Text that a database cannot hold (NUL bytes, broken UTF-8) is kept with U+FFFD in
// its place. Each kind of row has fields that are written once and fields that a
// commit may change; a change to the former is not written. They are marked in the
// row types.
//
// Errors are *domain.Error: not_found for what is absent, conflict for a state that
// has moved, unavailable when the database cannot be reached or the caller's context
// ended, internal for everything else. A commit that fails with unavailable may have
// been written: the connection can break after the database has agreed.
//
// Why it is built in this way stands in docs/decisions/0005-storage.md.
package repository
