package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/domain"
)

const approvals = "/api/v1/approvals"

// approvalFields are the fields of the object, in the order of its document.
var approvalFields = []string{"id", "runId", "toolName", "resource", "tags", "reason", "inputRedacted", "decision", "reviewVerdict", "expiresAt", "createdAt"}

// approvalsOf reads the list with its cursors.
func (h *house) approvalsOf(secret, query string) (ids []string, pages int) {
	h.t.Helper()
	for cursor := ""; ; pages++ {
		a := h.as(secret, "GET", approvals+"?"+query+cursor, "")
		if a.status != 200 {
			h.t.Fatalf("the list gave %d: %s", a.status, a.body)
		}
		page := a.object(h.t)
		for _, one := range page["data"].([]any) {
			ids = append(ids, text(one.(map[string]any)["id"]))
		}
		next, more := page["nextCursor"].(string)
		if !more {
			return ids, pages + 1
		}
		cursor = "&cursor=" + next
	}
}

// Every answer of the routes for scripts, word for word.
func TestApprovalsAreGolden(t *testing.T) {
	h := newHouse(t)
	g := newGolden(t)
	h.connect()
	g.same("approvals/list-200-empty", h.call("GET", approvals, ""))
	_, _, request := h.asking()
	id := domain.UUIDOf(request)
	h.asking()
	g.same("approvals/list-200", h.call("GET", approvals+"?state=pending&limit=1", ""))
	g.same("approvals/read-200", h.call("GET", approvals+"/"+id, ""))
	g.same("approvals/read-404", h.call("GET", approvals+"/"+request, ""))
	g.same("approvals/decide-422", h.call("POST", approvals+"/"+id+"/decide", `{"decision":"always_allow","scope":"lifetime"}`))
	g.same("approvals/decide-400", h.call("POST", approvals+"/"+id+"/decide", `{"decision":`))
	g.same("approvals/decide-415", h.call("POST", approvals+"/"+id+"/decide", `{"decision":"approved"}`, "Content-Type", "text/plain"))
	g.same("approvals/decide-200", h.call("POST", approvals+"/"+id+"/decide", `{"decision":"denied","reason":"Not today."}`))
	g.same("approvals/decide-409", h.call("POST", approvals+"/"+id+"/decide", `{"decision":"approved"}`))
	g.same("approvals/list-422-state", h.call("GET", approvals+"?state=approved", ""))
	g.same("approvals/unauthorized-401", h.as("", "GET", approvals, ""))
	_, reader := h.token(`["read"]`)
	g.same("approvals/forbidden-403", h.as(reader, "POST", approvals+"/"+id+"/decide", `{"decision":"approved"}`))
	g.same("approvals/route-404", h.call("GET", "/api/v1/nothing", ""))
	g.same("approvals/method-405", h.call("DELETE", approvals+"/"+id, ""))
}

