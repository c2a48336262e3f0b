package api_test

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// What models cost is a bar for each day of each Bot, and stands in numbers beside it.
func TestUsageOnPages(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	b.get("/usage").reads(t, "No model was used in these days.")
	h.chat("hello")
	b.get("/usage").reads(t, "No model of these days has a price, so the bars show tokens.", "The tallest bar is 4 tokens")
	h.clock.advance(24 * time.Hour)
	h.ok(200, "PATCH", "/v1/settings", `{"modelPrices":{"playbook":{"inputMicrosPerToken":1000,"outputMicrosPerToken":1000}}}`)
	odd := text(h.ok(201, "POST", "/v1/bots", `{"name":"<b>Odd</b>\u202e","role":"","instructions":""}`)["id"])
	chat := text(h.ok(201, "POST", "/v1/chats", `{"bot":"`+odd+`"}`)["id"])
	h.ok(202, "POST", "/v1/chats/"+chat+"/messages", `{"text":"hello"}`)
	h.chat("hello you")
	page := b.get("/usage?days=7")
	page.reads(t, "$0.0100, 3 steps", "One bar a day, from 2025-12-28 to 2026-01-03 (UTC).", "The tallest bar is $0.0060",
		"2026-01-03 Main $0.0060 1 2 4", "2026-01-02 Main $0 1 1 3")
	page.shows(t, `<title>2026-01-03: $0.0060</title>`, `height="100"`, `aria-label="By day: 2026-01-03: $0.0060"`, `&lt;b&gt;Odd&lt;/b&gt;<b class="odd">U+202E</b>`, `viewBox="0 0 70 100"`)
	if strings.Contains(page.body, "\u202e") {
		t.Error("a character that turns text around stands in the page")
	}
	if a := b.get("/usage?days=9999"); a.status != 422 {
		t.Errorf("too many days gave %d", a.status)
	}
	_, secret := h.stranger(`["write","*"]`, `["write"]`)
	h.signIn(secret).get("/usage").reads(t, "No model was used in these days.")
}

// Admins search the audit log and take what fits away as a file.
func TestAuditOnPages(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	h.connect()
	_, _, request := h.asking()
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"allow"}`)
	h.work()
	page := b.get("/audit")
	page.reads(t, "request.decided "+request, "from 203.0.113.7", "organization.created", "Export everything as JSON lines", "Not chained yet.")
	page.shows(t, `href="/requests/`+request+`"`)
	page = b.get("/audit?" + url.Values{"kind": {"request.decided"}, "subject": {request}, "actor": {string(h.me.member)}, "from": {"2026-01-02"}, "to": {"2026-01-02"}}.Encode())
	page.reads(t, "request.decided "+request, "Export what fits as JSON lines", "Everything")
	if strings.Contains(page.plain(), "organization.created "+string(h.me.organization)) {
		t.Error("the search narrows nothing")
	}
	b.get("/audit?to=2026-01-01").reads(t, "No entry fits.")
	b.get("/audit?"+url.Values{"subject": {"<script>alert(1)</script>"}}.Encode()).shows(t, `value="&lt;script&gt;alert(1)&lt;/script&gt;"`, "No entry fits.")

	export := b.get("/audit/export?kind=request.decided")
	if lines := strings.Split(strings.TrimSpace(export.body), "\n"); len(lines) != 1 || !strings.Contains(lines[0], request) ||
		export.header.Get("Content-Disposition") != `attachment; filename="audit.jsonl"` || export.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("the export is %v %s", export.header, export.body)
	}
	if all := b.get("/audit/export"); all.body != h.call("GET", "/v1/audit?format=jsonl", "").body || all.body == "" {
		t.Errorf("the whole export is %s", all.body)
	}
	for _, path := range []string{"/audit?kind=odd", "/audit?from=x", "/audit?before=x", "/audit?actor=" + strings.Repeat("x", 101), "/audit?subject=%00", "/audit?subject=%ff", "/audit/export?kind=odd"} {
		if a := b.get(path); a.status != 422 {
			t.Errorf("%s gave %d", path, a.status)
		}
	}
	for range 60 {
		h.token(`["read"]`)
	}
	first := b.get("/audit?kind=token.created")
	first.shows(t, `rel="next"`)
	_, rest, _ := strings.Cut(first.body, `rel="next" href="`)
	next, _, _ := strings.Cut(strings.ReplaceAll(rest, "&amp;", "&"), `"`)
	second := b.get(next)
	if n, m := strings.Count(first.body, "<td data-name=\"By\">"), strings.Count(second.body, "<td data-name=\"By\">"); n != 50 || m < 10 || m > 12 || strings.Contains(second.body, `rel="next"`) {
		t.Errorf("the pages have %d and %d rows: %s", n, m, next)
	}
	_, writer := h.token(`["write","*"]`)
	w := h.signIn(writer)
	for _, path := range []string{"/audit", "/audit/export"} {
		if a := w.get(path); a.status != 403 || strings.Contains(a.body, request) {
			t.Errorf("%s gave %d to no admin", path, a.status)
		}
		if a := (&browser{h: h}).get(path); a.status != 401 {
			t.Errorf("%s gave %d to nobody", path, a.status)
		}
	}
	if strings.Contains(w.get("/").body, `href="/audit"`) {
		t.Error("the menu leads everybody to the audit log")
	}
}
