package api_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/domain"

	_ "github.com/glebarez/go-sqlite" // to look into the database beside the store
)

// snapshot is every row of every table, but for when a token was last used.
func (h *house) snapshot() string {
	h.t.Helper()
	db, err := sql.Open("sqlite", h.file)
	must(h.t, err)
	defer func() { must(h.t, db.Close()) }()
	var names []string
	for _, row := range rowsOf(h.t, db, `SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`) {
		names = append(names, fmt.Sprint(row["name"]))
	}
	var b strings.Builder
	for _, name := range names {
		for _, row := range rowsOf(h.t, db, `SELECT * FROM "`+name+`" ORDER BY 1, 2`) {
			delete(row, "last_used_at")
			fmt.Fprintln(&b, name, row)
		}
	}
	return b.String()
}

func rowsOf(t *testing.T, db *sql.DB, query string) []map[string]any {
	t.Helper()
	rows, err := db.Query(query)
	must(t, err)
	defer func() { must(t, rows.Close()) }()
	columns, err := rows.Columns()
	must(t, err)
	var out []map[string]any
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		must(t, rows.Scan(into...))
		row := map[string]any{}
		for i, c := range columns {
			row[c] = values[i]
		}
		out = append(out, row)
	}
	must(t, rows.Err())
	return out
}

// refused sends what must be refused as a problem of this status and tag.
func (h *house) refused(a answer, status int, tag string) map[string]any {
	h.t.Helper()
	if a.script {
		return h.refusedScript(a, status)
	}
	if a.status != status || a.header.Get("Content-Type") != "application/problem+json" {
		h.t.Errorf("got %d %s, not a problem %d: %s", a.status, a.header.Get("Content-Type"), status, a.body)
		return map[string]any{}
	}
	p := a.object(h.t)
	if tag != "" && p["_tag"] != tag || p["status"] != float64(status) || text(p["title"]) == "" || text(p["detail"]) == "" {
		h.t.Errorf("not a whole problem %s: %s", tag, a.body)
	}
	return p
}

// scriptCodes are the kinds of errors that scripts can tell apart.
var scriptCodes = map[int]string{400: "invalid_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "invalid_request", 409: "conflict",
	413: "invalid_request", 415: "invalid_request", 422: "invalid_request", 429: "rate_limited", 500: "internal", 503: "unavailable"}

// refusedScript holds an answer against the form of errors for scripts, and gives it
// as a problem would be.
func (h *house) refusedScript(a answer, status int) map[string]any {
	h.t.Helper()
	var body struct {
		Error struct{ Code, Message string }
	}
	strict := json.NewDecoder(strings.NewReader(a.body))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&body); err != nil || a.status != status || a.header.Get("Content-Type") != "application/json" ||
		body.Error.Code != scriptCodes[status] || body.Error.Message == "" {
		h.t.Errorf("got %d %s, not an error %d for scripts: %s", a.status, a.header.Get("Content-Type"), status, a.body)
	}
	if wait := a.header.Get("Retry-After"); (status == 429) != (wait == "60") {
		h.t.Errorf("Retry-After of %d is %q", status, wait)
	}
	var faults []any
	for _, fault := range strings.Split(body.Error.Message, "; ") {
		path, _, _ := strings.Cut(fault, " ")
		faults = append(faults, map[string]any{"path": path})
	}
	return map[string]any{"detail": body.Error.Message, "errors": faults}
}

func faultPaths(p map[string]any) []string {
	var paths []string
	list, _ := p["errors"].([]any)
	for _, e := range list {
		paths = append(paths, text(e.(map[string]any)["path"]))
	}
	return paths
}

// belongings are things of one Member, by the name of their path parameter.
type belongings map[string]string

// tags are those of an ID that names nothing, by the name of its path parameter.
var tags = map[string]string{"bot": "BotNotFound", "chat": "ChatNotFound", "turn": "TurnNotFound", "request": "RequestNotFound",
	"connection": "ConnectionNotFound", "approval": "not_found", "tool": "ToolNotFound", "grant": "GrantNotFound", "rule": "RuleNotFound", "member": "MemberNotFound", "token": "TokenNotFound",
	"delegation": "DelegationNotFound", "execution": "ExecutionNotFound", "trigger": "TriggerNotFound", "webhook": "WebhookNotFound", "channel": "ChannelNotFound"}

