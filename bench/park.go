//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// parkLimit bounds the parking; a slow machine parks fewer.
	parkLimit = 100 * time.Second
	// parkedAnswers is how many parked Turns are answered one at a time, at most.
	parkedAnswers = 20
)

// park makes many Turns wait, looks at what that costs, and measures again beside
// them.
func (b *bench) park(ctx context.Context, s *subject, to *section) error {
	before, err := b.standing(ctx, s, to, "before")
	if err != nil {
		return err
	}
	start := time.Now()
	waiting, err := b.fill(ctx, s)
	if err != nil {
		return err
	}
	n := float64(len(waiting))
	to.add("parked Turns", "", n)
	to.add("time to park", "s", time.Since(start).Seconds())
	if err := wait(ctx, b.settle); err != nil {
		return err
	}
	after, err := b.standing(ctx, s, to, "parked")
	if err != nil {
		return err
	}
	to.add("database a parked Turn", "bytes", float64(after.database-before.database)/n)
	to.keepSizes(before.sizes, after.sizes, n)
	for i, w := range s.watched {
		to.add("memory a parked Turn, "+w.name, "bytes", float64(after.memory[i]-before.memory[i])/n)
	}
	answered := max(1, min(parkedAnswers, len(waiting)/2))
	if err := b.answerParked(ctx, s, to, waiting, answered); err != nil {
		return err
	}
	beside := fmt.Sprintf(" beside %d parked Turns", len(waiting)-answered)
	if err := b.throughput(ctx, s, b.report.section(parkedTurns, "approval rounds"+beside)); err != nil {
		return err
	}
	if err := b.latency(ctx, s, b.report.section(parkedTurns, "answer to end of the Turn, one at a time,"+beside)); err != nil {
		return err
	}
	if err := b.restart(ctx, s, b.report.section(parkedTurns, "all processes started again,"+beside)); err != nil {
		return err
	}
	if b.release {
		return b.releaseAll(ctx, s, b.report.section(parkedTurns, "all parked Turns answered"))
	}
	return nil
}

// standing is the memory of each process and the size of the database.
type standing struct {
	memory   []int64
	database int64
	sizes    map[string]int64 // of tables
}

// standing looks at an idle subject.
func (b *bench) standing(ctx context.Context, s *subject, to *section, when string) (at standing, err error) {
	b.say("%s: watching idle processes for %s", parkedTurns, b.idle)
	before, err := s.read(ctx)
	if err != nil {
		return at, err
	}
	if err := wait(ctx, b.idle); err != nil {
		return at, err
	}
	after, err := s.read(ctx)
	if err != nil {
		return at, err
	}
	s.keepIdle(to, when, before, after)
	s.keepNoise(to, before, after)
	for _, w := range s.watched {
		m := memoryOf(w.pid)
		at.memory = append(at.memory, m)
		to.add("memory "+when+", "+w.name, "MiB", float64(m)/(1<<20))
	}
	if _, err := s.database.Exec(ctx, "CHECKPOINT"); err != nil {
		return at, err
	}
	if at.sizes, err = s.sizes(ctx); err != nil {
		return at, err
	}
	err = s.database.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&at.database)
	return at, err
}

// parkedTurn is one Turn that waits.
type parkedTurn struct{ chat, turn string }

