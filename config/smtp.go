package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
)

// Mail says how e-mail goes out.
type Mail struct {
	// ServerURL names the mail server: smtp:// upgrades to TLS or sends nothing, smtps://
	// speaks TLS from the start, and smtp://host?tls=none sends in the clear. Empty sends
	// no mail. SMTP takes it apart.
	ServerURL Secret `yaml:"smtpUrl"`
	// From is the address that mail comes from.
	From string `yaml:"from"`
}

// SMTP is a mail server, as ServerURL names it.
type SMTP struct {
	Host     string
	Port     int
	TLS      string // starttls, tls or none
	User     string
	Password string
}

// SMTP takes the address of the mail server apart. Its error never holds a password.
func (m Mail) SMTP() (SMTP, error) {
	u, err := url.Parse(m.ServerURL.Reveal())
	if err != nil {
		return SMTP{}, errors.New("must be an address such as smtp://user:password@host:587, with every special character of the password escaped")
	}
	s := SMTP{Host: u.Hostname(), User: u.User.Username()}
	s.Password, _ = u.User.Password()
	switch u.Scheme {
	case "smtp":
		s.Port, s.TLS = 587, "starttls"
	case "smtps":
		s.Port, s.TLS = 465, "tls"
	default:
		return SMTP{}, errors.New("must start with smtp:// or smtps://")
	}
	if s.Host == "" || u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return SMTP{}, errors.New("must name a host, and nothing after it but a port")
	}
	if port := u.Port(); port != "" {
		if s.Port, err = strconv.Atoi(port); err != nil || s.Port < 1 || s.Port > 65535 {
			return SMTP{}, fmt.Errorf("must have a port from 1 to 65535, not %s", quote(port))
		}
	}
	switch query := u.Query(); {
	case u.RawQuery == "":
	case len(query) == 1 && query.Get("tls") == "none" && u.Scheme == "smtp":
		s.TLS = "none"
	default:
		return SMTP{}, errors.New("takes ?tls=none behind smtp:// and no other parameter")
	}
	if s.TLS == "none" && u.User != nil {
		return SMTP{}, errors.New("must not send a name and password without TLS: leave out ?tls=none, or the name and password")
	}
	return s, nil
}

// sender is narrower than what mail allows: it becomes part of other addresses.
var sender = regexp.MustCompile(`^[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,180}[A-Za-z0-9])?$`)

// checkMail looks at the settings that only work together.
func (c Config) checkMail(found *faults) {
	if c.Mail.From != "" && !sender.MatchString(c.Mail.From) {
		found.add("%s must be one plain address such as openbot@example.com, not %s", nameOf("mail.from"), quote(c.Mail.From))
	}
	if c.Mail.ServerURL.IsZero() {
		return
	}
	if _, err := c.Mail.SMTP(); err != nil {
		found.add("%s %v", nameOf("mail.smtpUrl"), err)
	}
	if c.Mail.From == "" {
		found.add("%s is required with OPENBOT_SMTP_URL: the address that mail comes from", nameOf("mail.from"))
	}
	if c.PublicURL == "" {
		found.add("%s is required with OPENBOT_SMTP_URL: mail holds links to the inbox", nameOf("publicUrl"))
	}
}