// bodies fit each operation with a body.
var bodies = map[string]string{
	"decideApproval": `{"decision":"approved"}`, "createMember": `{"name":"x"}`, "changeMember": `{"name":"x"}`, "createToken": `{"name":"x","scopes":["read"]}`,
	"createBot": `{"name":"x","role":"","instructions":""}`, "changeBot": `{"name":"x"}`, "createChat": `{}`,
	"postMessage": `{"text":"x"}`, "interruptChat": `{}`, "answerRequest": `{"expected":0,"decision":"allow"}`,
	"createConnection": `{"name":"x","transport":"http","url":"https://x.example"}`, "changeConnection": `{"name":"x"}`,
	"refreshConnection": `{}`, "createTool": `{"name":"x","schema":{"type":"object"},"endpoint":"https://x.example"}`,
	"changeChat": `{"title":"x"}`, "createRule": `{"text":"Never x."}`, "changeRule": `{"enabled":false}`, "previewRule": `{"text":"Never x."}`,
	"createGrant": `{"bot":"bot_00000000000000000000000000000001","capability":{"action":"bots.spawn","target":"*"},"decision":"deny","scope":"lifetime"}`,
	"changeTool":  `{"description":"x"}`, "cancelDelegation": `{"commandKey":"stop-1"}`,
	"createTrigger": `{"name":"x","cron":"0 9 * * *","task":"x"}`, "changeTrigger": `{"name":"x"}`, "signalTrigger": `{}`,
	"changeSettings": `{"requestTimeoutMs":5000}`,
	"createWebhook":  `{"url":"https://x.example","events":["request.pending"]}`, "changeWebhook": `{"enabled":false}`, "resendDelivery": `{}`,
	"createChannel": `{"name":"x","url":"https://x.example"}`, "changeChannel": `{"enabled":true}`, "postToChannel": `{"author":"ann","text":"x"}`,
	"resendChannelDelivery": `{}`,
}

// owned makes one of everything.
func (h *house) owned() belongings {
	h.t.Helper()
	b := belongings{"connection": h.connect()}
	b["chat"], b["turn"], b["request"] = h.asking()
	b["approval"] = domain.UUIDOf(b["request"])
	b["bot"] = text(h.ok(201, "POST", "/v1/bots", bodies["createBot"])["id"])
	b["tool"] = text(h.ok(201, "POST", "/v1/tools", `{"name":"deploy","schema":{"type":"object"},"endpoint":"https://x.example"}`)["id"])
	b["rule"] = text(h.ok(201, "POST", "/v1/rules", `{"text":"Never x.","bot":"`+b["bot"]+`"}`)["id"])
	b["grant"] = text(h.ok(201, "POST", "/v1/grants", `{"bot":"`+b["bot"]+`","capability":{"action":"bots.spawn","target":"*"},"decision":"deny","scope":"lifetime"}`)["id"])
	b["token"], _ = h.token(`["read"]`)
	b["member"] = text(h.ok(201, "POST", "/v1/members", `{"name":"Else"}`)["id"])
	b["delegation"], b["execution"] = h.given(`/say done`)
	b["trigger"] = text(h.ok(201, "POST", "/v1/triggers", bodies["createTrigger"])["id"])
	b["webhook"] = text(h.ok(201, "POST", "/v1/webhooks", bodies["createWebhook"])["id"])
	b["channel"] = text(h.ok(201, "POST", "/v1/channels", bodies["createChannel"])["id"])
	b["delivery"] = h.deadLetter(b["webhook"], "")
	return b
}

// at gives the address of an operation with these IDs.
func (o operation) at(ids belongings) string {
	path := o.path
	for name, id := range ids {
		path = strings.ReplaceAll(path, "{"+name+"}", id)
	}
	return strings.NewReplacer("{", "", "}", "").Replace(path)
}

// named gives the path parameter of an operation, or "".
func (o operation) named() string {
	_, rest, ok := strings.Cut(o.path, "{")
	name, _, _ := strings.Cut(rest, "}")
	if !ok {
		return ""
	}
	return name
}

