package repository

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	gosqlite "github.com/glebarez/go-sqlite"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"

	"openbot/domain"
)

// Tags of conflicts, so that a caller can tell what moved.
const (
	tagStale = "VersionConflict" // a row's version has moved, or its place is taken
	tagTaken = "InputConflict"   // an input was already taken
	tagKept  = "KeyConflict"     // a key is already kept
	tagName  = "NameConflict"    // a unique name is taken
	// tagReminded is a reminder that fired or was cancelled already.
	tagReminded = "ReminderConflict"
)

func conflict(tag, message string) *domain.Error {
	return domain.Errorf(domain.CodeConflict, tag, "%s", message)
}

func stale() *domain.Error {
	return conflict(tagStale, "This was changed by somebody else meanwhile. Read it again.")
}

func notFound(what string) *domain.Error {
	return domain.Errorf(domain.CodeNotFound, what+"NotFound", "There is no such %s.", what)
}

// wrap turns an error of a driver into one of ours. attempt says what was tried, as
// it follows "could not". Drivers are recognised by type and code, never by text.
func (s *Store) wrap(ctx context.Context, attempt string, err error) error {
	if err == nil {
		return nil
	}
	var ours *domain.Error
	if errors.As(err, &ours) {
		return err
	}
	cause := fmt.Errorf("could not %s: %w", attempt, err)
	// A cancelled context shows itself in many ways, some of which look like a fault.
	if ended := ctx.Err(); ended != nil {
		if !errors.Is(err, ended) {
			cause = fmt.Errorf("could not %s: %w: %w", attempt, ended, err)
		}
		return domain.Wrap(domain.CodeUnavailable, "DatabaseTimeout", "The database did not answer in time. Try again.", cause)
	}
	code := s.codeOf(err)
	switch code {
	case domain.CodeConflict:
		return domain.Wrap(code, tagStale, "This was changed by somebody else meanwhile. Read it again.", cause)
	case domain.CodeUnavailable:
		return domain.Wrap(code, "DatabaseUnavailable", "The database cannot be reached. Try again.", cause)
	case domain.CodeInvalid:
		return domain.Wrap(code, "TooLarge", "This is longer than the database can keep.", cause)
	case domain.CodeNotFound:
		return domain.Wrap(code, "NotFound", "There is no such thing.", cause)
	default:
		return domain.Wrap(domain.CodeInternal, "DatabaseError", "The database refused this. It is a fault of the server.", cause)
	}
}

func (s *Store) codeOf(err error) domain.Code {
	var onPostgres *pgconn.PgError
	if errors.As(err, &onPostgres) {
		return codeOfState(onPostgres.Code)
	}
	var onSQLite *gosqlite.Error
	if errors.As(err, &onSQLite) {
		return codeOfResult(onSQLite.Code())
	}
	var network net.Error
	var connect *pgconn.ConnectError
	switch {
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return domain.CodeConflict
	// database/sql has no type for a closed pool, so the store remembers it itself.
	case s.closed.Load(),
		errors.As(err, &connect), errors.As(err, &network), errors.Is(err, pgconn.ErrConnClosed), pgconn.SafeToRetry(err), pgconn.Timeout(err),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrTxDone),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return domain.CodeUnavailable
	}
	return domain.CodeInternal
}

// codeOfState reads a SQLSTATE; see PostgreSQL's appendix of error codes.
func codeOfState(state string) domain.Code {
	switch state {
	case "23505", // unique_violation
		"40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03": // lock_not_available
		return domain.CodeConflict
	case "25006", // read_only_sql_transaction: a standby, for now
		"3D000", // invalid_catalog_name: the database is not there
		"57014": // query_canceled: a statement_timeout
		return domain.CodeUnavailable
	case "22021": // character_not_in_repertoire: such a text is in no row
		return domain.CodeNotFound
	}
	if len(state) < 2 {
		return domain.CodeInternal
	}
	switch state[:2] {
	case "08", // connection exception
		"28", // invalid authorization
		"53", // insufficient resources: connections, memory, disk
		"57", // operator intervention: shutdown, crash, not yet started
		"58": // system error: I/O
		return domain.CodeUnavailable
	case "54": // program limit exceeded: a row or an index entry is too large
		return domain.CodeInvalid
	}
	return domain.CodeInternal
}

// codeOfResult reads an extended result code of SQLite.
func codeOfResult(code int) domain.Code {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return domain.CodeConflict
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM:
		return domain.CodeUnavailable
	case sqlite3.SQLITE_TOOBIG:
		return domain.CodeInvalid
	}
	return domain.CodeInternal
}

// unique reports whether err is a second row under a unique key.
func unique(err error) bool {
	var onPostgres *pgconn.PgError
	if errors.As(err, &onPostgres) {
		return onPostgres.Code == "23505"
	}
	var onSQLite *gosqlite.Error
	return errors.As(err, &onSQLite) && codeOfResult(onSQLite.Code()) == domain.CodeConflict
}
