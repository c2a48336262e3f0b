package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"openbot/domain"
	"openbot/domain/evidence"
)

// Every route of the evidence and every status that it gives, word for word.
func TestEvidenceIsGolden(t *testing.T) {
	h := newHouse(t)
	g := newGolden(t)
	h.connect()
	_, _, request := h.asking()
	g.same("evidence/receipt-404-pending", h.call("GET", "/v1/requests/"+request+"/receipt", ""))
	g.same("evidence/receipt-404", h.call("GET", "/v1/requests/req_1/receipt", ""))
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"allow","scope":"chat","reason":"Fine."}`)
	g.same("evidence/receipt-200", h.call("GET", "/v1/requests/"+request+"/receipt", ""))
	g.same("evidence/head-404", h.call("GET", "/v1/audit/head", ""))
	g.same("evidence/audit-200-waiting", h.call("GET", "/v1/audit?limit=1", ""))
	must(t, h.engine.ChainAudit(t.Context()))
	g.same("evidence/audit-200", h.call("GET", "/v1/audit?limit=3", ""))
	g.same("evidence/audit-200-first", h.call("GET", "/v1/audit?kind=organization.created", ""))
	g.same("evidence/audit-200-none", h.call("GET", "/v1/audit?actor=Expiry", ""))
	g.same("evidence/audit-422", h.call("GET", "/v1/audit?kind=request.lost&from=-1", ""))
	g.same("evidence/export-200", h.call("GET", "/v1/audit?format=jsonl&subject="+request, ""))
	g.same("evidence/head-200", h.call("GET", "/v1/audit/head", ""))
	g.same("evidence/keys-200", h.call("GET", "/.well-known/jwks.json", ""))
	h.work()
	third, _, open := h.askingOf(`/call mail__send_email {"to":"cid@example.com"}`, t)
	h.ok(200, "POST", "/v1/chats/"+third+"/interrupt", "")
	g.same("evidence/receipt-404-cancelled", h.call("GET", "/v1/requests/"+open+"/receipt", ""))
}

// What a stranger checks with nothing but what the server gave out.
func TestAStrangerChecksAReceipt(t *testing.T) {
	h := newHouse(t)
	h.connect()
	_, _, request := h.asking()
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"deny"}`)
	published := h.as("", "GET", "/.well-known/jwks.json", "")
	if published.status != 200 || !strings.Contains(published.header.Get("Cache-Control"), "public") {
		t.Fatalf("the keys: %d, %v", published.status, published.header)
	}
	keys, err := evidence.ReadKeys([]byte(published.body))
	must(t, err)
	signed, err := evidence.Open(h.call("GET", "/v1/requests/"+request+"/receipt", "").body, keys)
	must(t, err)
	seen := h.ok(200, "GET", "/v1/requests/"+request, "")
	app, decision := seen["app"].(map[string]any), seen["decision"].(map[string]any)
	r := signed.Receipt
	if string(r.Request) != request || float64(r.Revision) != seen["revision"] || r.Decision != "deny" || r.By != domain.Person(h.me.member) ||
		r.ArgumentsSHA256 != app["sha256"] || string(r.Connection) != app["connection"] || float64(r.ConnectionRevision) != app["revision"] ||
		float64(r.AtMs) != decision["at"] || r.Organization != h.me.organization {
		t.Errorf("the receipt says %+v, the Request %v", r, seen)
	}
	if leaked := h.call("GET", "/.well-known/jwks.json", "").body; strings.Contains(leaked, `"d"`) {
		t.Errorf("a private key is published: %s", leaked)
	}
	// Another Member of the organization gets nothing.
	_, other := h.stranger(`["read","*"]`, `["read"]`)
	if got := h.as(other, "GET", "/v1/requests/"+request+"/receipt", "").status; got != 404 {
		t.Errorf("another Member gets %d", got)
	}
}

