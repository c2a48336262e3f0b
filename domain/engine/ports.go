package engine

import (
	"context"
	"time"

	"openbot/domain"
)

// Ringer rings workers after a commit. It is best effort and bounded: it never
// holds up a caller for more than a moment and never fails one, because the sweep
// rings again what was missed.
type Ringer interface {
	// Ring enqueues tasks. A task that is already there is success.
	Ring(ctx context.Context, tasks ...domain.Task)
}

// Live tells readers of a stream that rows were added. It carries no facts: a
// reader reads the saved rows when told, and every few seconds anyway.
type Live interface {
	// Publish tells every subscriber of these streams, in any process.
	Publish(ctx context.Context, streams ...string)
	// Subscribe gives a channel that gets a value, coalesced, after each Publish of
	// the stream. It is closed by the returned function, which must be called.
	Subscribe(stream string) (<-chan struct{}, func())
}

// Limiter counts events against a limit for a window.
type Limiter interface {
	// Allow counts one event against key and reports whether it fits in limit events
	// a window. When the shared counter cannot be reached it counts in this process.
	Allow(ctx context.Context, key string, limit int, window time.Duration) (ok bool, retryAfter time.Duration)
}

// Models calls models.
type Models interface {
	// Call makes one model call without retries. Its error is a *domain.ModelError.
	Call(ctx context.Context, request domain.ModelRequest) (domain.ModelReply, error)
	// Price gives what a model costs by the shipped table; false when it is not known.
	Price(model string) (domain.ModelPrice, bool)
}

// Apps reaches the outside services. Its errors are *domain.AppError. It never
// sends a call twice by itself.
type Apps interface {
	// Look connects if needed and reads what the App offers.
	Look(ctx context.Context, endpoint domain.AppEndpoint) (domain.AppLook, error)
	// Call sends one tool call once. ready is asked right before the first byte goes
	// out; when it returns an error nothing is sent and that error is returned.
	Call(ctx context.Context, endpoint domain.AppEndpoint, call domain.AppCall, ready func() error) (domain.AppResult, error)
	// ReadResource reads one resource.
	ReadResource(ctx context.Context, endpoint domain.AppEndpoint, uri string) (domain.AppResult, error)
	// GetPrompt reads one prompt.
	GetPrompt(ctx context.Context, endpoint domain.AppEndpoint, name string, arguments map[string]string) (domain.AppResult, error)
}

// Sealer encrypts secrets at rest.
type Sealer interface {
	// Seal encrypts a text for one organization and one owner; both are bound to it.
	Seal(plain []byte, organization domain.OrganizationID, owner string) ([]byte, error)
	// Open gives the text back; it fails for another organization or owner.
	Open(sealed []byte, organization domain.OrganizationID, owner string) ([]byte, error)
}
