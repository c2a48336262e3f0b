// Package mail hands e-mail to a mail server. It opens a connection for each message,
// sends it once, and never tries again by itself: whether it goes out again is decided
// elsewhere. It knows nothing of Requests or webhooks.
package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	gomail "github.com/wneessen/go-mail"

	"openbot/domain"
)

// timeout ends connecting, and again what follows it. Both together stay below the lease
// of a delivery.
const timeout = 10 * time.Second

// How the connection is kept from being read.
const (
	// TLSStart upgrades a plain connection and sends nothing when that fails.
	TLSStart = "starttls"
	// TLSFromStart speaks TLS from the first byte.
	TLSFromStart = "tls"
	// TLSNone sends in the clear, without a password: for a relay on the same machine.
	TLSNone = "none"
)

// Options say how the mail server is reached.
type Options struct {
	Host string
	Port int
	TLS  string // one of the constants above
	// User and Password log in; both empty for a server that asks for none.
	User     string
	Password string
	// From is the address that mail comes from.
	From string
	// Roots are the authorities that are trusted; nil means the system's.
	Roots *x509.CertPool
}

// Mailer sends mail through one server. It keeps no connection open.
type Mailer struct{ options Options }

// New makes a Mailer.
func New(o Options) *Mailer { return &Mailer{o} }

// Send hands one message to the server and gives the SMTP status with which it was taken
// or refused. Its error is a *domain.AppError: no server took or refused it.
func (m *Mailer) Send(ctx context.Context, mail domain.Mail) (int, error) {
	message, err := m.message(mail)
	if err != nil {
		return 0, &domain.AppError{Message: "The mail was not sent: its address or that of the sender is broken", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	line := &line{}
	defer line.close()
	client, err := m.client(line)
	if err != nil {
		return 0, &domain.AppError{Message: "The mail was not sent: the settings of the mail server do not fit", Err: err}
	}
	err = client.DialAndSendWithContext(ctx, message)
	if message.IsDelivered() {
		return taken, nil // a goodbye that failed takes nothing back
	}
	var refused *gomail.SendError
	if errors.As(err, &refused) && refused.ErrorCode() >= 400 {
		return refused.ErrorCode(), nil
	}
	return 0, unreached(err)
}

// taken is what a server answers that took a message.
const taken = 250

// line is the connection of one message. It is closed whatever comes of it: the library
// leaves one open whose server offers no TLS.
type line struct{ conn net.Conn }

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	l.conn = conn
	return conn, err
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close() // it is closed already when all went well
	}
}

func (m *Mailer) client(l *line) (*gomail.Client, error) {
	o := m.options
	options := []gomail.Option{gomail.WithPort(o.Port), gomail.WithTimeout(timeout), gomail.WithHELO(domain.MailDomain(o.From)),

		gomail.WithTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.Host, RootCAs: o.Roots})}
	switch o.TLS {
	case TLSFromStart:
		options = append(options, gomail.WithSSL())
	case TLSNone:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS), gomail.WithDialContextFunc(l.dial))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory), gomail.WithDialContextFunc(l.dial))
	}
	if o.User != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(o.User), gomail.WithPassword(o.Password))
	}
	return gomail.NewClient(o.Host, options...)
}

// message is plain text and nothing else: there is nothing in it that a mail program
// would run, load or follow by itself.
func (m *Mailer) message(mail domain.Mail) (*gomail.Msg, error) {
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if !domain.ValidMailAddress(mail.To) {
		return nil, fmt.Errorf("%q is no plain address", mail.To)
	}
	if err := message.FromFormat("OpenBot", m.options.From); err != nil {
		return nil, err
	}
	if err := message.To(mail.To); err != nil {
		return nil, err
	}
	message.Subject(domain.PlainLine(mail.Subject, maxSubject))
	message.SetMessageIDWithValue(string(mail.ID) + "@" + domain.MailDomain(m.options.From))
	message.SetDate()
	// Answers of machines, such as "out of office", are not wanted.
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetGenHeader(gomail.HeaderXAutoResponseSuppress, "All")
	message.SetBodyString(gomail.TypeTextPlain, mail.Text)
	return message, nil
}

// maxSubject is the longest subject, in characters.
const maxSubject = 200

// unreached says in words why no server took or refused a message. What the server or
// the library said stays out of it: it may repeat the name and the password.
func unreached(err error) *domain.AppError {
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &domain.AppError{NoAnswer: true, Message: "The mail server did not answer in time"}
	case errors.As(err, &dns):
		return &domain.AppError{Message: "The name of the mail server cannot be resolved"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &domain.AppError{Message: "The mail server refused the connection"}
	case errors.As(err, &cert):
		return &domain.AppError{Message: "The certificate of the mail server is not trusted"}
	}
	return &domain.AppError{NoAnswer: true, Message: "The mail server did not take the message: it ended the connection, offers no TLS, or refused the name and password"}
}
