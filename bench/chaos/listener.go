//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// listener follows everything that concerns the person, and goes on where it was when
// its stream breaks.
type listener struct {
	mu     sync.Mutex
	last   int64
	at     time.Time      // of the last event
	heard  map[string]int // how often an end was told of, by its subject
	broken int            // streams
	record *record
}

// listen follows until ctx ends.
func (n *listener) listen(ctx context.Context, clients []*client, random *rand.Rand) {
	for ctx.Err() == nil {
		c := clients[random.IntN(len(clients))]
		n.followOnce(ctx, c)
		n.broken++
		wait(ctx, 200*time.Millisecond)
	}
}

// followOnce reads one stream until it breaks, which at the latest the client's limit
// of time does.
func (n *listener) followOnce(ctx context.Context, c *client) {
	request, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprint(c.base, "/v1/events?afterSequence=", n.last), nil)
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnprocessableEntity {
		n.record.breach(lost, "after event %d the server says that this is in the future", n.last)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok && !n.hear([]byte(data)) {
			return // the stream was torn in the middle of a line
		}
	}
}

// hear takes one event; false is no whole one.
func (n *listener) hear(data []byte) bool {
	var e struct {
		Sequence              int64
		Kind, Subject, Status string
	}
	if json.Unmarshal(data, &e) != nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.Sequence <= n.last {
		n.record.breach(wrongOrder, "the stream of all events gave %d after %d", e.Sequence, n.last)
	}
	n.last, n.at = e.Sequence, time.Now()
	switch {
	case e.Kind == "turn.status" && (turn{Status: e.Status}).ended(), e.Kind == "request.decided":
		n.heard[e.Subject]++
	}
	return true
}

// finish lets the last events come: a stream looks at what is saved every five seconds.
// What never comes to rest is not waited for.
func (n *listener) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for began := time.Now(); ctx.Err() == nil; wait(ctx, 500*time.Millisecond) {
		n.mu.Lock()
		quiet := time.Since(n.at)
		n.mu.Unlock()
		if quiet > 7*time.Second && time.Since(began) > 7*time.Second {
			return
		}
	}
}
