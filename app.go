package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"openbot/api"
	"openbot/apps"
	"openbot/apps/example"
	"openbot/config"
	"openbot/domain"
	"openbot/domain/engine"
	"openbot/mail"
	"openbot/model"
	"openbot/program"
	"openbot/queue"
	"openbot/repository"
	"openbot/scheduler"
	"openbot/telemetry"
	"openbot/worker"
)

// Options say which parts of the program an App runs.
type Options struct {
	Config  config.Config
	Role    string    // serve, api, worker or scheduler
	Example bool      // offer the example App also outside the embedded mode
	Out     io.Writer // gets what a person must read once
	Logger  *slog.Logger
}

// App is the whole program: the only place that knows every part. Tests run the
// same one.
type App struct {
	options   Options
	log       *slog.Logger
	store     *repository.Store
	queue     *queue.Queue
	engine    *engine.Engine
	apps      *apps.Apps
	models    *model.Models
	registry  *prometheus.Registry
	tracing   *telemetry.Tracing // nil when it is off
	workers   []*queue.Server
	scheduler *scheduler.Scheduler
	listener  net.Listener
	server    *http.Server
	example   bool
	session   []byte             // seals cookies and login links
	stop      context.CancelFunc // ends what lives as long as the program
	life      context.Context
}

// stopWithin is how long a stop may take.
const stopWithin = 24 * time.Second

// exampleHost is the in-process address of the example App; no name server knows
// it.
const exampleHost = "example.openbot.internal"

// Open prepares the program: it opens the database, migrates it when the role may,
// and listens. Nothing runs before Run.
func Open(ctx context.Context, o Options) (*App, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	a, err := OpenStore(ctx, o.Config)
	if err != nil {
		return nil, err
	}
	a.options, a.log = o, o.Logger
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// OpenStore opens the database alone, for commands that need no more.
func OpenStore(ctx context.Context, cfg config.Config) (*App, error) {
	a := &App{options: Options{Config: cfg}, log: slog.New(slog.DiscardHandler)}
	a.life, a.stop = context.WithCancel(context.Background())
	if cfg.DatabaseURL.IsZero() {
		if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
			return nil, fmt.Errorf("the data folder %s cannot be made: %w", cfg.Data, err)
		}
	}
	store, err := repository.Open(ctx, repository.Options{URL: cfg.DatabaseURL.Reveal(), File: filepath.Join(cfg.Data, "openbot.db")})
	if err != nil {
		return nil, err
	}
	a.store = store
	return a, nil
}

func (a *App) open(ctx context.Context) error {
	cfg := a.options.Config
	role := a.options.Role
	if role == "serve" {
		if err := a.store.Migrate(ctx); err != nil {
			return err
		}
	}
	if err := a.store.Ready(ctx); err != nil {
		return err
	}
	secret, sealer, err := openSealer(cfg)
	if err != nil {
		return err
	}
	if a.queue, err = queue.Open(ctx, queue.Options{RedisURL: cfg.RedisURL.Reveal(), Logger: a.log}); err != nil {
		return err
	}
	a.models = model.New(model.Options{OpenAIKey: cfg.Models.OpenAI.APIKey.Reveal(), OpenAIBaseURL: cfg.Models.OpenAI.BaseURL,
		AnthropicKey: cfg.Models.Anthropic.APIKey.Reveal(), AnthropicBaseURL: cfg.Models.Anthropic.BaseURL})
	for _, m := range []string{cfg.Models.Default, cfg.Models.Judge, cfg.Models.Reviewer} {
		if err := a.models.Known(m); err != nil {
			return err
		}
	}
	if a.tracing, err = telemetry.OpenTracing(ctx, cfg.TracesEndpoint, role, version, a.log); err != nil {
		return err
	}
	a.registry = prometheus.NewRegistry()
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), a.queue.Collector())
	if role == "serve" || role == "scheduler" {
		a.registry.MustRegister(telemetry.Open(a.store.Standing))
	}
	a.engine = engine.New(engine.Options{Store: a.store, Ringer: a.tracing.Ringer(a.queue), Live: a.queue, Limiter: a.queue, Models: a.models,
		Sealer: sealer, Logger: a.log, Meter: telemetry.NewMeter(a.registry, version), DefaultModel: cfg.Models.Default, JudgeModel: cfg.Models.Judge, ReviewerModel: cfg.Models.Reviewer, CheckModel: a.models.Known, CheckURL: apps.CheckURL,
		AllowCommands: cfg.Apps.AllowCommands, PublicURL: strings.TrimSuffix(cfg.PublicURL, "/"), MailDomain: mailDomain(cfg)})
	if err := a.engine.PrepareKeys(ctx); err != nil {
		return err
	}
	a.example = a.options.Example || role == "serve" && cfg.DatabaseURL.IsZero()
	if role == "serve" || role == "worker" {
		if err := a.openWorker(sealer); err != nil {
			return err
		}
	}
	if role == "serve" || role == "scheduler" {
		a.scheduler = scheduler.New(scheduler.Options{Engine: a.engine, Ringer: a.queue, Backlog: a.queue, Logger: a.log, Registry: a.registry})
	}
	return a.openServer(secret)
}