// Pages hang together, and an export is what the pages are, checked by itself.
func TestTheLogByPagesAndAsAWhole(t *testing.T) {
	h := newHouse(t)
	h.connect()
	for i := range 7 {
		h.ok(201, "POST", "/v1/tokens", fmt.Sprintf(`{"name":"t%d","scopes":["read"]}`, i))
	}
	must(t, h.engine.ChainAudit(t.Context()))
	var pages []string
	for path := "/v1/audit?limit=3&kind=token.created&from=1&to=253402300799000"; path != ""; {
		a := h.call("GET", path, "")
		for _, e := range a.list(t) {
			pages = append(pages, text(e["subject"]))
		}
		link, rest, _ := strings.Cut(a.header.Get("Link"), ">")
		if link != "" && rest != `; rel="next"` {
			t.Fatalf("Link is %q", a.header.Get("Link"))
		}
		path = strings.TrimPrefix(link, "<")
	}
	if len(pages) != 8 {
		t.Fatalf("the pages have %d entries", len(pages))
	}
	lines := func(a answer) (out []string) {
		s := bufio.NewScanner(strings.NewReader(a.body))
		for s.Scan() {
			var e struct{ Subject string }
			must(t, json.Unmarshal(s.Bytes(), &e))
			out = append(out, e.Subject)
		}
		return out
	}
	slices.Reverse(pages)
	if got := lines(h.call("GET", "/v1/audit?kind=token.created", "", "Accept", "application/x-ndjson")); !slices.Equal(got, pages) {
		t.Errorf("as lines: %v, by pages: %v", got, pages)
	}
	whole := h.call("GET", "/v1/audit?format=jsonl", "")
	report, err := evidence.CheckFile(strings.NewReader(whole.body), nil)
	head := h.ok(200, "GET", "/v1/audit/head", "")
	if err != nil || report.Fault != nil || report.Waiting != 0 || float64(report.Count) != head["count"] || report.Hash != head["hash"] {
		t.Errorf("the export: %+v, %v; the head: %v", report, err, head)
	}
	keys, err := evidence.ReadKeys([]byte(h.call("GET", "/.well-known/jwks.json", "").body))
	must(t, err)
	signed, err := evidence.Open(text(head["signed"]), keys)
	if err != nil || float64(signed.Head.Count) != head["count"] || signed.Head.Hash != head["hash"] || signed.Head.Organization != h.me.organization {
		t.Errorf("the signed head: %+v, %v", signed.Head, err)
	}
	for _, kind := range domain.AuditKinds() {
		if got := h.call("GET", "/v1/audit?kind="+kind, "").status; got != 200 {
			t.Errorf("the kind %s gives %d", kind, got)
		}
	}
	for _, bad := range []string{"?limit=0", "?cursor=x", "?format=csv", "?cursor=" + url.QueryEscape(cursorOf8(t, h)) + "&format=jsonl", "?from=x", "?nobody=1"} {
		h.refused(h.call("GET", "/v1/audit"+bad, ""), 422, "InvalidInput")
	}
}

// cursorOf8 is a real cursor of the list of tokens.
func cursorOf8(t *testing.T, h *house) string {
	t.Helper()
	link := h.call("GET", "/v1/tokens?limit=1", "").header.Get("Link")
	address, err := url.Parse(strings.TrimPrefix(strings.TrimSuffix(link, `>; rel="next"`), "<"))
	must(t, err)
	return address.Query().Get("cursor")
}

// The log names the address of whoever answered, whichever way the answer came.
func TestTheLogNamesTheAddress(t *testing.T) {
	h := newHouse(t)
	h.connect()
	_, _, first := h.asking()
	h.ok(200, "POST", "/v1/requests/"+first, `{"expected":0,"decision":"deny"}`)
	_, _, second := h.asking()
	b := h.signIn(h.secret)
	b.follow(b.post("/requests/"+second, url.Values{"expected": {"0"}, "way": {"deny-once"}}))
	for _, id := range []string{first, second} {
		entries := h.call("GET", "/v1/audit?subject="+id, "").list(t)
		if len(entries) != 1 || entries[0]["address"] != "203.0.113.7" || entries[0]["token"] != string(h.me.token) || entries[0]["actor"].(map[string]any)["userId"] != string(h.me.member) {
			t.Errorf("about %s: %v", id, entries)
		}
	}
}

// An export that breaks off in the middle breaks the connection: half a log must not
// look like a whole one.
func TestAnExportThatBreaksOff(t *testing.T) {
	h := newHouse(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		c := domain.Commit{}
		for range 400 {
			c.Audit = append(c.Audit, domain.AuditEntry{Organization: h.me.organization, At: h.clock.now(), Kind: "x", Data: []byte(`{}`)})
		}
		must(t, h.store.Commit(t.Context(), c))
	}
	r := httptest.NewRequestWithContext(ctx, "GET", "/v1/audit?format=jsonl", nil)
	r.Header.Set("Authorization", "Bearer "+h.secret)
	w := &leaving{ResponseRecorder: httptest.NewRecorder(), leave: cancel}
	defer func() {
		if failed, _ := recover().(error); !errors.Is(failed, http.ErrAbortHandler) {
			t.Errorf("the answer ended as if it were whole: %v", failed)
		}
		if w.Body.Len() == 0 {
			t.Error("nothing was sent before")
		}
	}()
	h.handler.ServeHTTP(w, r)
}

// leaving is a reader who goes after the first batch.
type leaving struct {
	*httptest.ResponseRecorder
	leave func()
}

func (l *leaving) Write(b []byte) (int, error) {
	defer l.leave()
	return l.ResponseRecorder.Write(b)
}
