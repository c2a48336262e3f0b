package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"
)

// place is where people reach the server, through whatever stands before it.
type place struct {
	origin string // scheme and host; "" when it is not known
	root   string // the path before every address, as /openbot; "" for none
}

// plainPath needs no escaping anywhere, in templates and headers neither.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)

func placeOf(address string) (place, error) {
	if address == "" {
		return place{}, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return place{}, errors.New("the public address must be one that starts with http:// or https://")
	}
	root := strings.TrimSuffix(u.EscapedPath(), "/")
	if !plainPath.MatchString(root) {
		return place{}, errors.New("the path of the public address must be made of letters, digits and .-_~ between slashes")
	}
	return place{origin: u.Scheme + "://" + u.Host, root: root}, nil
}

// at is a path of this server as a browser reaches it.
func at(gc *gin.Context, path string) string { return infoFrom(gc.Request.Context()).root + path }

// below serves under the path of the place. A proxy may take that path away or leave it:
// both are the same address.
func (p place) below(next http.Handler) http.Handler {
	if p.root == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, ok := p.without(r.URL.Path); ok {
			inner := *r
			address := *r.URL
			address.Path = path
			address.RawPath, _ = p.without(r.URL.RawPath)
			inner.URL = &address
			r = &inner
		}
		next.ServeHTTP(w, r)
	})
}

// without takes the path of the place away.
func (p place) without(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, p.root)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	if rest == "" {
		rest = "/"
	}
	return rest, true
}

// fits refuses a path that is one of the server's own: nobody could tell which is meant.
func (p place) fits(routes gin.RoutesInfo) error {
	first := firstSegment(p.root)
	for _, r := range routes {
		if first != "" && first == firstSegment(r.Path) {
			return fmt.Errorf("OPENBOT_PUBLIC_URL: the path %s begins with one of OpenBot's own, /%s: take another, such as /openbot", p.root, first)
		}
	}
	return nil
}

func firstSegment(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}
