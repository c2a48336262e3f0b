//go:build linux

package main

import (
	"context"
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
	if err := c.next(ctx); err != nil {
		return r, err
	}
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
func (b *bench) work(ctx context.Context, s *subject, to *section) error {
	if err := b.many(ctx, s, to, (*caller).workRound); err != nil {
		return err
	}
	b.say("%s: adding %d ended pieces", givenWork, b.pieces)
	if err := s.addEnded(ctx, b.pieces); err != nil {
		return err
	}
	if err := b.many(ctx, s, b.report.section(givenWork, fmt.Sprintf("rounds of given work beside %d ended pieces", b.pieces)), (*caller).workRound); err != nil {
		return err
	}
	return b.tree(ctx, s, b.report.section(givenWork, fmt.Sprintf("the root of a tree of %d pieces", b.branches)))
}

// addEnded copies one ended piece, with its Chat and its Turn.
func (s *subject) addEnded(ctx context.Context, n int) error {
	var id string
	err := s.database.QueryRow(ctx, "SELECT id FROM delegations WHERE ended_at IS NOT NULL AND notice_due_at IS NULL AND closing_due_at IS NULL LIMIT 1").Scan(&id)
	if err != nil {
		return fmt.Errorf("no piece of work has ended: %w", err)
	}
	const its = "(SELECT chat_id FROM delegations WHERE id = $1)"
	return s.copyRows(ctx, id, n, []copied{
		{table: "chats", where: "id = " + its, ids: []string{"id", "delegation_id", "turn_id", "last_turn_id"}},
		{table: "turns", where: "chat_id = " + its, ids: []string{"id", "chat_id"}},
		{table: "delegations", where: "id = $1", ids: []string{"id", "execution_id", "chat_id"}},
	})
}