// fill parks Turns, one in each Chat, and returns when all of them wait.
func (b *bench) fill(ctx context.Context, s *subject) ([]parkedTurn, error) {
	if b.copies {
		return b.fillWithCopies(ctx, s)
	}
	b.say("%s: parking %d Turns", parkedTurns, b.parked)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		next    atomic.Int64
		waiting []parkedTurn
		end     = time.Now().Add(parkLimit)
	)
	for range b.clients {
		group.Go(func() {
			for next.Add(1) <= int64(b.parked) && time.Now().Before(end) {
				chat, err := s.client.newChat(ctx)
				turn := ""
				if err == nil {
					turn, err = s.client.say(ctx, chat, message)
				}
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				waiting = append(waiting, parkedTurn{chat, turn})
				if len(waiting)%2000 == 0 {
					b.say("%s: %d said", parkedTurns, len(waiting))
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return waiting, s.awaitStatus(ctx, "status = 'Waiting'", len(waiting))
}

// fillWithCopies parks one Turn and copies it.
func (b *bench) fillWithCopies(ctx context.Context, s *subject) ([]parkedTurn, error) {
	chat, err := b.parkCopies(ctx, s, parkedTurns, b.parked)
	if err != nil {
		return nil, err
	}
	if err := s.finishOne(ctx, chat); err != nil {
		return nil, err
	}
	rows, err := s.database.Query(ctx, "SELECT chat_id, id FROM turns WHERE status = 'Waiting'")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	waiting := make([]parkedTurn, 0, b.parked)
	for rows.Next() {
		var p parkedTurn
		if err := rows.Scan(&p.chat, &p.turn); err != nil {
			return nil, err
		}
		waiting = append(waiting, p)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return waiting, s.awaitStatus(ctx, "status = 'Waiting'", b.parked)
}

// awaitStatus returns when so many Turns are as the condition says. It asks the
// database: no client could follow so many Chats.
func (s *subject) awaitStatus(ctx context.Context, condition string, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, parkLimit, errors.New("the Turns did not all come to wait, or to end"))
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		var is int
		if err := s.database.QueryRow(ctx, "SELECT count(*) FROM turns WHERE status IN ('Queued', 'Running', 'Waiting') AND "+condition).Scan(&is); err != nil {
			return err
		}
		if is == n {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// answerParked answers n parked Turns, one at a time, spread over all of them.
func (b *bench) answerParked(ctx context.Context, s *subject, to *section, waiting []parkedTurn, n int) error {
	for i := range n {
		p := waiting[i*len(waiting)/n]
		r, err := answerOne(ctx, s, p)
		if err != nil {
			return err
		}
		to.add("one parked Turn, answer to end", "ms", milliseconds(r.ended.Sub(r.answered)))
	}
	return nil
}

func answerOne(ctx context.Context, s *subject, p parkedTurn) (round, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, roundTimeout, errors.New("a parked Turn did not end"))
	defer cancel()
	// Asked for by name: a copied Turn has no events that would tell.
	var open []waitingRequest
	if _, err := s.client.page(ctx, "/v1/requests?status=pending&chat="+p.chat, &open); err != nil {
		return round{}, err
	}
	if len(open) != 1 {
		return round{}, fmt.Errorf("a parked Turn has %d Requests that wait", len(open))
	}
	events, err := s.client.observe(ctx, p.chat)
	if err != nil {
		return round{}, err
	}
	c := caller{subject: s, stream: events}
	defer c.close()
	r := round{answered: time.Now()}
	if err := s.client.allow(ctx, open[0].ID, open[0].Revision); err != nil {
		return r, err
	}
	s.answered.Add(1)
	err = c.follow(ctx, &r, p.turn, func(event) error { return nil })
	return r, err
}

// releaseAll answers everything that waits, with all clients at once.
func (b *bench) releaseAll(ctx context.Context, s *subject, to *section) error {
	var open []waitingRequest
	for path := "/v1/requests?status=pending&limit=200"; path != ""; {
		var page []waitingRequest
		next, err := s.client.page(ctx, path, &page)
		if err != nil {
			return err
		}
		open, path = append(open, page...), next
	}
	b.say("%s: answering %d Requests", to.Workload, len(open))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	var next atomic.Int64
	start := time.Now()
	for range b.clients {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(open)); i = next.Add(1) - 1 {
				if err := s.client.allow(ctx, open[i].ID, open[i].Revision); err != nil {
					cancel(err)
					return
				}
				s.answered.Add(1)
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	answers := time.Since(start)
	if err := s.awaitStatus(ctx, "true", 0); err != nil {
		return err
	}
	to.add("answers taken", "1/s", float64(len(open))/answers.Seconds())
	to.add("Turns ended", "1/s", float64(len(open))/time.Since(start).Seconds())
	to.add("all ended after", "s", time.Since(start).Seconds())
	return nil
}

// waitingRequest is what an answer needs of a Request.
type waitingRequest struct {
	ID       string
	Revision int64
}
