package queue

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// tick is how often the embedded Redis ages its keys. Ageing by its own clock
// instead would sort all keys on every command.
const tick = 250 * time.Millisecond

// embedded is a Redis inside this process. Clients reach it over in-memory pipes:
// nothing listens, so nobody else can.
type embedded struct {
	server *miniredis.Miniredis
	stop   chan struct{}
	done   sync.WaitGroup
}

// startEmbedded starts a Redis that lives until close.
func startEmbedded() *embedded {
	e := &embedded{server: miniredis.NewMiniRedis(), stop: make(chan struct{})}
	e.done.Go(e.age)
	return e
}

// age makes keys expire. It passes on the time that really went by: a late tick
// must not make keys live longer.
func (e *embedded) age() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			now := time.Now()
			e.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

// address gives an address whose clients talk to this Redis.
func (e *embedded) address() address {
	return address{base: redis.UniversalOptions{
		Addrs:  []string{"embedded:0"},
		Dialer: func(context.Context, string, string) (net.Conn, error) { return e.server.Dial() },
	}}
}

// close ends the Redis and forgets what it held.
func (e *embedded) close() {
	close(e.stop)
	e.done.Wait()
	e.server.Close()
}
