package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// Proxies lists the addresses and networks of TrustedProxies.
func (c Config) Proxies() []string {
	var out []string
	for part := range strings.SplitSeq(c.TrustedProxies, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func checkProxies(proxies []string) error {
	for _, p := range proxies {
		_, notNetwork := netip.ParsePrefix(p)
		_, notAddress := netip.ParseAddr(p)
		if notNetwork != nil && notAddress != nil {
			return fmt.Errorf("must be addresses or networks such as 10.0.0.0/8, separated by commas, not %s", quote(p))
		}
	}
	return nil
}

// The path goes into every page, so it is one that needs no escaping.
var publicPath = regexp.MustCompile(`^(/[A-Za-z0-9][A-Za-z0-9._~-]*)*/?$`)

func checkPublicURL(address string) error {
	if err := checkWebURL(address); err != nil {
		return err
	}
	if u, err := url.Parse(address); err == nil && !publicPath.MatchString(u.EscapedPath()) {
		return errors.New("must have a path of letters, digits and .-_~ between slashes, such as https://example.com/openbot")
	}
	return nil
}