// Whoever may not call gets 401 or 403 from every operation, and nothing changes.
func TestStrangersAreRefusedEverywhere(t *testing.T) {
	h := newHouse(t)
	mine := h.owned()
	_, reader := h.token(`["read","*"]`)
	_, writer := h.token(`["write","*"]`)
	_, nobody := h.token(`["apps.call:*"]`)
	revokedID, revoked := h.token(`["admin"]`)
	h.ok(204, "DELETE", "/v1/tokens/"+revokedID, "")
	expired := text(h.ok(201, "POST", "/v1/tokens", fmt.Sprintf(`{"name":"x","scopes":["admin"],"expiresAt":%d}`, h.clock.now().Add(time.Minute).UnixMilli()))["token"])
	_, weak := h.stranger(`["read"]`, `["admin","*"]`) // her token says admin, she is not
	h.clock.advance(time.Minute)
	h.work()
	before := h.snapshot()
	calls := 0
	for _, o := range h.contract.operations {
		if o.role == "" {
			continue
		}
		path, body := o.at(mine), bodies[o.id]
		try := func(who, secret string, status int, tag string) {
			t.Helper()
			calls++
			t.Run(o.id+"/"+who, func(t *testing.T) {
				h.limiter.reset()
				a := h.as(secret, o.method, path, body)
				h.refused(a, status, tag)
				if (a.header.Get("WWW-Authenticate") == "Bearer") != (status == 401) {
					t.Errorf("WWW-Authenticate is %q", a.header.Get("WWW-Authenticate"))
				}
			})
		}
		try("without", "", 401, "Unauthenticated")
		try("wrong", "obt_wrong-wrong-wrong-wrong", 401, "Unauthenticated")
		try("revoked", revoked, 401, "Unauthenticated")
		try("expired", expired, 401, "Unauthenticated")
		try("no role", nobody, 403, "Forbidden")
		if o.role != "read" {
			try("reader", reader, 403, "Forbidden")
			try("weak Member", weak, 403, "Forbidden")
		}
		if o.role == "admin" {
			try("writer", writer, 403, "Forbidden")
		}
	}
	if calls < 200 {
		t.Errorf("only %d calls were tried", calls)
	}
	if after := h.snapshot(); after != before {
		t.Error("something changed")
	}
	// The same calls are not refused for want of a role by one that has it.
	if a := h.as(reader, "GET", "/v1/requests", ""); a.status != 200 {
		t.Errorf("a reader may not read: %d", a.status)
	}
}

// An ID that is malformed, of nothing, or of another Member is the same 404, and
// nothing changes.
func TestWhatIsNotYoursIsNotThere(t *testing.T) {
	h := newHouse(t)
	mine := h.owned()
	member, secret := h.stranger(`["write","*"]`, `["write","*"]`)
	before := h.snapshot()
	for _, o := range h.contract.operations {
		name := o.named()
		if name == "" {
			continue
		}
		tag := tags[name]
		prefix, _, _ := strings.Cut(mine[name], "_")
		for _, id := range []string{"x9", prefix + "_1", prefix + "_" + strings.Repeat("0", 31) + "G", prefix + "_" + strings.Repeat("0", 33),
			strings.ToUpper(mine[name]), prefix + "_" + strings.Repeat("0", 32), "%00", prefix + "_%00", "..%2f..", "%F0%9F%90%B1", "'%20OR%201=1"} {
			p := h.refused(h.call(o.method, o.at(belongings{name: id}), bodies[o.id]), 404, tag)
			if detail := text(p["detail"]); strings.Contains(detail, id) {
				t.Errorf("%s tells the ID back: %s", o.id, detail)
			}
		}
		if o.role == "admin" || name == "tool" {
			continue // these belong to the organization
		}
		a := h.as(secret, o.method, o.at(mine), bodies[o.id])
		h.refused(a, 404, tag)
		nothing := h.as(secret, o.method, o.at(belongings{name: prefix + "_" + strings.Repeat("0", 32)}), bodies[o.id])
		if nothing.body != a.body {
			t.Errorf("%s tells another's from nothing: %s, %s", o.id, a.body, nothing.body)
		}
	}
	for _, list := range []string{"chats", "requests", "connections"} {
		if got := h.as(secret, "GET", "/v1/"+list, "").list(t); len(got) != 0 {
			t.Errorf("the stranger sees %s: %v", list, got)
		}
	}
	if got := h.as(secret, "GET", "/v1/bots", "").list(t); len(got) != 1 {
		t.Errorf("the stranger %s sees other Bots than its own: %v", member, got)
	}
	if h.snapshot() != before {
		t.Error("something changed")
	}
}

