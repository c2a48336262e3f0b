package api

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// nameSpan names the span of a request by its route, where one is recorded.
func nameSpan(ctx context.Context, method, route string, status int, requestID string) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetName(method + " " + route)
	span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route),
		attribute.Int("http.response.status_code", status), attribute.String("openbot.http.request.id", requestID))
	if status >= 500 {
		span.SetStatus(codes.Error, "")
	}
}
