// Package migration holds the numbered SQL migrations of both databases, embedded
// in the program. It owns the text of the schema and never runs it.
package migration

import "embed"

// Postgres holds the migrations for PostgreSQL, in the folder postgres.
//
//go:embed postgres/*.sql
var Postgres embed.FS

// SQLite holds the migrations for SQLite, in the folder sqlite.
//
//go:embed sqlite/*.sql
var SQLite embed.FS
