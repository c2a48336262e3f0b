package queue

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// repeatAfter is how long a complaint of asynq's is not repeated. While Redis is
// away each of its loops has one several times a second.
const repeatAfter = 10 * time.Second

// asynqLog hands asynq's lines to slog. Its notes about its own start and end are
// of use only when debugging.
type asynqLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	said   map[string]*complaint // by their first two words, which hold no IDs
}

// complaint is a kind of line that was logged not long ago.
type complaint struct {
	at     time.Time
	hidden int
}

func newAsynqLog(logger *slog.Logger) *asynqLog {
	return &asynqLog{logger: logger, said: make(map[string]*complaint)}
}

// Debug logs what matters only when debugging.
func (l *asynqLog) Debug(args ...any) { l.logger.Debug("asynq", "detail", fmt.Sprint(args...)) }

// Info logs asynq's notes, which matter only when debugging.
func (l *asynqLog) Info(args ...any) { l.Debug(args...) }

// Warn logs a complaint.
func (l *asynqLog) Warn(args ...any) { l.complain(slog.LevelWarn, fmt.Sprint(args...)) }

// Error logs a failure.
func (l *asynqLog) Error(args ...any) { l.complain(slog.LevelError, fmt.Sprint(args...)) }

// Fatal logs and does not exit: only the command itself may end the process.
func (l *asynqLog) Fatal(args ...any) { l.Error(args...) }

// complain logs a line unless one like it was logged a moment ago.
func (l *asynqLog) complain(level slog.Level, text string) {
	words := strings.Fields(text)
	kind := strings.Join(words[:min(2, len(words))], " ")
	l.mu.Lock()
	last, now := l.said[kind], time.Now()
	if last != nil && now.Sub(last.at) < repeatAfter {
		last.hidden++
		l.mu.Unlock()
		return
	}
	hidden := 0
	if last != nil {
		hidden = last.hidden
	}
	l.said[kind] = &complaint{at: now}
	l.mu.Unlock()
	l.logger.Log(context.Background(), level, "asynq", "detail", text, "hidden", hidden)
}

// redisLog hands go-redis' lines to slog; a Redis that is away is reported once by
// the breaker, so each failed dial is worth no more than a debug line.
type redisLog struct{}

func (redisLog) Printf(ctx context.Context, format string, args ...any) {
	slog.Default().DebugContext(ctx, "redis", "detail", fmt.Sprintf(format, args...))
}

// quietRedis keeps go-redis from writing to standard error. Its logger is one for
// the whole process, so it is set once.
var quietRedis = sync.OnceFunc(func() { redis.SetLogger(redisLog{}) })