// A body that is not JSON is 400, one that does not fit 422 with the place, one
// that is too large 413; and nothing changes.
func TestBodiesThatDoNotFit(t *testing.T) {
	h := newHouse(t)
	mine := h.owned()
	before := h.snapshot()
	tried := 0
	for _, o := range h.contract.operations {
		if o.body == nil {
			continue
		}
		body, ok := bodies[o.id]
		if !ok {
			t.Errorf("the test has no body for %s", o.id)
			continue
		}
		path := o.at(mine)
		send := func(body string) answer {
			tried++
			return h.call(o.method, path, body)
		}
		for _, broken := range []string{`{`, `{"a":1,}`, body + `x`, "\xff", `{"text":"` + "\xc3" + `"}`, `nul`, strings.Repeat("[", 20000)} {
			h.refused(send(broken), 400, "InvalidJSON")
		}
		if !o.optionalBody {
			h.refused(send(""), 400, "InvalidJSON")
			h.refused(send(" \n"), 400, "InvalidJSON")
			h.refused(send("null"), 422, "InvalidInput")
		}
		for _, wrong := range []string{`[]`, `"text"`, `7`, `true`, `[` + body + `]`} {
			h.refused(send(wrong), 422, "InvalidInput")
		}
		h.refused(send(body[:len(body)-1]+strings.Repeat(" ", 1<<20)+"}"), 413, "BodyTooLarge")
		unknown := strings.TrimSuffix(body, "}") + comma(body) + `"unknown":1}`
		if paths := faultPaths(h.refused(send(unknown), 422, "InvalidInput")); !slices.Contains(paths, "unknown") {
			t.Errorf("%s does not name the unknown field: %v", o.id, paths)
		}
		twice := strings.TrimSuffix(body, "}") + comma(body) + `"same":1,"same":2}`
		if paths := faultPaths(h.refused(send(twice), 422, "InvalidInput")); !slices.Contains(paths, "same") {
			t.Errorf("%s does not name the field that stands twice: %v", o.id, paths)
		}
		schema := h.contract.resolve(o.body)
		if alternatives, ok := schema["anyOf"].([]any); ok {
			schema = h.contract.resolve(alternatives[0].(map[string]any))
		}
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for name, property := range properties {
			for _, wrong := range wrongFor(h.contract.resolve(property.(map[string]any))) {
				paths := faultPaths(h.refused(send(with(t, body, name, wrong)), 422, "InvalidInput"))
				if !slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, name) }) {
					t.Errorf("%s with %s=%s does not name the field: %v", o.id, name, wrong, paths)
				}
			}
			if slices.Contains(required, any(name)) {
				if paths := faultPaths(h.refused(send(with(t, body, name, "")), 422, "InvalidInput")); !slices.Contains(paths, name) {
					t.Errorf("%s does not name the missing %s: %v", o.id, name, paths)
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d bodies were tried", tried)
	}
	if h.snapshot() != before {
		t.Error("something changed")
	}
}

func comma(body string) string {
	if body == "{}" {
		return ""
	}
	return ","
}

// with sets a field of a JSON object; "" takes it away.
func with(t *testing.T, body, name, value string) string {
	t.Helper()
	var object map[string]json.RawMessage
	must(t, json.Unmarshal([]byte(body), &object))
	delete(object, name)
	if value != "" {
		object[name] = json.RawMessage(value)
	}
	raw, err := json.Marshal(object)
	must(t, err)
	return string(raw)
}

// wrongFor gives values that do not fit a schema.
func wrongFor(schema map[string]any) []string {
	kind := schema["type"]
	if list, ok := kind.([]any); ok {
		kind = list[0]
	}
	switch kind {
	case "string":
		return []string{`7`, `{}`, `["x"]`, `true`, `"a\u0000b"`}
	case "integer":
		return []string{`"7"`, `1.5`, `{}`, `1e30`, `true`}
	case "boolean":
		return []string{`"true"`, `1`, `[]`}
	case "array":
		return []string{`"x"`, `{}`, `[[]]`, `[null]`}
	case "object":
		return []string{`"x"`, `[]`, `7`}
	}
	return nil
}

// Query values that do not fit are 422 with the name.
func TestQueriesThatDoNotFit(t *testing.T) {
	h := newHouse(t)
	mine := h.owned()
	lists := 0
	for _, o := range h.contract.operations {
		if o.method != "GET" || o.role == "" {
			continue
		}
		path := o.at(mine)
		if paths := faultPaths(h.refused(h.call("GET", path+"?unknown=1", ""), 422, "InvalidInput")); !slices.Contains(paths, "unknown") {
			t.Errorf("%s does not name the unknown parameter: %v", o.id, paths)
		}
		h.refused(h.call("GET", path+"?%zz=1", ""), 422, "InvalidInput")
		if !slices.ContainsFunc(o.parameters, func(p parameter) bool { return p.Name == "limit" }) {
			continue
		}
		lists++
		for _, limit := range []string{"0", "-1", "201", "x", "1.5", "99999999999999999999"} {
			if paths := faultPaths(h.refused(h.call("GET", path+"?limit="+limit, ""), 422, "InvalidInput")); !slices.Equal(paths, []string{"limit"}) {
				t.Errorf("%s does not name limit=%s: %v", o.id, limit, paths)
			}
		}
		if !slices.ContainsFunc(o.parameters, func(p parameter) bool { return p.Name == "cursor" }) {
			continue
		}
		for _, cursor := range []string{"x", "AA", "AXg", "!!", "AWJvdF8xIG1hbnVhbHM", strings.Repeat("A", 500)} {
			h.refused(h.call("GET", path+"?cursor="+cursor, ""), 422, "InvalidInput")
		}
	}
	if lists < 9 {
		t.Errorf("only %d lists were tried", lists)
	}
	for query, path := range map[string]string{"status=open": "status", "bot=bot_1": "bot", "agent=x": "agent", "session=%00": "session",
		"action=apps.eat": "action", "bot=" + mine["bot"] + "&agent=" + string(h.me.mainBot): "agent"} {
		if paths := faultPaths(h.refused(h.call("GET", "/v1/requests?"+query, ""), 422, "InvalidInput")); !slices.Equal(paths, []string{path}) {
			t.Errorf("%s: %v", query, paths)
		}
	}
}

