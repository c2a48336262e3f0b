package repository

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"openbot/domain"
)

func TestDriverErrorsAreToldApartByType(t *testing.T) {
	state := func(code string) error { return &pgconn.PgError{Code: code, Message: "secret value"} }
	for _, c := range []struct {
		err  error
		code domain.Code
	}{
		{state("23505"), domain.CodeConflict},
		{state("40001"), domain.CodeConflict},
		{state("40P01"), domain.CodeConflict},
		{state("55P03"), domain.CodeConflict},
		{state("57P01"), domain.CodeUnavailable},
		{state("57P02"), domain.CodeUnavailable},
		{state("57P03"), domain.CodeUnavailable},
		{state("57014"), domain.CodeUnavailable},
		{state("53300"), domain.CodeUnavailable},
		{state("53100"), domain.CodeUnavailable},
		{state("58030"), domain.CodeUnavailable},
		{state("08006"), domain.CodeUnavailable},
		{state("28P01"), domain.CodeUnavailable},
		{state("3D000"), domain.CodeUnavailable},
		{state("25006"), domain.CodeUnavailable},
		{state("54000"), domain.CodeInvalid},
		{state("22021"), domain.CodeNotFound},
		{state("42P01"), domain.CodeInternal},
		{state("23514"), domain.CodeInternal},
		{state(""), domain.CodeInternal},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, domain.CodeUnavailable},
		{driver.ErrBadConn, domain.CodeUnavailable},
		{sql.ErrConnDone, domain.CodeUnavailable},
		{pgconn.ErrConnClosed, domain.CodeUnavailable},
		{pgx.ErrTxCommitRollback, domain.CodeConflict},
		{io.ErrUnexpectedEOF, domain.CodeUnavailable},
		{context.DeadlineExceeded, domain.CodeUnavailable},
		{errors.New("sql: database is closed"), domain.CodeInternal}, // a text alone says nothing
		{errors.New("anything else"), domain.CodeInternal},
		{domain.Errorf(domain.CodeExhausted, "", "ours"), domain.CodeExhausted},
	} {
		got := (&Store{}).wrap(context.Background(), "try it", fmt.Errorf("wrapped: %w", c.err))
		if domain.CodeOf(got) != c.code {
			t.Errorf("%v: got code %q, want %q", c.err, domain.CodeOf(got), c.code)
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%v: the cause is lost in %v", c.err, got)
		}
		var ours *domain.Error
		if errors.As(got, &ours) && strings.Contains(ours.Message, "secret") {
			t.Errorf("%v: the message for people shows a value: %s", c.err, ours.Message)
		}
	}
	if err := (&Store{}).wrap(context.Background(), "try it", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

func TestSQLiteResultsAreToldApartByCode(t *testing.T) {
	for result, code := range map[int]domain.Code{
		2067: domain.CodeConflict,    // SQLITE_CONSTRAINT_UNIQUE
		1555: domain.CodeConflict,    // SQLITE_CONSTRAINT_PRIMARYKEY
		275:  domain.CodeInternal,    // SQLITE_CONSTRAINT_CHECK
		5:    domain.CodeUnavailable, // SQLITE_BUSY
		517:  domain.CodeUnavailable, // SQLITE_BUSY_SNAPSHOT
		778:  domain.CodeUnavailable, // SQLITE_IOERR_WRITE
		13:   domain.CodeUnavailable, // SQLITE_FULL
		14:   domain.CodeUnavailable, // SQLITE_CANTOPEN
		9:    domain.CodeUnavailable, // SQLITE_INTERRUPT
		18:   domain.CodeInvalid,     // SQLITE_TOOBIG
		1:    domain.CodeInternal,    // SQLITE_ERROR
		11:   domain.CodeInternal,    // SQLITE_CORRUPT
	} {
		if got := codeOfResult(result); got != code {
			t.Errorf("result %d: got code %q, want %q", result, got, code)
		}
	}
}

func TestContextThatEndedIsSeenFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := (&Store{}).wrap(ctx, "try it", sql.ErrTxDone)
	if !domain.IsCode(err, domain.CodeUnavailable) || !errors.Is(err, context.Canceled) || !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("got %v, want unavailable with both causes", err)
	}
}
