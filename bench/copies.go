//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
)

// copied is one table of which rows are copied, with the columns that hold IDs of what is
// copied too.
type copied struct {
	table string
	where string // which rows, by $1
	ids   []string
	set   string // more columns, as the arguments of jsonb_build_object, or ""
}

// copiedID makes an ID for copy n: of the time of what is copied, then in the order of the
// copies, because real IDs rise and so lie side by side at the end of an index. One without
// a prefix is a UUID.
const copiedID = `CASE WHEN column = '' THEN '' WHEN strpos(column, '_') = 0 THEN md5(column || ':' || n)::uuid::text ELSE left(column, strpos(column, '_'))
	|| substr(column, strpos(column, '_') + 1, 12) || '7' || lpad(to_hex(n), 7, '0') || substr(md5(column || ':' || n), 1, 12) END`

// copyRows copies rows so many times, all in one commit: what waits or has ended is made
// in seconds, where going through the API takes as long as the rounds do. Each copy has
// IDs of its own, the same ones in all its tables.
func (s *subject) copyRows(ctx context.Context, id string, n int, tables []copied) error {
	tx, err := s.database.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // nothing after a commit
	var names []string
	for _, t := range tables {
		var fields []string
		for _, column := range t.ids {
			fields = append(fields, fmt.Sprintf("'%s', %s", column, strings.ReplaceAll(copiedID, "column", "r."+column)))
		}
		if t.set != "" {
			fields = append(fields, t.set)
		}
		made, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT made.* FROM (SELECT * FROM %s WHERE %s) r, generate_series(1, $2::int) n, LATERAL jsonb_populate_record(NULL::%s, to_jsonb(r) || jsonb_build_object(%s)) made",
			t.table, t.table, t.where, t.table, strings.Join(fields, ", ")), id, n)
		if err != nil {
			return fmt.Errorf("rows of %s cannot be copied: %w", t.table, err)
		}
		if made.RowsAffected() < int64(n) {
			return fmt.Errorf("%s has no row to copy", t.table)
		}
		names = append(names, t.table)
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	_, err = s.database.Exec(ctx, "ANALYZE "+strings.Join(names, ", "))
	return err
}

// copyParked copies the one Turn that waits in a Chat, with its Request; expiry is when the
// copies' Requests expire, as SQL over n.
func (s *subject) copyParked(ctx context.Context, chat string, n int, expiry string) error {
	return s.copyRows(ctx, chat, n, []copied{
		{table: "chats", where: "id = $1", ids: []string{"id", "turn_id", "last_turn_id"}},
		{table: "turns", where: "chat_id = $1", ids: []string{"id", "chat_id"}},
		{table: "items", where: "chat_id = $1", ids: []string{"chat_id", "turn_id", "call_id"}},
		{table: "calls", where: "chat_id = $1", ids: []string{"id", "chat_id", "turn_id", "request_id"}},
		{table: "requests", where: "chat_id = $1", ids: []string{"id", "chat_id", "turn_id", "call_id"}, set: "'expires_at', " + expiry},
	})
}
