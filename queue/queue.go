package queue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"openbot/domain"
)

// moment is the longest that a caller waits for Redis: what it asked for is best
// effort, and its own work is already committed.
const moment = 50 * time.Millisecond

// Options says which Redis a Queue uses and where it logs.
type Options struct {
	// RedisURL names the Redis, in the forms that Open lists. "" runs one inside
	// this process that listens nowhere and keeps nothing.
	RedisURL string
	// Logger gets what the queue and asynq report; nil means slog.Default().
	Logger *slog.Logger
}

// Queue rings workers, tells live readers and counts against limits. It is safe
// for use by many goroutines and must be closed.
type Queue struct {
	logger  *slog.Logger
	address address
	inside  *embedded // nil when Redis is outside
	client  redis.UniversalClient
	asynq   *asynq.Client
	breaker *breaker      // nil when Redis is inside
	moment  time.Duration // moment, but for tests that must not miss Redis
	behind  *behind
	bell    bell
	live    *live
	limits  *localLimits

	mu      sync.Mutex
	closers []func() error
	closed  bool
}

// Open prepares a Queue. It connects when first used, so that a server starts
// while Redis is down; only an address that cannot be understood is an error
// (invalid). Addresses are:
//
//	""                                              inside this process
//	redis://[user:password@]host[:6379][/db]        one server
//	redis-cluster://[user:password@]host[,host]     a cluster
//	redis-sentinel://[user:password@]host[:26379][,host]/master[/db]
//
// Each has a form with TLS: rediss://, rediss-cluster://, rediss-sentinel://. The
// query may hold skip_verify=true (TLS without a check of the certificate) and, for
// sentinels, sentinel_username and sentinel_password.
func Open(_ context.Context, options Options) (*Queue, error) {
	q := &Queue{logger: cmp.Or(options.Logger, slog.Default()), limits: newLocalLimits(localKeys), moment: moment, behind: newBehind()}
	quietRedis()
	if options.RedisURL == "" {
		q.inside = startEmbedded()
		q.address = q.inside.address()
	} else {
		parsed, err := parseAddress(options.RedisURL)
		if err != nil {
			return nil, domain.Wrap(domain.CodeInvalid, "RedisURL", err.Error(), nil)
		}
		q.address = parsed
	}
	q.client = q.address.client(callerProfile)
	q.asynq = asynq.NewClientFromRedisClient(q.client)
	if q.inside != nil {
		q.bell = newLocalBell()
		q.live = newLive(nil, nil)
	} else {
		q.breaker = newBreaker(q.logger)
		q.bell = &redisBell{client: q.client, address: q.address}
		q.live = newLive(q.client, q.breaker)
	}
	return q, nil
}

// Ping reports whether Redis answers. It waits for ctx, at most a second; its error
// is unavailable.
func (q *Queue) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := q.client.Ping(ctx).Err(); err != nil {
		return domain.Wrap(domain.CodeUnavailable, "Queue", "Redis does not answer; check REDIS_URL and that it runs", err)
	}
	return nil
}

// Close ends every connection and, when Redis runs inside, forgets what it held.
// Servers must be stopped first.
func (q *Queue) Close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	closers := q.closers
	q.mu.Unlock()

	q.behind.close()
	q.live.close()
	var failures []error
	for _, shut := range closers {
		failures = append(failures, shut())
	}
	failures = append(failures, q.client.Close())
	if q.inside != nil {
		q.inside.close()
	}
	return errors.Join(failures...)
}

// onClose has shut called by Close, or at once when the queue is closed already.
func (q *Queue) onClose(shut func() error) {
	q.mu.Lock()
	if !q.closed {
		q.closers = append(q.closers, shut)
		q.mu.Unlock()
		return
	}
	q.mu.Unlock()
	_ = shut()
}

// within gives a context for a short exchange with Redis. It is detached from the
// caller's cancellation: a client that hangs up after a commit must not cost a ring.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
