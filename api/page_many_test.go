package api_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"
)

// The first page is as large as any, however many Requests wait and however long their
// arguments are. That its statements read an index is tested with the store.
func TestTheFirstPageWithManyRequests(t *testing.T) {
	h := newHouse(t)
	h.connect()
	h.asking()
	const many = 3_000
	db, err := sql.Open("sqlite", "file:"+h.file+"?_pragma=busy_timeout(10000)")
	must(t, err)
	defer db.Close()
	columns := `organization_id, member_id, bot_id, action, target, reason, approver_tag, approver_user, approver_bot, approver_grant, approver_rule,
		chain, chat_id, turn_id, delegation_id, app, code, plan, on_expire, unknown, endorsements, tags, review_verdict, review_id, status, decision, revision,
		created_at, expires_at, updated_at, version`
	_, err = db.ExecContext(context.Background(), fmt.Sprintf(`INSERT INTO requests (id, call_id, arguments, %s)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 'req_0' || substr(printf('%%031x', i), 1, 31), 'call_' || i, CASE WHEN i > %d THEN '{"text":"' || hex(zeroblob(200000)) || '"}' ELSE '{"to":"ann"}' END, %s
		FROM requests, n`, columns, many, many-10, columns))
	must(t, err)
	b := h.signIn(h.secret)
	size, best := 0, time.Hour
	for range 5 {
		began := time.Now()
		page := b.get("/")
		took := time.Since(began)
		best, size = min(best, took), len(page.body)
		if page.status != 200 {
			t.Fatalf("the page gave %d", page.status)
		}
		page.shows(t, "(30&#43;) Requests")
	}
	t.Logf("the first page of %d took %s and has %d bytes", many, best, size)
	if size > 60_000 {
		t.Errorf("the first page has %d bytes", size)
	}
}