func (a *App) openWorker(sealer *apps.Sealer) error {
	cfg := a.options.Config
	options := apps.Options{AllowPrivate: cfg.Apps.AllowPrivateNetworks, AllowCommands: cfg.Apps.AllowCommands, Sealer: sealer, Logger: a.log}
	if a.example {
		handler, err := example.Handler(filepath.Join(cfg.Data, "example"))
		if err != nil {
			return err
		}
		options.InProcess = map[string]http.Handler{exampleHost: handler}
	}
	a.apps = apps.New(options)
	programs, err := program.NewRunner(program.RunOptions{})
	if err != nil {
		return err
	}
	mailer, err := openMailer(cfg)
	if err != nil {
		return err
	}
	w := worker.New(worker.Options{Mailer: mailer, Engine: a.engine, Models: a.tracing.Models(a.models), Apps: a.tracing.Apps(a.apps), Hosts: a.tracing.Hosts(a.apps), Hooks: a.apps, Programs: programs, Logger: a.log, Metrics: worker.NewMetrics(a.registry)})
	handle := a.tracing.Task(w.Handle)
	// Six servers: slow models and Apps fill the first, and answers still get through
	// on the second; a slow judge fills the third alone, programs the fourth, receivers
	// that do not answer the fifth, and what can wait the last.
	a.workers = []*queue.Server{
		queue.NewServer(a.queue, queue.ServerOptions{Concurrency: cfg.Workers(), Logger: a.log,
			Only: []domain.Urgency{domain.UrgencyAnswer, domain.UrgencyTurn, domain.UrgencyReview}}, handle),
		queue.NewServer(a.queue, queue.ServerOptions{Concurrency: cfg.Workers(), Logger: a.log, Only: []domain.Urgency{domain.UrgencyAnswer}}, handle),
		queue.NewServer(a.queue, queue.ServerOptions{Concurrency: cfg.Workers(), Logger: a.log, Only: []domain.Urgency{domain.UrgencyJudge}}, handle),
		queue.NewServer(a.queue, queue.ServerOptions{Concurrency: cfg.Workers(), Logger: a.log, Only: []domain.Urgency{domain.UrgencyProgram}}, handle),
		queue.NewServer(a.queue, queue.ServerOptions{Concurrency: cfg.Workers(), Logger: a.log, Only: []domain.Urgency{domain.UrgencyDelivery}}, handle),
		queue.NewServer(a.queue, queue.ServerOptions{Concurrency: cfg.Workers(), Logger: a.log, Only: []domain.Urgency{domain.UrgencyRest}}, handle),
	}
	return nil
}

// openMailer gives what sends mail; nil when no mail server is set.
func openMailer(cfg config.Config) (engine.Mailer, error) {
	if cfg.Mail.ServerURL.IsZero() {
		return nil, nil
	}
	s, err := cfg.Mail.SMTP()
	if err != nil {
		return nil, fmt.Errorf("OPENBOT_SMTP_URL %w", err)
	}
	return mail.New(mail.Options{Host: s.Host, Port: s.Port, TLS: s.TLS, User: s.User, Password: s.Password, From: cfg.Mail.From}), nil
}

// mailDomain is the domain that mail is sent from; "" when none is sent.
func mailDomain(cfg config.Config) string {
	if cfg.Mail.ServerURL.IsZero() {
		return ""
	}
	return domain.MailDomain(cfg.Mail.From)
}

func (a *App) openServer(secret config.Secret) error {
	a.session = []byte(secret.Reveal())
	options := api.Options{Engine: a.engine, Logger: a.log, Registry: a.registry, Version: version, QueueReady: a.queue.Ping,
		SessionKey: a.session, Stopping: a.life,
		PublicURL: a.options.Config.PublicURL, TrustedProxies: a.options.Config.Proxies(), Monitoring: a.queue.Monitor}
	handler, err := api.New(options)
	if err != nil {
		return err
	}
	if a.options.Role == "worker" || a.options.Role == "scheduler" {
		handler = healthOnly(handler)
	}
	a.server = &http.Server{Handler: a.tracing.HTTP(handler), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, BaseContext: func(net.Listener) context.Context { return a.life },
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn)}
	if a.listener, err = net.Listen("tcp", a.options.Config.Listen); err != nil {
		return fmt.Errorf("OPENBOT_LISTEN: %w", err)
	}
	return nil
}

