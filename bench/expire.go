//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// expirySpan is how far apart the ends of time lie.
	expirySpan = time.Minute
	// expiryLead is how long the copies wait at least, and for each of them: time to write
	// them down.
	expiryLead     = 10 * time.Second
	expiryLeadEach = 1500 * time.Microsecond
	// expiryLimit bounds the waiting for the last one after its time.
	expiryLimit = 5 * time.Minute
	// besideParked is how many Turns are parked to be answered meanwhile, one each
	// besideEvery: those that go on after an expiry are not waited for.
	besideParked = 300
	besideEvery  = 400 * time.Millisecond
)

// parkOne makes one Turn wait and gives its Chat.
func (s *subject) parkOne(ctx context.Context) (string, error) {
	chat, err := s.client.newChat(ctx)
	if err != nil {
		return "", err
	}
	if _, err := s.client.say(ctx, chat, message); err != nil {
		return "", err
	}
	return chat, s.awaitStatus(ctx, "status = 'Waiting' AND chat_id = '"+chat+"'", 1)
}

// parkCopies makes one Turn wait, gives its Chat, and copies it.
func (b *bench) parkCopies(ctx context.Context, s *subject, workload string, n int) (string, error) {
	chat, err := s.parkOne(ctx)
	if err != nil {
		return "", err
	}
	b.say("%s: copying %d parked Turns", workload, n)
	return chat, s.copyParked(ctx, chat, n, "r.expires_at")
}

// finishOne lets the Turn that was copied end.
func (s *subject) finishOne(ctx context.Context, chat string) error {
	var id string
	var revision int64
	if err := s.database.QueryRow(ctx, "SELECT id, revision FROM requests WHERE chat_id = $1 AND status = 'pending'", chat).Scan(&id, &revision); err != nil {
		return err
	}
	err := s.client.allow(ctx, id, revision)
	if err == nil {
		s.answered.Add(1)
	}
	return err
}

// expire lets many Requests expire within a minute and tells how long after their time
// they were denied, and how long an answer took meanwhile.
func (b *bench) expire(ctx context.Context, s *subject, to *section) error {
	if err := b.keepFloor(ctx, s, to); err != nil {
		return err
	}
	beside, err := b.parkBeside(ctx, s)
	if err != nil {
		return err
	}
	chat, err := s.parkOne(ctx)
	if err != nil {
		return err
	}
	b.say("%s: copying %d Requests", expiries, b.expiring)
	first := time.Now().Add(expiryLead + time.Duration(b.expiring)*expiryLeadEach)
	expiry := fmt.Sprintf("%d + n * %d::bigint / %d", first.UnixMicro(), expirySpan.Microseconds(), b.expiring)
	if err := s.copyParked(ctx, chat, b.expiring, expiry); err != nil {
		return err
	}
	if late := time.Since(first); late > 0 {
		return fmt.Errorf("the copies were %s late: set -expiring lower", late.Round(time.Second))
	}
	if err := s.finishOne(ctx, chat); err != nil {
		return err
	}
	b.say("%s: waiting for the first to expire", expiries)
	if err := wait(ctx, time.Until(first)); err != nil {
		return err
	}
	var rest []float64
	end := first.Add(expirySpan + expiryLimit)
	ticker := time.NewTicker(besideEvery)
	defer ticker.Stop()
	for left := b.expiring; left > 0; {
		if len(beside) > 0 {
			r, err := answerOne(ctx, s, beside[0])
			if err != nil {
				return err
			}
			rest, beside = append(rest, milliseconds(r.ended.Sub(r.answered))), beside[1:]
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := s.database.QueryRow(ctx, "SELECT count(*) FROM requests WHERE status = 'pending' AND expires_at BETWEEN $1 AND $2",
			first.UnixMicro(), first.Add(expirySpan).UnixMicro()).Scan(&left); err != nil {
			return err
		}
		if time.Now().After(end) {
			return errors.New("the Requests did not all expire")
		}
	}
	b.say("%s: all are decided", expiries)
	to.add("Requests that expired", "", float64(b.expiring))
	var p50, p99, longest float64
	err = s.database.QueryRow(ctx, `SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY late), percentile_disc(0.99) WITHIN GROUP (ORDER BY late), max(late)
		FROM (SELECT (updated_at - expires_at) / 1000.0::float8 AS late FROM requests WHERE expires_at BETWEEN $1 AND $2 AND status = 'denied') AS decided`,
		first.UnixMicro(), first.Add(expirySpan).UnixMicro()).Scan(&p50, &p99, &longest)
	if err != nil {
		return err
	}
	to.add("due to denied, p50", "ms", p50)
	to.add("due to denied, p99", "ms", p99)
	to.add("due to denied, longest", "ms", longest)
	to.add("answers meanwhile", "", float64(len(rest)))
	to.add("answer to end meanwhile, p50", "ms", percentile(rest, 50))
	to.add("answer to end meanwhile, p99", "ms", percentile(rest, 99))
	return nil
}

// parkBeside parks the Turns that are answered meanwhile.
func (b *bench) parkBeside(ctx context.Context, s *subject) ([]parkedTurn, error) {
	all := b.parked
	b.parked = besideParked
	defer func() { b.parked = all }()
	return b.fill(ctx, s)
}

// releaseCopies answers many parked Turns at once, run by run.
func (b *bench) releaseCopies(ctx context.Context, s *subject, to *section) error {
	for range b.runs {
		if err := b.keepFloor(ctx, s, to); err != nil {
			return err
		}
		if _, err := b.parkCopies(ctx, s, releases, b.parked); err != nil {
			return err
		}
		if err := b.releaseAll(ctx, s, to); err != nil {
			return err
		}
	}
	return nil
}
