package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// localKeys is how many keys each of the two generations of local counters holds.
const localKeys = 10_000

// countScript counts an event in the window of a key. The window starts with its
// first event, so that no clocks need to agree. It gives the count and the
// milliseconds that are left.
var countScript = redis.NewScript(`
local n = redis.call("INCR", KEYS[1])
local left = redis.call("PTTL", KEYS[1])
if n == 1 or left < 0 then
	redis.call("PEXPIRE", KEYS[1], ARGV[1])
	left = tonumber(ARGV[1])
end
return {n, left}`)

// Allow counts one event against key and reports whether it is among the first
// limit events of its window, which starts with its first event; if not, it gives
// the time until the window ends. All processes count together. While Redis is
// away each counts alone against the same limit: neither open nor shut. A window
// below a millisecond counts as one.
func (q *Queue) Allow(ctx context.Context, key string, limit int, window time.Duration) (bool, time.Duration) {
	window = max(window, time.Millisecond)
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:]) // keys can hold addresses and be of any length
	// This process's own count goes on beside the shared one, so that it does not
	// start from nothing at the moment Redis goes away.
	count, left := q.limits.count(name, window, time.Now())
	if q.inside == nil {
		_ = q.breaker.do(func() error {
			ctx, cancel := within(ctx, q.moment)
			defer cancel()
			reply, err := countScript.Run(ctx, q.client, []string{"openbot:limit:" + name}, window.Milliseconds()).Int64Slice()
			if err != nil {
				return err
			}
			if len(reply) != 2 {
				return errors.New("the counter in Redis gave no count")
			}
			count, left = reply[0], time.Duration(reply[1])*time.Millisecond
			return nil
		})
	}
	if count <= int64(limit) {
		return true, 0
	}
	return false, left
}

// localLimits counts in this process. Its memory is bounded by two generations: when
// the young one is full it becomes the old one, whose keys are dropped unless used.
type localLimits struct {
	mu    sync.Mutex
	size  int
	young map[string]*window
	old   map[string]*window
}

// window is the count of a key until its end.
type window struct {
	count int64
	end   time.Time
}

func newLocalLimits(size int) *localLimits {
	return &localLimits{size: size, young: make(map[string]*window)}
}

// count adds an event and gives the count in the window and the time that is left.
func (l *localLimits) count(key string, length time.Duration, now time.Time) (int64, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, found := l.young[key]
	if !found {
		if w = l.old[key]; w == nil {
			w = &window{}
		}
		if len(l.young) >= l.size {
			l.old, l.young = l.young, make(map[string]*window)
		}
		l.young[key] = w
	}
	if !now.Before(w.end) {
		w.count, w.end = 0, now.Add(length)
	}
	w.count++
	return w.count, w.end.Sub(now)
}
