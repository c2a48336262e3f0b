package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"openbot/domain/engine"
	"openbot/web"
)

// Options are what the HTTP door is made of.
type Options struct {
	// Engine carries out what callers ask for. Required.
	Engine *engine.Engine
	// Logger gets one line for each request; nil discards them.
	Logger *slog.Logger
	// Monitoring gives the queue's own pages for the path under which browsers see them,
	// /monitoring below that of PublicURL; nil for none.
	Monitoring func(rootPath string, readOnly bool) http.Handler
	// QueueReady reports whether the queue answers; nil means that it does.
	QueueReady func(ctx context.Context) error
	// Registry holds the metrics; nil makes one.
	Registry *prometheus.Registry
	// Version is that of the server, for the OpenAPI document.
	Version string
	// TrustedProxies are addresses or networks whose X-Forwarded-For is believed; none
	// when empty.
	TrustedProxies []string
	// PublicURL is where people reach the server, with the path under which a proxy shows
	// it, if any. Forms from there are taken whatever Host the proxy sends. Empty means the
	// address that each caller used.
	PublicURL string
	// SessionKey seals the cookies of the plain page; at least 16 bytes. Empty makes a
	// key that ends with the process, and the sessions with it.
	SessionKey []byte
	// FailedAuthLimit is how many wrong tokens an address may send a minute; 0 means
	// what the organization set.
	FailedAuthLimit int
	// Stopping ends open event streams when it ends, so that a server that shuts down
	// need not wait for them; nil means never.
	Stopping context.Context
}

// server is the HTTP door with everything that its handlers need.
type server struct {
	Options
	huma    huma.API
	metrics *metrics
	limits  limits
	session *sessions
	origins *http.CrossOriginProtection
	place   place
	site    *web.Site
}

var ginMode = sync.OnceFunc(func() { gin.SetMode(gin.ReleaseMode) })

// New makes the handler of everything that the server speaks over HTTP. It fails
// for options that do not fit.
func New(o Options) (http.Handler, error) {
	if o.Engine == nil {
		return nil, errors.New("the HTTP door needs an engine")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Stopping == nil {
		o.Stopping = context.Background()
	}
	if len(o.SessionKey) == 0 {
		o.SessionKey = make([]byte, 32)
		rand.Read(o.SessionKey) // never fails: it ends the program when there is no randomness
	}
	s := &server{Options: o, origins: http.NewCrossOriginProtection()}
	var err error
	if s.place, err = placeOf(o.PublicURL); err != nil {
		return nil, err
	}
	if s.place.origin != "" {
		if err := s.origins.AddTrustedOrigin(s.place.origin); err != nil {
			return nil, fmt.Errorf("trust the forms of the public address: %w", err)
		}
	}
	s.site = web.NewSite(s.place.root)
	if s.metrics, err = newMetrics(o.Registry); err != nil {
		return nil, fmt.Errorf("register the HTTP metrics: %w", err)
	}
	if s.session, err = newSessions(o.SessionKey); err != nil {
		return nil, err
	}
	ginMode()
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.UseEscapedPath, r.UnescapePathValues = true, true // an ID that holds %2F is still one ID
	if err := r.SetTrustedProxies(o.TrustedProxies); err != nil {
		return nil, fmt.Errorf("read the trusted proxies: %w", err)
	}
	r.Use(s.outermost)
	r.NoRoute(func(gc *gin.Context) {
		writeProblem(gc, newProblem(http.StatusNotFound, "RouteNotFound", "There is nothing at this address. The addresses are listed at /docs."))
	})
	r.NoMethod(func(gc *gin.Context) {
		writeProblem(gc, newProblem(http.StatusMethodNotAllowed, "MethodNotAllowed", "This address does not take this method. The header Allow names those that it takes."))
	})
	s.huma = humagin.New(r, s.document())
	s.huma.UseMiddleware(s.guard)
	s.routes()
	if err := s.pages(r); err != nil {
		return nil, err
	}
	r.GET("/metrics", gin.WrapH(promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{})))
	s.monitoring(r)
	if err := s.place.fits(r.Routes()); err != nil {
		return nil, err
	}
	return s.place.below(r), nil
}

func (s *server) routes() {
	s.healthRoutes()
	s.meRoutes()
	s.requestRoutes()
	s.approvalRoutes()
	s.chatRoutes()
	s.delegationRoutes()
	s.triggerRoutes()
	s.turnRoutes()
	s.observeRoutes()
	s.botRoutes()
	s.connectionRoutes()
	s.toolRoutes()
	s.webhookRoutes()
	s.channelRoutes()
	s.memberRoutes()
	s.tokenRoutes()
	s.settingRoutes()
	s.grantRoutes()
	s.ruleRoutes()
	s.usageRoutes()
	s.evidenceRoutes()
	s.auditRoutes()
}
