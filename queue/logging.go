package queue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/redis/go-redis/v9"
)

// asynqLog hands asynq's lines to slog. Its notes about its own start and end are
// of use only when debugging.
type asynqLog struct{ logger *slog.Logger }

func (l asynqLog) Debug(args ...any) { l.logger.Debug("asynq", "detail", fmt.Sprint(args...)) }
func (l asynqLog) Info(args ...any)  { l.logger.Debug("asynq", "detail", fmt.Sprint(args...)) }
func (l asynqLog) Warn(args ...any)  { l.logger.Warn("asynq", "detail", fmt.Sprint(args...)) }
func (l asynqLog) Error(args ...any) { l.logger.Error("asynq", "detail", fmt.Sprint(args...)) }

// Fatal logs and does not exit: only the command itself may end the process.
func (l asynqLog) Fatal(args ...any) { l.Error(args...) }

// redisLog hands go-redis' lines to slog; a Redis that is away is reported once by
// the breaker, so each failed dial is worth no more than a debug line.
type redisLog struct{}

func (redisLog) Printf(ctx context.Context, format string, args ...any) {
	slog.Default().DebugContext(ctx, "redis", "detail", fmt.Sprintf(format, args...))
}

// quietRedis keeps go-redis from writing to standard error. Its logger is one for
// the whole process, so it is set once.
var quietRedis = sync.OnceFunc(func() { redis.SetLogger(redisLog{}) })
