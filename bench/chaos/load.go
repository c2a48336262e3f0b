//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// wait gives time to pass, less when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// said is one message that was accepted.
type said struct {
	chat string
	to   string // the one argument of its call, which no other has
}

// breach is one broken promise.
type breach struct{ kind, what string }

// load is what was done and what came of it.
type load struct {
	w    *world
	o    options
	mu   sync.Mutex
	said []said
	// decided holds the Requests whose answer the server took.
	decided []string
	// denied holds the Turns whose one call a person denied.
	denied   map[string]bool
	breaches []breach
	answers  int
	calls    int // that the checker compared
}

func newLoad(w *world, o options) *load { return &load{w: w, o: o, denied: map[string]bool{}} }

func (l *load) breach(kind, form string, values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaches = append(l.breaches, breach{kind, fmt.Sprintf(form, values...)})
}

// drive runs the clients, the one who answers and the strikes, and gives how many
// strikes of each kind there were.
func (l *load) drive(ctx context.Context) map[string]int {
	ctx, cancel := context.WithTimeout(ctx, l.o.length)
	defer cancel()
	var group, clients sync.WaitGroup
	for i := range l.o.clients {
		clients.Go(func() { l.speak(ctx, seeded(l.o.seed, uint64(i)+10)) })
	}
	group.Go(func() { l.decide(ctx, seeded(l.o.seed, 2)) })
	strikes := map[string]int{}
	group.Go(func() { l.strike(ctx, seeded(l.o.seed, 1), strikes) })
	clients.Wait()
	cancel()
	group.Wait()
	return strikes
}

// speak says messages, each twice with one key, and interrupts some.
func (l *load) speak(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		c := l.w.clients[random.IntN(len(l.w.clients))]
		var chat struct{ ID string }
		if c.insist(ctx, l.o.length, "POST", "/v1/chats", object{}, &chat) != nil {
			wait(ctx, 100*time.Millisecond)
			continue
		}
		to := chat.ID + "@example.test"
		text := fmt.Sprintf("/call desk__send_email {\"to\":%q}\n/say done", to)
		body := object{"text": text, "commandKey": "say-" + chat.ID}
		if c.insist(ctx, l.o.length, "POST", "/v1/chats/"+chat.ID+"/messages", body, nil) != nil {
			continue
		}
		l.mu.Lock()
		l.said = append(l.said, said{chat.ID, to})
		enough := l.o.count > 0 && len(l.said) >= l.o.count
		l.mu.Unlock()
		c.try(ctx, "POST", "/v1/chats/"+chat.ID+"/messages", body)
		if random.IntN(8) == 0 {
			if status, _ := c.try(ctx, "POST", "/v1/chats/"+chat.ID+"/interrupt", object{}); status == 200 {
				l.mustHaveEnded(ctx, c, chat.ID)
			}
		}
		if enough {
			return
		}
		wait(ctx, 200*time.Millisecond)
	}
}

// mustHaveEnded looks at a Chat whose interruption was accepted.
func (l *load) mustHaveEnded(ctx context.Context, c *client, chat string) {
	var turns []turn
	if c.insist(ctx, l.o.length, "GET", "/v1/chats/"+chat+"/turns", nil, &turns) != nil {
		return
	}
	for _, t := range turns {
		if t.Status != "Completed" && t.Status != "Failed" && t.Status != "Interrupted" {
			l.breach("not interrupted", "Turn %s is %s after its Chat was interrupted", t.ID, t.Status)
		}
	}
}

// decide answers what waits until ctx ends.
func (l *load) decide(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		l.answerAll(ctx, random)
		wait(ctx, 300*time.Millisecond)
	}
}

type request struct {
	ID       string
	Turn     string
	Revision int64
	Unknown  any
}

// answerAll answers one page of what waits and says how long it was, -1 when that is
// not known.
func (l *load) answerAll(ctx context.Context, random *rand.Rand) int {
	var waiting []request
	c := l.w.clients[random.IntN(len(l.w.clients))]
	if c.insist(ctx, 10*time.Second, "GET", "/v1/requests?status=pending&limit=20", nil, &waiting) != nil {
		return -1
	}
	for _, r := range waiting {
		decision := "allow"
		if r.Unknown != nil || random.IntN(6) == 0 {
			decision = "deny"
		}
		path := "/v1/requests/" + r.ID
		if random.IntN(5) == 0 {
			// An answer to what the person did not see must be refused.
			if status, _ := c.try(ctx, "POST", path, object{"expected": r.Revision + 1000, "decision": decision}); status == 200 {
				l.breach("stale answer", "%s took an answer to revision %d", r.ID, r.Revision+1000)
			}
		}
		if status, _ := c.try(ctx, "POST", path, object{"expected": r.Revision, "decision": decision}); status == 200 {
			l.mu.Lock()
			l.answers++
			l.decided = append(l.decided, r.ID)
			if decision == "deny" && r.Unknown == nil {
				l.denied[r.Turn] = true
			}
			l.mu.Unlock()
		}
	}
	return len(waiting)
}

// strike breaks one thing after another, and mends each before the next.
func (l *load) strike(ctx context.Context, random *rand.Rand, strikes map[string]int) {
	for wait(ctx, time.Duration(1+random.IntN(3))*time.Second); ctx.Err() == nil; wait(ctx, time.Duration(1+random.IntN(3))*time.Second) {
		p := l.w.processes[random.IntN(len(l.w.processes))]
		name := ""
		var err error
		switch random.IntN(7) {
		case 0, 1:
			name = "kill -9 of a process"
			p.kill()
			err = p.start()
		case 2:
			name = "stop for longer than a lease"
			p.signal(syscall.SIGSTOP)
			wait(ctx, 11*time.Second)
			p.signal(syscall.SIGCONT)
		case 3:
			name = "Redis emptied"
			err = l.w.redis.FlushAll(ctx).Err()
		case 4:
			name = "Redis killed and started"
			l.w.keeper.Kill()
			wait(ctx, time.Second)
			err = l.w.keeper.Restart()
		case 5:
			name = "PostgreSQL killed and started"
			l.w.postgres.Kill()
			wait(ctx, time.Second)
			err = l.w.postgres.Restart()
		case 6:
			name = "App slow"
			release := l.w.app.Block("send_email")
			wait(ctx, 2*time.Second)
			p.kill()
			err = p.start()
			release()
		}
		strikes[name]++
		if err != nil && ctx.Err() == nil {
			l.breach("strike", "%s: %v", name, err)
		}
	}
}

// seeded gives chance that the same seed brings again.
func seeded(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // it must come again, not be unforeseeable
}
