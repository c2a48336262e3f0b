package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"openbot/domain"
)

// monitoringPolicy lets the queue's pages run their own script, which stands in
// their first page.
const monitoringPolicy = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// monitoring mounts the queue's own pages: admins may act on them, readers look.
func (s *server) monitoring(r *gin.Engine) {
	if s.Monitoring == nil {
		return
	}
	acting := s.origins.Handler(s.Monitoring(s.place.root+"/monitoring", false))
	reading := s.origins.Handler(s.Monitoring(s.place.root+"/monitoring", true))
	show := func(gc *gin.Context) {
		ctx, cancel := context.WithTimeout(gc.Request.Context(), requestTimeout)
		defer cancel()
		p, err := s.whoever(ctx, gc)
		if err == nil {
			err = mayCall(p, domain.RoleRead)
		}
		if err != nil {
			s.refuse(gc, s.failure(ctx, err))
			return
		}
		infoFrom(ctx).identified(p)
		gc.Request.Body = http.MaxBytesReader(gc.Writer, gc.Request.Body, maxBody)
		gc.Writer.Header().Set("Content-Security-Policy", monitoringPolicy)
		// These pages know themselves by their whole path.
		seen, address := *gc.Request, *gc.Request.URL
		address.Path, address.RawPath = s.place.root+address.Path, ""
		seen.URL = &address
		if p.HasRole(domain.RoleAdmin) {
			acting.ServeHTTP(gc.Writer, &seen)
		} else {
			reading.ServeHTTP(gc.Writer, &seen)
		}
	}
	r.GET("/monitoring", func(gc *gin.Context) { gc.Redirect(http.StatusFound, at(gc, "/monitoring/")) })
	r.Any("/monitoring/*any", show)
}

// whoever finds who calls by a token or, without one, by the session cookie.
func (s *server) whoever(ctx context.Context, gc *gin.Context) (domain.Principal, error) {
	if gc.Request.Header.Get("Authorization") != "" {
		p, _, err := s.authenticate(ctx, gc.Request, gc.ClientIP())
		return p, err
	}
	return s.fromBrowser(ctx, gc)
}
