//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// treeLead is how long the root may work at least before its limit pauses it, and for
	// each piece: time to write the tree down.
	treeLead     = 5 * time.Second
	treeLeadEach = 3 * time.Millisecond
	// treeLimit bounds each wait of the tree.
	treeLimit = 10 * time.Minute
	// treeLook is how often it is looked whether something has come.
	treeLook = 2 * time.Millisecond
	// refusedAnswers is how many answers below cancelled work are tried.
	refusedAnswers = 20
)

// giving makes the playbook give work away whose time is limited, and end its own Turn.
func giving(task string, limit time.Duration) string {
	arguments, err := json.Marshal(object{"task": task, "limits": object{"timeMs": limit.Milliseconds()}})
	if err != nil {
		panic(err) // texts and numbers always have a form in JSON
	}
	return "/call openbot_delegate " + string(arguments) + "\n/say Given."
}

// tree measures what happens at the root of very many pieces of work that all wait: its
// time ends, it is let go on, it is cancelled.
func (b *bench) tree(ctx context.Context, s *subject, to *section) error {
	until := treeLead + time.Duration(b.branches)*treeLeadEach
	chat, err := s.client.newChat(ctx)
	if err != nil {
		return err
	}
	if _, err := s.client.say(ctx, chat, giving(giving(message, 24*time.Hour), until)); err != nil {
		return err
	}
	var root, inside string // the root and its Chat
	var due int64
	err = s.awaitRow(ctx, `SELECT root.id, root.chat_id, root.due_at FROM delegations root JOIN delegations below ON below.above_id = root.id
		JOIN requests r ON r.chat_id = below.chat_id AND r.status = 'pending' WHERE root.parent_chat_id = $1`, []any{chat}, &root, &inside, &due)
	if err != nil {
		return err
	}
	b.say("%s: adding %d pieces of work below one", to.Workload, b.branches-1)
	if err := s.copyBranch(ctx, root, b.branches-1); err != nil {
		return err
	}
	if time.Now().UnixMicro() >= due {
		return errors.New("writing the tree down took longer than its root may work")
	}
	b.say("%s: waiting for the root's limit", to.Workload)
	if err := wait(ctx, time.Until(time.UnixMicro(due))); err != nil {
		return err
	}
	var paused int64
	if err := s.awaitRow(ctx, "SELECT updated_at FROM delegations WHERE id = $1 AND status = 'paused'", []any{root}, &paused); err != nil {
		return err
	}
	to.add("root at its limit until all is paused", "ms", float64(paused-due)/1000)

	var request string
	var revision int64
	err = s.awaitRow(ctx, "SELECT id, revision FROM requests WHERE chat_id = $1 AND status = 'pending' AND action = 'delegations.continue'", []any{inside}, &request, &revision)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := s.client.allow(ctx, request, revision); err != nil {
		return err
	}
	var status string
	if err := s.awaitRow(ctx, "SELECT status FROM delegations WHERE id = $1 AND status <> 'paused'", []any{root}, &status); err != nil {
		return err
	}
	to.add("root let go on until all goes on", "ms", milliseconds(time.Since(start)))
	return b.cancelTree(ctx, s, root, to)
}

// cancelTree cancels the root, and sees that nothing below is allowed from then on.
func (b *bench) cancelTree(ctx context.Context, s *subject, root string, to *section) error {
	rows, err := s.database.Query(ctx, `SELECT r.id, r.revision FROM delegations d JOIN requests r ON r.chat_id = d.chat_id AND r.status = 'pending'
		WHERE d.above_id = $1 ORDER BY r.id DESC LIMIT $2`, root, refusedAnswers)
	if err != nil {
		return err
	}
	open, err := pgx.CollectRows(rows, pgx.RowToStructByPos[waitingRequest])
	if err != nil {
		return err
	}
	start := time.Now()
	if err := s.client.call(ctx, "POST", "/v1/delegations/"+root+"/cancel", object{"commandKey": "stop-" + root}, 202, nil); err != nil {
		return err
	}
	to.add("root cancelled, in force for all", "ms", milliseconds(time.Since(start)))
	for _, r := range open {
		if err := s.client.call(ctx, "POST", "/v1/requests/"+r.ID, object{"expected": r.Revision, "decision": "allow"}, 409, nil); err != nil {
			return fmt.Errorf("an allow below cancelled work was not refused: %w", err)
		}
	}
	to.add("allows below it tried and refused", "", float64(len(open)))
	var left int
	err = s.awaitRow(ctx, `SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM delegations WHERE above_id = $1 AND ended_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM delegations WHERE id = $1 AND ended_at IS NULL)`, []any{root}, &left)
	to.add("until all are closed and told", "s", time.Since(start).Seconds())
	return err
}

// awaitRow reads the row that a query gives, once it gives one.
func (s *subject) awaitRow(ctx context.Context, query string, args []any, into ...any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, treeLimit, errors.New("the tree of work did not come as far as it should"))
	defer cancel()
	ticker := time.NewTicker(treeLook)
	defer ticker.Stop()
	for {
		if err := s.database.QueryRow(ctx, query, args...).Scan(into...); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// copyBranch copies the one piece below the root, which waits for an answer, with all that
// it is made of.
func (s *subject) copyBranch(ctx context.Context, root string, n int) error {
	var id string
	if err := s.database.QueryRow(ctx, "SELECT id FROM delegations WHERE above_id = $1", root).Scan(&id); err != nil {
		return err
	}
	const its = "(SELECT chat_id FROM delegations WHERE id = $1)"
	return s.copyRows(ctx, id, n, []copied{
		{table: "chats", where: "id = " + its, ids: []string{"id", "delegation_id", "turn_id", "last_turn_id"},
			set: "'parent', replace(r.parent, $1, " + strings.ReplaceAll(copiedID, "column", "$1") + ")"},
		{table: "turns", where: "chat_id = " + its, ids: []string{"id", "chat_id"}},
		{table: "items", where: "chat_id = " + its, ids: []string{"chat_id", "turn_id", "call_id"}},
		{table: "calls", where: "chat_id = " + its, ids: []string{"id", "chat_id", "turn_id", "request_id"}},
		{table: "requests", where: "chat_id = " + its, ids: []string{"id", "chat_id", "turn_id", "call_id", "delegation_id"}},
		{table: "delegations", where: "id = $1", ids: []string{"id", "execution_id", "chat_id"}},
	})
}
