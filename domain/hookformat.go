package domain

import (
	"regexp"
	"strings"
)

// HookFormat is how the messages to a webhook look.
type HookFormat string

const (
	// FormatStandard is a message for programs, signed as Standard Webhooks says.
	FormatStandard HookFormat = "standard"
	// FormatEmail is an e-mail to the mailto: address of the webhook.
	FormatEmail HookFormat = "email"
	// FormatSlack is a message to an incoming webhook of Slack.
	FormatSlack HookFormat = "slack"
	// FormatNtfy is a message to a topic of an ntfy server.
	FormatNtfy HookFormat = "ntfy"
)

// HookFormats lists every format.
func HookFormats() []HookFormat {
	return []HookFormat{FormatStandard, FormatEmail, FormatSlack, FormatNtfy}
}

// ForPeople reports whether a person reads the messages. People hear of a Request when a
// person must decide it, and of nothing that is over by the time the message goes out.
func (f HookFormat) ForPeople() bool { return f != FormatStandard }

const (
	mailScheme = "mailto:"
	// maxMailAddress is the longest address that a mail server must take (RFC 5321).
	maxMailAddress = 254
)

// mailAddress takes the addresses that people have. It leaves no room for a second
// address, a header or a parameter.
var mailAddress = regexp.MustCompile(`^[A-Za-z0-9_=~'+-]+(\.[A-Za-z0-9_=~'+-]+)*@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)

// MailAddress gives the address in a mailto: link, and its domain in small letters; false
// when it is not one plain address.
func MailAddress(link string) (address, host string, ok bool) {
	address, ok = strings.CutPrefix(link, mailScheme)
	if !ok || !ValidMailAddress(address) {
		return "", "", false
	}
	return address, MailDomain(address), true
}

// ValidMailAddress reports whether a text is one plain mail address.
func ValidMailAddress(address string) bool {
	return len(address) <= maxMailAddress && mailAddress.MatchString(address)
}

// MailDomain gives the domain of a mail address in small letters.
func MailDomain(address string) string {
	_, host, _ := strings.Cut(address, "@")
	return strings.ToLower(host)
}
