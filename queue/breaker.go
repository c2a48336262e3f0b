package queue

import (
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// breaker keeps callers from waiting again and again for a Redis that is away:
// after a few failures in a row it refuses at once, and lets one try through each
// second. A nil breaker always runs the work: a Redis inside this process can be
// slow but not away.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[struct{}]
}

func newBreaker(logger *slog.Logger) *breaker {
	return &breaker{circuit: gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:         "redis",
		Timeout:      time.Second,
		ReadyToTrip:  func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= 3 },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, redis.Nil) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case from == gobreaker.StateClosed:
				logger.Warn("Redis does not answer in time; rings are skipped until it does, and the sweep makes up for them")
			case to == gobreaker.StateClosed:
				logger.Info("Redis answers again")
			}
		},
	})}
}

// do runs work unless Redis is known to be away.
func (b *breaker) do(work func() error) error {
	if b == nil {
		return work()
	}
	_, err := b.circuit.Execute(func() (struct{}, error) { return struct{}{}, work() })
	return err
}
