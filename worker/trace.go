package worker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"openbot/domain"
)

// mark names on the span of the task whose work it is; call is "" for a step.
func mark(ctx context.Context, chat domain.ChatID, turn domain.TurnID, call domain.CallID) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("gen_ai.conversation.id", string(chat)), attribute.String("openbot.turn.id", string(turn)))
	if call != "" {
		span.SetAttributes(attribute.String("gen_ai.tool.call.id", string(call)))
	}
}
