//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// given makes the playbook give work away to a Bot of its own, which says one line; the
// notice of its end starts a new Turn in the giving Chat.
const given = "/call openbot_delegate {\"task\":\"/say Done.\",\"limits\":{\"timeMs\":600000}}\n/say Given."

// workRound does one round: give work, learn that the Turn which was told of its end ended.
func (c *caller) workRound(ctx context.Context) (r round, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, roundTimeout, fmt.Errorf("a round took longer than %s", roundTimeout))
	defer cancel()
	if c.stream == nil || c.rounds == chatRounds {
		if err := c.open(ctx); err != nil {
			return r, err
		}
	}
	c.rounds++
	r.said = time.Now()
	if _, err := c.subject.client.say(ctx, c.chat, given); err != nil {
		return r, err
	}
	told := false
	for {
		e, err := c.stream.next(ctx)
		if err != nil {
			return r, err
		}
		switch {
		case e.Kind == "delegation.status" && e.Status == "completed":
			r.answered = e.at
		case e.Kind == "delegation.status" && (e.Status == "failed" || e.Status == "cancelled"):
			return r, fmt.Errorf("a piece of work ended as %s", e.Status)
		case e.Kind == "notice" && e.Notices > 0:
			told = true
		case e.Kind == "turn.status" && (e.Status == "Failed" || e.Status == "Interrupted"):
			return r, fmt.Errorf("a Turn ended as %s: %s", e.Status, e.Error)
		case e.Kind == "turn.status" && e.Status == "Completed" && told:
			r.ended = e.at
			return r, nil
		}
	}
}

// work measures rounds of given work, on an empty server and beside ended pieces.
func (b *bench) work(ctx context.Context, s *subject) error {
	if err := b.many(ctx, s, b.report.section(givenWork, "rounds of given work, "+s.name), (*caller).workRound); err != nil {
		return err
	}
	b.say("%s: adding %d ended pieces", givenWork, b.pieces)
	if err := s.addEnded(ctx, b.pieces); err != nil {
		return err
	}
	return b.many(ctx, s, b.report.section(givenWork, fmt.Sprintf("rounds of given work beside %d ended pieces", b.pieces)), (*caller).workRound)
}

// addEnded copies the rows of one ended piece, with its Chat and its Turn, so many times:
// to give them one by one would take as long as the rounds do.
func (s *subject) addEnded(ctx context.Context, n int) error {
	var id string
	err := s.database.QueryRow(ctx, "SELECT id FROM delegations WHERE ended_at IS NOT NULL AND notice_due_at IS NULL AND closing_due_at IS NULL LIMIT 1").Scan(&id)
	if err != nil {
		return fmt.Errorf("no piece of work has ended: %w", err)
	}
	tx, err := s.database.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // nothing after a commit
	const name = "to_char(n, 'FM00000000000000000000000000000000')"
	for _, statement := range []string{
		`INSERT INTO chats SELECT (jsonb_populate_record(c, jsonb_build_object('id', left(c.id, 4) || ` + name + `, 'delegation_id', left(d.id, 4) || ` + name + `))).*
			FROM delegations d JOIN chats c ON c.id = d.chat_id, generate_series(1, $2::int) n WHERE d.id = $1`,
		`INSERT INTO turns SELECT (jsonb_populate_record(t, jsonb_build_object('id', left(t.id, 4) || ` + name + `, 'chat_id', left(d.chat_id, 4) || ` + name + `))).*
			FROM delegations d JOIN turns t ON t.chat_id = d.chat_id, generate_series(1, $2::int) n WHERE d.id = $1`,
		`INSERT INTO delegations SELECT (jsonb_populate_record(d, jsonb_build_object('id', left(d.id, 4) || ` + name + `, 'execution_id', left(d.execution_id, 4) || ` + name + `, 'chat_id', left(d.chat_id, 4) || ` + name + `))).*
			FROM delegations d, generate_series(1, $2::int) n WHERE d.id = $1`,
	} {
		if _, err := tx.Exec(ctx, statement, id, n); err != nil {
			return fmt.Errorf("ended pieces cannot be added: %w", err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	var ended int
	if err := s.database.QueryRow(ctx, "SELECT count(*) FROM delegations WHERE ended_at IS NOT NULL").Scan(&ended); err != nil {
		return err
	}
	if ended <= n {
		return errors.New("the ended pieces were not added")
	}
	_, err = s.database.Exec(ctx, "ANALYZE delegations, chats, turns")
	return err
}
