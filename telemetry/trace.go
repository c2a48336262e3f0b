package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"openbot/domain"
	"openbot/domain/engine"
)

// Tracing sends traces to an OTLP receiver. A nil Tracing gives back what it is asked
// to stand around, so that tracing that is off costs nothing.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	context  propagation.TraceContext
}

// OpenTracing starts tracing to the OTLP endpoint, or gives nil when there is none.
// Headers, sampling and attributes of the process follow the standard OTEL_ variables.
// The receiver need not be there: what cannot be sent is dropped and said once a minute.
func OpenTracing(ctx context.Context, endpoint, role, version string, logger *slog.Logger) (*Tracing, error) {
	if endpoint == "" {
		return nil, nil //nolint:nilnil // a nil Tracing is tracing that is off
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(strings.TrimSuffix(endpoint, "/")+"/v1/traces"))
	if err != nil {
		return nil, domain.Wrap(domain.CodeInternal, "Traces", "traces cannot be sent to OTEL_EXPORTER_OTLP_ENDPOINT", err)
	}
	process, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "openbot"),
		attribute.String("service.version", version), attribute.String("openbot.role", role)), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, domain.Wrap(domain.CodeInvalid, "Traces", "OTEL_RESOURCE_ATTRIBUTES cannot be read", err)
	}
	otel.SetErrorHandler(&complaints{logger: logger})
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(process))
	return &Tracing{provider: provider, tracer: provider.Tracer("openbot")}, nil
}

// Close sends what is left, as long as ctx lasts.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// complaints logs that traces are lost, once a minute at most.
type complaints struct {
	logger *slog.Logger
	mu     sync.Mutex
	last   time.Time
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last) >= time.Minute {
		c.last = time.Now()
		c.logger.Warn("traces could not be sent", "error", err)
	}
}

// HTTP stands around the handler of the API. The API itself names the span by the route
// that it found. Probes, metrics and event streams, which last for hours, are left out.
func (t *Tracing) HTTP(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p := r.URL.Path; {
		case p == "/healthz", p == "/readyz", p == "/metrics", strings.HasPrefix(p, "/static/"), strings.HasSuffix(p, "/observe"),
			strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream"):
			next.ServeHTTP(w, r)
			return
		}
		ctx := t.context.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, "HTTP", trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Ringer gives each task the trace of what caused it.
func (t *Tracing) Ringer(next engine.Ringer) engine.Ringer {
	if t == nil {
		return next
	}
	return ringer{t, next}
}

type ringer struct {
	tracing *Tracing
	next    engine.Ringer
}

// Ring implements engine.Ringer.
func (r ringer) Ring(ctx context.Context, tasks ...domain.Task) {
	carrier := propagation.MapCarrier{}
	r.tracing.context.Inject(ctx, carrier)
	if parent := carrier["traceparent"]; parent != "" {
		for i := range tasks {
			if tasks[i].Trace == "" {
				tasks[i].Trace = parent
			}
		}
	}
	r.next.Ring(ctx, tasks...)
}

// Task stands around the handler of tasks. A task that the sweep rang begins a trace.
func (t *Tracing) Task(next func(context.Context, domain.Task) error) func(context.Context, domain.Task) error {
	if t == nil {
		return next
	}
	return func(ctx context.Context, task domain.Task) error {
		ctx = t.context.Extract(ctx, propagation.MapCarrier{"traceparent": task.Trace})
		ctx, span := t.tracer.Start(ctx, "task "+string(task.Kind), trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(attribute.String("openbot.task.kind", string(task.Kind)), attribute.String("openbot.task.subject", task.Subject)))
		defer span.End()
		err := next(ctx, task)
		fail(span, err)
		return err
	}
}

// Models stands around the models.
func (t *Tracing) Models(next engine.Models) engine.Models {
	if t == nil {
		return next
	}
	return models{next, t}
}

type models struct {
	engine.Models
	tracing *Tracing
}

// Call implements engine.Models.
func (m models) Call(ctx context.Context, request domain.ModelRequest) (domain.ModelReply, error) {
	provider, model, found := strings.Cut(request.Model, ":")
	if !found {
		model = provider
	}
	ctx, span := m.tracing.tracer.Start(ctx, "chat "+model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", provider),
		attribute.String("gen_ai.request.model", model), attribute.String("openbot.model.purpose", string(request.Purpose))))
	defer span.End()
	reply, err := m.Models.Call(ctx, request)
	span.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", reply.Usage.InputTokens),
		attribute.Int64("gen_ai.usage.output_tokens", reply.Usage.OutputTokens))
	fail(span, err)
	return reply, err
}

// Apps stands around the Apps.
func (t *Tracing) Apps(next engine.Apps) engine.Apps {
	if t == nil {
		return next
	}
	return apps{next, t}
}

type apps struct {
	engine.Apps
	tracing *Tracing
}

// Call implements engine.Apps.
func (a apps) Call(ctx context.Context, endpoint domain.AppEndpoint, call domain.AppCall, ready func() error) (domain.AppResult, error) {
	ctx, span := a.tracing.tool(ctx, call.Tool, "extension")
	defer span.End()
	result, err := a.Apps.Call(ctx, endpoint, call, ready)
	failTool(span, result, err)
	return result, err
}

// Hosts stands around the tools of the host.
func (t *Tracing) Hosts(next engine.Hosts) engine.Hosts {
	if t == nil {
		return next
	}
	return hosts{next, t}
}

type hosts struct {
	engine.Hosts
	tracing *Tracing
}

// CallHost implements engine.Hosts.
func (h hosts) CallHost(ctx context.Context, tool domain.HostTool, call domain.Call, ready func() error) (domain.AppResult, error) {
	ctx, span := h.tracing.tool(ctx, call.Tool, "function")
	defer span.End()
	result, err := h.Hosts.CallHost(ctx, tool, call, ready)
	failTool(span, result, err)
	return result, err
}

func (t *Tracing) tool(ctx context.Context, name, kind string) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, "execute_tool "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name), attribute.String("gen_ai.tool.type", kind)))
}

func failTool(span trace.Span, result domain.AppResult, err error) {
	if err == nil && result.IsError {
		span.SetAttributes(attribute.String("error.type", "tool_error"))
		span.SetStatus(codes.Error, "")
	}
	fail(span, err)
}

// fail marks a span by the kind of error alone: messages can hold what somebody wrote.
func fail(span trace.Span, err error) {
	if err == nil {
		return
	}
	kind := string(domain.CodeOf(err))
	var model *domain.ModelError
	var app *domain.AppError
	switch {
	case errors.As(err, &model):
		kind = "model_error"
	case errors.As(err, &app):
		kind = "app_error"
	case errors.Is(err, context.Canceled):
		kind = "canceled"
	}
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, "")
}
