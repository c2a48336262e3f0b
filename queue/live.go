package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"

	"github.com/redis/go-redis/v9"
)

const (
	// liveChannel is the one channel that all processes share.
	liveChannel = "openbot:live"
	// unsent is how many streams may wait to be told to other processes; beyond it
	// their readers find the rows by themselves a few seconds later.
	unsent = 4096
)

// live tells readers of a stream in this process, and those in other processes
// through Redis. Readers here are told at once, with or without Redis.
type live struct {
	origin  string
	client  redis.UniversalClient // nil when there are no other processes
	breaker *breaker

	mu      sync.RWMutex
	readers map[string]map[chan struct{}]struct{}

	out     sync.Mutex
	waiting map[string]struct{}
	wake    chan struct{}

	stop   context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup
	listen sync.Once
}

// word is what goes over the channel.
type word struct {
	Origin  string   `json:"o"`
	Streams []string `json:"s"`
}

func newLive(client redis.UniversalClient, b *breaker) *live {
	l := &live{origin: rand.Text(), client: client, breaker: b,
		readers: make(map[string]map[chan struct{}]struct{}),
		waiting: make(map[string]struct{}), wake: make(chan struct{}, 1)}
	l.stop, l.cancel = context.WithCancel(context.Background())
	if client != nil {
		l.loops.Go(l.send)
	}
	return l
}

// Publish tells every subscriber of these streams, in any process. It never waits
// for Redis; when Redis is away only this process's subscribers are told.
func (q *Queue) Publish(_ context.Context, streams ...string) {
	q.live.tell(streams)
	q.live.forward(streams)
}

// Subscribe gives a channel that gets a value after each Publish of the stream;
// values that are not fetched in time become one. The function ends the
// subscription and closes the channel; it must be called and may be called twice.
func (q *Queue) Subscribe(stream string) (<-chan struct{}, func()) {
	return q.live.subscribe(stream)
}

func (l *live) subscribe(stream string) (<-chan struct{}, func()) {
	reader := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers[stream] == nil {
		l.readers[stream] = make(map[chan struct{}]struct{})
	}
	l.readers[stream][reader] = struct{}{}
	if l.client != nil && l.stop.Err() == nil {
		// Only a process that has readers listens.
		l.listen.Do(func() { l.loops.Go(l.receive) })
	}
	return reader, sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.readers[stream], reader)
		if len(l.readers[stream]) == 0 {
			delete(l.readers, stream)
		}
		close(reader)
	})
}

// tell wakes this process's readers of some streams.
func (l *live) tell(streams []string) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, stream := range streams {
		for reader := range l.readers[stream] {
			nudge(reader)
		}
	}
}

// tellAll wakes every reader, after a time in which words may have been missed.
func (l *live) tellAll() {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, readers := range l.readers {
		for reader := range readers {
			nudge(reader)
		}
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// forward leaves streams for the sender. Many commits in a row become one message.
func (l *live) forward(streams []string) {
	if l.client == nil {
		return
	}
	l.out.Lock()
	for _, stream := range streams {
		if len(l.waiting) >= unsent {
			break
		}
		l.waiting[stream] = struct{}{}
	}
	l.out.Unlock()
	nudge(l.wake)
}

// send tells the other processes what waits, until the queue is closed. What cannot
// be sent is dropped: readers look by themselves every few seconds.
func (l *live) send() {
	for {
		select {
		case <-l.stop.Done():
			return
		case <-l.wake:
		}
		l.out.Lock()
		streams := make([]string, 0, len(l.waiting))
		for stream := range l.waiting {
			streams = append(streams, stream)
		}
		clear(l.waiting)
		l.out.Unlock()
		if len(streams) == 0 {
			continue
		}
		message, err := json.Marshal(word{Origin: l.origin, Streams: streams})
		if err != nil {
			continue
		}
		_ = l.breaker.do(func() error {
			ctx, cancel := within(l.stop, behindLimit) // nobody waits for it
			defer cancel()
			return l.client.Publish(ctx, liveChannel, message).Err()
		})
	}
}

// receive hears what other processes tell, through one subscription for all
// readers. go-redis connects it again by itself.
func (l *live) receive() {
	subscription := l.client.Subscribe(l.stop, liveChannel)
	defer subscription.Close()
	incoming := subscription.ChannelWithSubscriptions()
	for {
		select {
		case <-l.stop.Done():
			return
		case item, open := <-incoming:
			if !open {
				return
			}
			switch item := item.(type) {
			case *redis.Subscription:
				l.tellAll()
			case *redis.Message:
				var w word
				if json.Unmarshal([]byte(item.Payload), &w) == nil && w.Origin != l.origin {
					l.tell(w.Streams)
				}
			}
		}
	}
}

// close ends the loops. Subscriptions stay open, without news, until their own end.
func (l *live) close() {
	l.mu.Lock()
	l.cancel() // under the lock: no subscriber starts a loop after this
	l.mu.Unlock()
	l.loops.Wait()
}