// healthOnly leaves health and metrics of a handler: workers and schedulers serve
// nothing else.
func healthOnly(all http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"GET /healthz", "GET /readyz", "GET /metrics"} {
		mux.Handle(path, all)
	}
	return mux
}

// Address is where the program listens, as http://host:port.
func (a *App) Address() string { return "http://" + a.listener.Addr().String() }

// Run runs the program until ctx ends, then stops it: it takes no new work,
// finishes or hands back what runs, and returns within 25 s.
func (a *App) Run(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // what lives is a few MiB: by default it would be walked many times a second
	}
	fatal := make(chan error, 1)
	go func() {
		if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			fatal <- err
		}
	}()
	for _, w := range a.workers {
		if err := w.Start(); err != nil {
			return errors.Join(err, a.Close())
		}
	}
	var running sync.WaitGroup
	if a.scheduler != nil {
		running.Go(func() { a.scheduler.Run(a.life) })
	}
	err := a.firstStart(ctx)
	if ctx.Err() != nil {
		err = nil // stopped while it was starting
	}
	if err == nil {
		select {
		case err = <-fatal:
		case <-ctx.Done():
		}
	}
	a.log.Info("stopping")
	a.stop()
	running.Wait()
	return errors.Join(err, a.Close())
}

// Close stops and closes every part; it is safe to call twice.
func (a *App) Close() error {
	a.stop()
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	var stopping sync.WaitGroup
	if a.server != nil {
		stopping.Go(func() {
			if a.server.Shutdown(ctx) != nil {
				_ = a.server.Close() // what did not end in time is cut
			}
		})
	}
	for _, w := range a.workers {
		stopping.Go(w.Stop)
	}
	stopping.Wait()
	if a.listener != nil {
		_ = a.listener.Close() // already closed when the server ran
	}
	var errs []error
	if a.apps != nil {
		errs = append(errs, a.apps.Close())
		a.apps = nil
	}
	if a.tracing != nil {
		// Traces of the last moments are not worth a stop that fails.
		sending, done := context.WithTimeout(context.Background(), 2*time.Second)
		if err := a.tracing.Close(sending); err != nil {
			a.log.Warn("the last traces were not sent", "error", err)
		}
		done()
		a.tracing = nil
	}
	if a.models != nil {
		a.models.Close()
	}
	if a.queue != nil {
		errs = append(errs, a.queue.Close())
		a.queue = nil
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
		a.store = nil
	}
	return errors.Join(errs...)
}

// firstStart makes the first organization, Member and token when there are none,
// and waits for them in roles that cannot make them.
func (a *App) firstStart(ctx context.Context) error {
	role := a.options.Role
	if role != "serve" && role != "api" {
		return nil // their work begins with rows, and there are none before the first start
	}
	secret, err := a.engine.FirstStart(ctx, a.options.Config.Token.Reveal())
	if err != nil {
		return err
	}
	chat := ""
	if secret != "" && a.example {
		if chat, err = a.prepareExample(ctx, secret); err != nil {
			return err
		}
	}
	a.greet(secret, chat)
	return nil
}

// prepareExample connects the example App and makes a Chat to try it in.
func (a *App) prepareExample(ctx context.Context, secret string) (string, error) {
	p, err := a.engine.Authenticate(ctx, secret)
	if err != nil {
		return "", err
	}
	name, transport, address, shared := "example", domain.TransportHTTP, "http://"+exampleHost+"/mcp", true
	if _, err := a.engine.CreateConnection(ctx, p, engine.ConnectionFields{Name: &name, Transport: &transport, URL: &address, Shared: &shared}); err != nil {
		return "", err
	}
	chat, err := a.engine.CreateChat(ctx, p, engine.NewChat{Title: "A first try"})
	return string(chat.ID), err
}

func (a *App) createToken(ctx context.Context, name, member string, scopes []string, expires time.Duration) (string, error) {
	if err := a.store.Ready(ctx); err != nil {
		return "", err
	}
	e := engine.New(engine.Options{Store: a.store, Ringer: silent{}, Live: silent{}})
	p, err := a.store.Operator(ctx)
	if err != nil {
		return "", err
	}
	ctx = engine.WithOrigin(ctx, &engine.Origin{Member: p.Member.ID, Operator: true})
	in := engine.NewToken{Name: name, Member: domain.MemberID(member), Scopes: scopes}
	if expires > 0 {
		at := time.Now().Add(expires)
		in.ExpiresAt = &at
	}
	_, secret, err := e.CreateToken(ctx, p, in)
	return secret, err
}

// silent rings nobody: a command that writes one row has nobody to wake.
type silent struct{}

func (silent) Ring(context.Context, ...domain.Task)       {}
func (silent) Publish(context.Context, ...string)         {}
func (silent) Subscribe(string) (<-chan struct{}, func()) { return nil, func() {} }
