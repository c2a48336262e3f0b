package apps

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"openbot/domain"
)

// maxFault is how much of an App's own error text is passed on, in bytes.
const maxFault = 500

// minSecretToHide is the shortest secret that is blanked out of an App's error
// texts; shorter ones would blank out ordinary words.
const minSecretToHide = 8

// notSent is an error of a call that surely did not go out.
func notSent(message string, cause error) *domain.AppError {
	return &domain.AppError{Message: message, Err: cause}
}

// noAnswer is an error of a call that may have gone out with nothing coming back.
func noAnswer(message string, cause error) *domain.AppError {
	return &domain.AppError{NoAnswer: true, Message: message, Err: cause}
}

// badAnswer is an error of a call that the App did answer, without a usable result.
func badAnswer(message string) *domain.AppError {
	return &domain.AppError{Message: message}
}

// callError turns the end of a failed call into the error that the caller gets.
func (s *session) callError(err error, e end) error {
	var fault *jsonrpc.Error
	switch {
	case e.refused != nil:
		return e.refused
	case e.verdict != nil && !e.answered:
		e.verdict.Message = s.hide(e.verdict.Message)
		return e.verdict
	case e.answered && errors.As(err, &fault):
		return badAnswer("The App refused the call: " + s.hide(cleanLine(fault.Message, maxFault)))
	case e.answered:
		return badAnswer("The App's answer to the call is not a valid MCP result; whether the call ran is not known")
	case !e.out:
		return notSent("The call was not sent. "+s.unreachable(err), s.cause(err))
	case errors.Is(err, context.DeadlineExceeded):
		return noAnswer("The App did not answer in time; whether the call ran is not known", s.cause(err))
	case errors.Is(err, context.Canceled):
		return noAnswer("Waiting for the App was given up; whether the call ran is not known", s.cause(err))
	}
	return noAnswer("The connection to the App ended before it answered; whether the call ran is not known", s.cause(err))
}

// readError turns a failed read, or a failed connect, into the error that the
// caller gets.
func (s *session) readError(err error) *domain.AppError {
	var app *domain.AppError
	if errors.As(err, &app) {
		return app
	}
	return notSent(s.unreachable(err), s.cause(err))
}

// unreachable says in words why an App could not be spoken to.
func (s *session) unreachable(err error) string {
	status, tooBig, _ := s.notes()
	var (
		fault   *jsonrpc.Error
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		plain   *url.Error
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "The App did not answer in time"
	case s.process != nil && s.process.trouble() != "":
		return s.process.trouble()
	case spoke(err) && errors.As(err, &fault):
		return "The App refused: " + s.hide(cleanLine(fault.Message, maxFault))
	case errors.Is(err, errForbiddenAddress):
		return "The App's address is private or reserved; an operator can allow private networks for Apps"
	case errors.As(err, &dns):
		return "The name of the App's host cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "The App's host refused the connection; is the App running?"
	case errors.As(err, &unknown), errors.As(err, &cert):
		return "The App's certificate is not trusted"
	case errors.As(err, &record):
		return "The App does not speak TLS at this address; try http:// instead of https://"
	case errors.Is(err, exec.ErrNotFound):
		return "The command of the App is not installed on the server"
	case tooBig:
		return fmt.Sprintf("The App answered with more than %d MiB", maxBody>>20)
	case status != 0:
		return statusText(status)
	case errors.As(err, &plain):
		return "The App cannot be reached"
	}
	return "The App did not answer as an MCP server does"
}

// spoke reports whether err is an error that the App itself answered. The library
// uses the same type, with these codes, for what happened on this side.
func spoke(err error) bool {
	const closing, serverClosing, rejected = -32003, -32004, -32005
	var fault *jsonrpc.Error
	if !errors.As(err, &fault) {
		return false
	}
	return fault.Code != closing && fault.Code != serverClosing && fault.Code != rejected
}

// cause is err for logs, without the address, whose query may hold a key, and
// without the secrets of the Connection.
func (s *session) cause(err error) error {
	if err == nil {
		return nil
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	for _, kind := range []error{context.DeadlineExceeded, context.Canceled, errForbiddenAddress} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	text := err.Error()
	if s.url != "" {
		text = strings.ReplaceAll(text, s.url, "the App's URL")
	}
	return errors.New(s.hide(cleanLine(text, maxFault)))
}

// hide blanks the secrets of the Connection out of a text of the App, which may
// repeat what it was sent.
func (s *session) hide(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// secretsToHide lists what hide blanks out: each value, and each word of it, such
// as the token after "Bearer".
func secretsToHide(secrets domain.AppSecrets) []string {
	var out []string
	for _, values := range []map[string]string{secrets.Headers, secrets.Env} {
		for _, value := range values {
			for _, word := range append([]string{value}, strings.Fields(value)...) {
				if len(word) >= minSecretToHide {
					out = append(out, word)
				}
			}
		}
	}
	return out
}
