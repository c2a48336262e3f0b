package apps

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"openbot/domain"
)

// maxURL is the longest address of an App or a receiver, in bytes.
const maxURL = 2048

// errForbiddenAddress is a dial that the guard refused.
var errForbiddenAddress = errors.New("the address is private or reserved")

// guardedDialer dials only where the guard lets it. The check sits in Control, which
// runs after name resolution for every single address, so neither a name that
// resolves to a private address nor one that changes its mind slips through.
func guardedDialer(allowPrivate bool) *net.Dialer {
	public := ssrf.New(ssrf.WithAnyPort())
	return &net.Dialer{
		Timeout:   10 * time.Second,
		KeepAlive: 30 * time.Second,
		Control: func(network, address string, raw syscall.RawConn) error {
			if !allowPrivate {
				if err := public.Safe(network, address, raw); err != nil {
					return fmt.Errorf("%w: %w", errForbiddenAddress, err)
				}
				return nil
			}
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %q", errForbiddenAddress, address)
			}
			if neverAllowed(at.Addr()) {
				return fmt.Errorf("%w: %s", errForbiddenAddress, at.Addr())
			}
			return nil
		},
	}
}

// metadataIPv6 is where a large cloud answers metadata requests over IPv6.
var metadataIPv6 = netip.MustParseAddr("fd00:ec2::254")

// neverAllowed reports addresses that no setting opens: link-local ones, where
// clouds hand out credentials, multicast, and the unspecified address; also when
// they hide in an IPv6 form of an IPv4 address.
func neverAllowed(addr netip.Addr) bool {
	addr = plainIPv4(addr.WithZone(""))
	return addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || addr == metadataIPv6
}

// plainIPv4 takes the IPv4 address out of its mapped, NAT64 (RFC 6052) and 6to4
// (RFC 3056) forms.
func plainIPv4(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	switch {
	case ssrf.IPv6NAT64Prefix.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}

// CheckURL reports whether text can be the address of an App or a receiver: absolute, http or
// https, with a host, without user information or fragment, and not an address
// that is never reached. Its error is a *domain.Error of code invalid with a
// message for people. Whether a private address is reached is decided on dialling.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

func parseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, invalidURL("the URL has at most %d characters", maxURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, invalidURL("the URL cannot be read; write it like https://app.example.com/mcp")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, invalidURL("the URL starts with https:// or http://")
	case u.Hostname() == "":
		return nil, invalidURL("the URL has no host")
	case u.User != nil:
		return nil, invalidURL("the URL holds no user name or password; put credentials into a header")
	case u.Fragment != "":
		return nil, invalidURL("the URL has no #fragment")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, invalidURL("the port in the URL is not between 1 and 65535")
		}
	}
	if addr, err := netip.ParseAddr(strings.Trim(u.Hostname(), "[]")); err == nil && neverAllowed(addr) {
		return nil, invalidURL("the URL names an address that is never reached")
	}
	return u, nil
}

func invalidURL(format string, args ...any) *domain.Error {
	return domain.Errorf(domain.CodeInvalid, "ConnectionInvalid", format, args...)
}
