package domain

import (
	"errors"
	"fmt"
)

// Code says what kind of failure an Error is. One table maps codes to an HTTP
// status and one to a retry policy.
type Code string

const (
	// CodeInvalid is input that does not fit; trying again unchanged is pointless.
	CodeInvalid Code = "invalid"
	// CodeUnauthenticated is a missing, wrong, expired or revoked token.
	CodeUnauthenticated Code = "unauthenticated"
	// CodeForbidden is a token that may not do this.
	CodeForbidden Code = "forbidden"
	// CodeNotFound is something absent, or that the caller may not see.
	CodeNotFound Code = "not_found"
	// CodeConflict is a state that changed since it was read; read it again.
	CodeConflict Code = "conflict"
	// CodePrecondition is a move that the state machine does not list.
	CodePrecondition Code = "precondition"
	// CodeExhausted is a limit that is used up; wait.
	CodeExhausted Code = "exhausted"
	// CodeUnavailable is a part that cannot be reached now; try again.
	CodeUnavailable Code = "unavailable"
	// CodeInternal is a fault of the server.
	CodeInternal Code = "internal"
)

// Codes lists every Code, for tables that must cover all of them.
func Codes() []Code {
	return []Code{CodeInvalid, CodeUnauthenticated, CodeForbidden, CodeNotFound, CodeConflict,
		CodePrecondition, CodeExhausted, CodeUnavailable, CodeInternal}
}

// Fault is one thing that does not fit in an input: where it stands and why.
type Fault struct {
	Path    string
	Message string
}

// Error is the one error type that crosses packages. Message is for people and
// says what to do; Err is the cause, for logs alone.
type Error struct {
	Code    Code
	Tag     string // what it concerns on the wire, e.g. "RequestNotFound"
	Message string
	Faults  []Fault
	Err     error
}

// Error joins the message and the cause, for logs.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error of a code and tag with a message for people.
func Errorf(code Code, tag, format string, args ...any) *Error {
	return &Error{Code: code, Tag: tag, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error of a code around a cause that only logs may show.
func Wrap(code Code, tag, message string, err error) *Error {
	return &Error{Code: code, Tag: tag, Message: message, Err: err}
}

// CodeOf gives the code of err: that of the *Error in its chain, else internal.
// It is "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// IsCode reports whether err carries this code.
func IsCode(err error, code Code) bool { return err != nil && CodeOf(err) == code }