// The words of the older documents name the same things.
func TestOlderWordsAreTaken(t *testing.T) {
	h := newHouse(t)
	mine := h.owned()
	main := string(h.me.mainBot)
	for query, want := range map[string]int{"bot=" + main: 1, "agent=" + main: 1, "bot=" + main + "&agent=" + main: 1, "agent=" + mine["bot"]: 0,
		"chat=" + mine["chat"]: 1, "session=" + mine["chat"]: 1, "action=apps.call": 1, "action=agents.spawn": 0, "action=bots.spawn": 0,
		"status=pending": 1, "status=allowed": 0} {
		if got := len(h.call("GET", "/v1/requests?"+query, "").list(t)); got != want {
			t.Errorf("%s gave %d Requests, not %d", query, got, want)
		}
	}
}

// Pages of a list hold every row once, newest first, and a cursor is good for its
// own list alone.
func TestPaging(t *testing.T) {
	h := newHouse(t)
	var made []string
	for range 7 {
		made = append(made, text(h.ok(201, "POST", "/v1/chats", `{}`)["id"]))
	}
	slices.Reverse(made)
	for _, limit := range []int{1, 2, 3, 7, 8} {
		var got []string
		next, pages := fmt.Sprintf("/v1/chats?limit=%d", limit), 0
		for next != "" {
			a := h.call("GET", next, "")
			for _, c := range a.list(t) {
				got = append(got, text(c["id"]))
			}
			pages++
			next = linkOf(t, a.header)
		}
		if !slices.Equal(got, made) || pages != (7+limit-1)/limit {
			t.Errorf("with limit %d, %d pages gave %v, not %v", limit, pages, got, made)
		}
	}
	chats := linkOf(t, h.call("GET", "/v1/chats?limit=1", "").header)
	_, query, _ := strings.Cut(chats, "?")
	for _, other := range []string{"/v1/requests", "/v1/bots", "/v1/connections", "/v1/tokens", "/v1/members", "/v1/tools", "/v1/chats/" + made[0] + "/turns"} {
		h.refused(h.call("GET", other+"?"+query, ""), 422, "InvalidInput")
	}
}

// The filters of a list stand in the link to its next page.
func TestLinksKeepFilters(t *testing.T) {
	h := newHouse(t)
	h.connect()
	for range 3 {
		h.asking()
	}
	next := linkOf(t, h.call("GET", "/v1/requests?status=pending&action=apps.call&limit=2", "").header)
	if !strings.Contains(next, "status=pending") || !strings.Contains(next, "action=apps.call") {
		t.Errorf("the filters are lost: %s", next)
	}
	if got := h.call("GET", next, ""); len(got.list(t)) != 1 || linkOf(t, got.header) != "" {
		t.Errorf("the last page is wrong: %s", got.body)
	}
}

func linkOf(t *testing.T, h http.Header) string {
	t.Helper()
	link := h.Get("Link")
	if link == "" {
		return ""
	}
	address, ok := strings.CutSuffix(link, `>; rel="next"`)
	if !ok || !strings.HasPrefix(address, "</v1/") {
		t.Fatalf("the link is %q", link)
	}
	return address[1:]
}

// bodies and tags speak of operations and parameters that there are.
func TestTheTablesOfTheTestsAreWhole(t *testing.T) {
	h := newHouse(t)
	ids := map[string]bool{}
	for _, o := range h.contract.operations {
		ids[o.id] = true
		if name := o.named(); name != "" && tags[name] == "" {
			t.Errorf("no tag for {%s}", name)
		}
	}
	for id := range maps.Keys(bodies) {
		if !ids[id] {
			t.Errorf("there is no operation %s", id)
		}
	}
}