// The object has exactly the fields of its document, and says what the Request says.
func TestAnApprovalIsTheRequest(t *testing.T) {
	h := newHouse(t)
	h.connect()
	_, turn, request := h.asking()
	a := h.call("GET", approvals+"/"+domain.UUIDOf(request), "")
	got := a.object(t)
	at := -1
	for _, field := range approvalFields {
		next := strings.Index(a.body, `"`+field+`":`)
		if next <= at {
			t.Errorf("%s does not stand where its document has it: %s", field, a.body)
		}
		at = next
	}
	r := h.ok(200, "GET", "/v1/requests/"+request, "")
	iso := func(ms any) string {
		return time.UnixMilli(int64(ms.(float64))).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	for field, want := range map[string]any{"id": domain.UUIDOf(request), "runId": domain.UUIDOf(turn), "toolName": "send_email", "reason": "Ann asked for it.",
		"decision": nil, "reviewVerdict": nil, "resource": nil, "createdAt": iso(r["createdAt"]), "expiresAt": iso(r["expiresAt"])} {
		if got[field] != want {
			t.Errorf("%s is %v, not %v", field, got[field], want)
		}
	}
	if len(got) != len(approvalFields) || fmt.Sprint(got["inputRedacted"]) != fmt.Sprint(r["arguments"]) || fmt.Sprint(got["tags"]) != "[write network]" {
		t.Errorf("got %v", got)
	}
}

func TestToolsAreCalledByTheirOwnNames(t *testing.T) {
	h := newHouse(t)
	h.connect()
	h.ok(201, "POST", "/v1/tools", `{"name":"deploy","schema":{"type":"object"},"endpoint":"https://x.example"}`)
	for message, want := range map[string]string{
		`/call mail__send_email {"to":"a@example.com"}`: "send_email",
		`/call deploy {}`: "deploy",
		`/call openbot_spawn {"name":"x","role":"","instructions":"","reason":"I need a hand."}`: "openbot_spawn",
	} {
		_, _, request := h.askingOf(message, t)
		if got := h.ok(200, "GET", approvals+"/"+domain.UUIDOf(request), "")["toolName"]; got != want {
			t.Errorf("%s is called %v", message, got)
		}
	}
}

// A script's answer is its person's, for this call alone, and lets the work go on.
func TestScriptsDecide(t *testing.T) {
	h := newHouse(t)
	h.connect()
	for _, c := range []struct{ decision, body, call string }{
		{"approved", `{"decision":"approved"}`, "succeeded"},
		{"denied", `{"decision":"denied","reason":"Not today."}`, "denied"},
	} {
		_, turn, request := h.asking()
		path := approvals + "/" + domain.UUIDOf(request)
		if got := h.ok(200, "POST", path+"/decide", c.body)["decision"]; got != c.decision {
			t.Errorf("decision is %v, not %s", got, c.decision)
		}
		if got := h.ok(200, "GET", path, "")["decision"]; got != c.decision {
			t.Errorf("decision is read as %v, not %s", got, c.decision)
		}
		h.work()
		called := h.ok(200, "GET", "/v1/turns/"+turn, "")["calls"].([]any)[0].(map[string]any)
		if called["status"] != c.call {
			t.Errorf("after %s the call is %v", c.decision, called["status"])
		}
		d := h.ok(200, "GET", "/v1/requests/"+request, "")["decision"].(map[string]any)
		if d["scope"] != "once" || d["rule"] != nil || d["by"].(map[string]any)["userId"] != string(h.me.member) {
			t.Errorf("the decision is %v", d)
		}
		before := h.snapshot()
		h.ok(200, "POST", path+"/decide", c.body) // the same answer again
		h.refused(h.call("POST", path+"/decide", `{"decision":"denied","reason":"Other."}`), 409, "")
		if h.snapshot() != before {
			t.Error("an answer after the decision changed something")
		}
	}
	if grants := h.call("GET", "/v1/grants", "").list(t); len(grants) != 0 {
		t.Errorf("a script kept a decision: %v", grants)
	}
}

// Nothing but the two answers is taken, a standing decision above all.
func TestOnlyTwoAnswersAreTaken(t *testing.T) {
	h := newHouse(t)
	h.connect()
	_, _, request := h.asking()
	path := approvals + "/" + domain.UUIDOf(request) + "/decide"
	before := h.snapshot()
	for _, body := range []string{`{}`, `{"decision":null}`, `{"decision":""}`, `{"decision":"allow"}`, `{"decision":"deny"}`, `{"decision":"always"}`, `{"decision":"always_allow"}`,
		`{"decision":"Approved"}`, `{"decision":"approved "}`, `{"decision":["approved"]}`, `{"decision":true}`, `{"Decision":"approved"}`, `{"decision":"approved","always":true}`,
		`{"decision":"approved","scope":"lifetime"}`, `{"decision":"approved","scope":"once"}`, `{"decision":"approved","rule":"Allow."}`, `{"decision":"approved","expected":0}`,
		`{"decision":"approved","decision":"denied"}`, `{"decision":"approved","reason":7}`, `{"decision":"approved","reason":"` + strings.Repeat("x", 4001) + `"}`, `[]`, `"approved"`} {
		h.refused(h.call("POST", path, body), 422, "")
	}
	if h.snapshot() != before {
		t.Error("something changed")
	}
	h.ok(200, "POST", path, `{"decision":"approved","reason":null}`)
}

// What a Bot still decides is not listed and cannot be answered; it is read as what it
// is, without a decision.
func TestWhatABotDecidesIsNotForScripts(t *testing.T) {
	h := newHouse(t)
	h.connect()
	owner := text(h.ok(201, "POST", "/v1/bots", `{"name":"Owner","role":"","instructions":"/decide none"}`)["id"])
	worker := text(h.ok(201, "POST", "/v1/bots", `{"name":"Worker","role":"","instructions":"","owner":"`+owner+`"}`)["id"])
	chat := text(h.ok(201, "POST", "/v1/chats", `{"bot":"`+worker+`"}`)["id"])
	turn := text(h.ok(202, "POST", "/v1/chats/"+chat+"/messages", `{"text":"/call mail__send_email {\"to\":\"a@example.com\"}"}`)["turn"])
	for _, task := range h.bell.take() {
		must(t, h.do(t.Context(), task)) // the step, and not yet the review that it rings
	}
	request := text(h.ok(200, "GET", "/v1/turns/"+turn, "")["waitingFor"].([]any)[0].(map[string]any)["request"])
	path := approvals + "/" + domain.UUIDOf(request)
	if ids, _ := h.approvalsOf(h.secret, "state=pending"); len(ids) != 0 {
		t.Errorf("listed: %v", ids)
	}
	before := h.snapshot()
	h.refused(h.call("POST", path+"/decide", `{"decision":"approved"}`), 409, "")
	if got := h.ok(200, "GET", path, "")["decision"]; got != nil {
		t.Errorf("decision is %v", got)
	}
	if h.snapshot() != before {
		t.Error("something changed")
	}
	h.work() // the review gives no decision, and the Request goes up to the person
	if ids, _ := h.approvalsOf(h.secret, ""); !slices.Equal(ids, []string{domain.UUIDOf(request)}) {
		t.Errorf("listed: %v", ids)
	}
	h.ok(200, "POST", path+"/decide", `{"decision":"denied"}`)
}

// Whether a call whose outcome nobody knows goes out again is for a person who looks.
func TestUnknownOutcomesAreNotForScripts(t *testing.T) {
	h := newHouse(t)
	h.connect()
	h.tool = func(domain.Call) (string, bool) { return "", false } // nothing comes back
	_, _, request := h.asking()
	h.ok(200, "POST", approvals+"/"+domain.UUIDOf(request)+"/decide", `{"decision":"approved"}`)
	h.work()
	list := h.call("GET", "/v1/requests?status=pending", "").list(t)
	if len(list) != 1 || list[0]["unknown"] == nil {
		t.Fatalf("no outcome is unknown: %v", list)
	}
	if ids, _ := h.approvalsOf(h.secret, ""); len(ids) != 0 {
		t.Errorf("listed: %v", ids)
	}
	before := h.snapshot()
	path := approvals + "/" + domain.UUIDOf(text(list[0]["id"]))
	gone := h.call("GET", path, "")
	h.refused(gone, 404, "")
	h.refused(h.call("POST", path+"/decide", `{"decision":"approved"}`), 404, "")
	if nothing := h.call("GET", approvals+"/"+domain.UUIDOf("req_"+strings.Repeat("0", 32)), ""); nothing.body != gone.body {
		t.Errorf("it is told from nothing: %s, %s", gone.body, nothing.body)
	}
	if h.snapshot() != before {
		t.Error("something changed")
	}
}

// An answer after the time is up is a conflict, also before anything has noticed.
func TestScriptsComeTooLate(t *testing.T) {
	h := newHouse(t)
	h.connect()
	_, _, request := h.asking()
	path := approvals + "/" + domain.UUIDOf(request)
	h.clock.advance(24 * time.Hour)
	h.refused(h.call("POST", path+"/decide", `{"decision":"approved"}`), 409, "")
	must(t, h.engine.ElapseRequest(t.Context(), domain.RequestID(request)))
	if got := h.ok(200, "GET", path, "")["decision"]; got != "denied" {
		t.Errorf("after its time the decision is %v", got)
	}
	chat, _, request := h.asking()
	h.ok(200, "POST", "/v1/chats/"+chat+"/interrupt", "")
	if got := h.ok(200, "GET", approvals+"/"+domain.UUIDOf(request), "")["decision"]; got != nil {
		t.Errorf("what was cancelled is decided as %v", got)
	}
	h.refused(h.call("POST", approvals+"/"+domain.UUIDOf(request)+"/decide", `{"decision":"approved"}`), 409, "")
}

// Pages hold every approval once, newest first. What is no cursor of this list, and
// every limit that does not fit, is an error.
func TestApprovalPages(t *testing.T) {
	h := newHouse(t)
	h.connect()
	var made []string
	for range 5 {
		_, _, request := h.asking()
		made = append(made, domain.UUIDOf(request))
	}
	slices.Reverse(made)
	for limit, pages := range map[int]int{1: 5, 2: 3, 3: 2, 5: 1, 6: 1, 200: 1} {
		if got, n := h.approvalsOf(h.secret, fmt.Sprintf("limit=%d", limit)); !slices.Equal(got, made) || n != pages {
			t.Errorf("with limit %d, %d pages gave %v, not %v", limit, n, got, made)
		}
	}
	first := h.ok(200, "GET", approvals+"?limit=2", "")
	old := text(first["nextCursor"])
	h.ok(200, "POST", approvals+"/"+made[1]+"/decide", `{"decision":"denied"}`) // where the cursor stands
	if got := h.ok(200, "GET", approvals+"?cursor="+old, "")["data"].([]any); len(got) != 3 {
		t.Errorf("an old cursor gives %v", got)
	}
	before := h.snapshot()
	_, foreign, _ := strings.Cut(linkOf(t, h.call("GET", "/v1/requests?limit=1", "").header), "cursor=")
	foreign, _, _ = strings.Cut(foreign, "&")
	for _, query := range []string{"limit=0", "limit=-1", "limit=201", "limit=1000000000", "limit=x", "limit=1.5", "cursor=x", "cursor=" + foreign, "cursor=" + old + "x",
		"cursor=" + old[:len(old)-2], "cursor=" + made[0], "state=approved", "state=denied", "state=expired", "state=Pending", "states=pending", "%zz=1"} {
		h.refused(h.call("GET", approvals+"?"+query, ""), 422, "")
	}
	if h.snapshot() != before {
		t.Error("something changed")
	}
}

// Large inputs end a page early, and nothing is left out.
func TestPagesOfLargeInputs(t *testing.T) {
	h := newHouse(t)
	h.connect()
	const size = 480 << 10
	var made []string
	for i := range 9 {
		_, _, request := h.askingOf(`/call mail__send_email {"to":"a@example.com","text":"`+strings.Repeat("x", size)+fmt.Sprint(i)+`"}`, t)
		made = append(made, domain.UUIDOf(request))
	}
	slices.Reverse(made)
	got, pages := h.approvalsOf(h.secret, "limit=9")
	if !slices.Equal(got, made) || pages != 2 {
		t.Errorf("%d pages hold %d of %d", pages, len(got), len(made))
	}
}

// Nothing that a script can read shows a secret: not the list, not the one, not the
// answer, not what is given again under a key.
func TestScriptsReadNoSecrets(t *testing.T) {
	h := newHouse(t)
	h.connect()
	key := "ghp_" + strings.Repeat("aB3dE6gH9", 4)
	inner, err := json.Marshal(map[string]any{"auth": map[string]string{"apiKey": "hush-1"}, "note": "password=hush-2 " + key})
	must(t, err)
	arguments, err := json.Marshal(map[string]any{"to": "ann@example.com", "text": string(inner), "openbot_reason": "With " + key + " and password: hush-3"})
	must(t, err)
	_, _, request := h.askingOf("/call mail__send_email "+string(arguments), t)
	path := approvals + "/" + domain.UUIDOf(request)
	none := func(what string, a answer, more ...string) {
		t.Helper()
		if a.status != 200 || !strings.Contains(a.body, "[redacted]") {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
		for _, secret := range append(more, key, "hush-1", "hush-2", "hush-3") {
			if strings.Contains(a.body, secret) {
				t.Errorf("%s shows %s: %s", what, secret, a.body)
			}
		}
	}
	none("the list", h.call("GET", approvals, ""))
	shown := h.call("GET", path, "")
	none("the one", shown)
	if !strings.Contains(shown.body, "ann@example.com") {
		t.Errorf("the address is masked: %s", shown.body)
	}
	var one struct{ InputRedacted struct{ Text string } }
	must(t, json.Unmarshal([]byte(shown.body), &one))
	if !json.Valid([]byte(one.InputRedacted.Text)) {
		t.Errorf("the JSON in the text is broken: %s", one.InputRedacted.Text)
	}
	none("the answer", h.call("POST", path+"/decide", `{"decision":"denied"}`, "Idempotency-Key", "k"))
	none("the answer again", h.call("POST", path+"/decide", `{"decision":"denied"}`))
	// What is kept under a key is masked as the settings are when it is given again.
	h.ok(200, "PATCH", "/v1/settings", `{"redaction":{"mail":true}}`)
	none("what was kept", h.call("POST", path+"/decide", `{"decision":"denied"}`, "Idempotency-Key", "k"), "ann@example.com")
	none("the one, later", h.call("GET", path, ""), "ann@example.com")
	kept, err := h.store.KeptAnswer(t.Context(), h.me.member, "k")
	must(t, err)
	if want := `{"id":"` + request + `"}`; string(kept.Body) != want {
		t.Errorf("what is kept is %s, not %s", kept.Body, want)
	}
}

// A key makes as many calls as it may, whatever they are; one that is full slows no
// other, until all of them together are too many.
func TestApprovalBuckets(t *testing.T) {
	h := newHouse(t)
	_, first := h.token(`["read"]`)
	_, second := h.token(`["read"]`)
	_, third := h.token(`["read"]`)
	h.ok(200, "PATCH", "/v1/settings", `{"rateLimits":{"approvalsPerKey":5,"approvalsPerOrganization":12}}`)
	read := func(secret string) int {
		t.Helper()
		a := h.as(secret, "GET", approvals, "")
		if a.status == 429 {
			h.refused(a, 429, "")
		}
		return a.status
	}
	h.refused(h.as(first, "POST", approvals+"/x/decide", `{"decision":"approved"}`), 403, "") // a call as well
	for i := range 30 {
		if got, want := read(first), map[bool]int{true: 200, false: 429}[i < 4]; got != want {
			t.Fatalf("call %d of the first key gave %d", i+2, got)
		}
	}
	for i := range 5 {
		if got := read(second); got != 200 {
			t.Fatalf("call %d of the second key gave %d", i+1, got)
		}
	}
	for i := range 3 {
		if got, want := read(third), map[bool]int{true: 200, false: 429}[i < 2]; got != want {
			t.Fatalf("call %d of the third key gave %d", i+1, got)
		}
	}
	h.ok(200, "GET", "/v1/me", "") // has buckets of its own
	limited := h.as(third, "GET", approvals+"/x", "")
	h.refused(limited, 429, "")
	h.limiter.reset() // another minute
	if got := read(first); got != 200 {
		t.Errorf("the next minute gave %d", got)
	}
}

// Wrong keys are counted against their address, in a bucket that no good key pays
// into; the answer is that of every full bucket.
func TestWrongKeysOfScripts(t *testing.T) {
	h := newHouse(t)
	for range 30 {
		h.refused(h.as("obt_wrong-wrong-wrong-wrong", "GET", approvals, ""), 401, "")
	}
	h.refused(h.as("obt_wrong-wrong-wrong-wrong", "GET", approvals, ""), 429, "")
	h.refused(h.as("obt_wrong-wrong-wrong-wrong", "GET", "/v1/me", ""), 429, "RateLimited") // the same bucket
	h.ok(200, "GET", approvals, "")
}

// Everything below /api/v1 answers in the form for scripts, also what is no route.
func TestErrorsForScriptsHaveOneForm(t *testing.T) {
	h := newHouse(t)
	for _, path := range []string{"/api/v1", "/api/v1/", "/api/v1/nothing", approvals + "/", approvals + "/x/y/z", approvals + "/x/decide/"} {
		h.refused(h.call("GET", path, ""), 404, "")
	}
	for _, method := range []string{"PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"} {
		a := h.call(method, approvals, "")
		if a.status != 405 || a.header.Get("Allow") == "" || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
			t.Errorf("%s gave %d, Allow %q", method, a.status, a.header.Get("Allow"))
		}
	}
	for _, path := range []string{"/api/v2/approvals", "/api", "/api/v1x"} {
		a := h.call("GET", path, "")
		a.script = false
		h.refused(a, 404, "RouteNotFound")
	}
}
