package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/api"
	"openbot/domain"
	"openbot/domain/engine"
)

// elsewhere is the ID part of everything of the other organization.
const elsewhere = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// otherOrganization makes another tenant, with a token that may do everything there.
func (h *house) otherOrganization() (secret string) {
	h.t.Helper()
	secret = "other-token-0123456789-0123456789-0123456789"
	all, now := domain.Permissions{domain.RoleAdmin, "*"}, h.clock.now()
	org := domain.Organization{ID: "org_" + elsewhere, Name: "Other", Settings: domain.DefaultSettings(), CreatedAt: now, UpdatedAt: now}
	member := domain.Member{ID: "mem_" + elsewhere, Organization: org.ID, Name: "Other", Permissions: all, MainBot: "bot_" + elsewhere, CreatedAt: now, UpdatedAt: now}
	bot := domain.Bot{ID: member.MainBot, Organization: org.ID, Kind: domain.BotMain, Member: member.ID, Name: "Main", CreatedAt: now, UpdatedAt: now}
	token := domain.Token{ID: "tok_" + elsewhere, Organization: org.ID, Member: member.ID, Name: "other", Hash: engine.HashSecret(secret), Scopes: all, CreatedAt: now}
	must(h.t, h.store.Commit(h.t.Context(), domain.Commit{At: now, Rows: []domain.Row{&org, &member, &bot, &token}}))
	return secret
}

// another makes one more thing of the kind that a path parameter names.
func (h *house) another(kind string, n int) string {
	h.t.Helper()
	switch kind {
	case "connection":
		return text(h.ok(201, "POST", "/v1/connections", fmt.Sprintf(`{"name":"extra%d","transport":"http","url":"https://mail.example/mcp"}`, n))["id"])
	case "chat":
		return text(h.ok(201, "POST", "/v1/chats", `{}`)["id"])
	case "turn":
		_, turn := h.chat("Hello")
		return turn
	case "request":
		_, _, request := h.asking()
		return request
	case "approval":
		_, _, request := h.asking()
		return domain.UUIDOf(request)
	case "bot":
		return text(h.ok(201, "POST", "/v1/bots", bodies["createBot"])["id"])
	case "tool":
		return text(h.ok(201, "POST", "/v1/tools", fmt.Sprintf(`{"name":"extra%d","schema":{"type":"object"},"endpoint":"https://x.example"}`, n))["id"])
	case "rule":
		return text(h.ok(201, "POST", "/v1/rules", `{"text":"Never x."}`)["id"])
	case "grant":
		bot := h.another("bot", n)
		return text(h.ok(201, "POST", "/v1/grants", `{"bot":"`+bot+`","capability":{"action":"bots.spawn","target":"*"},"decision":"deny","scope":"lifetime"}`)["id"])
	case "member":
		return text(h.ok(201, "POST", "/v1/members", `{"name":"Extra"}`)["id"])
	case "token":
		id, _ := h.token(`["read"]`)
		return id
	case "delegation":
		id, _ := h.given(`/call mail__send_email {"to":"ann@example.com"}`)
		return id
	case "execution":
		_, run := h.given(`/say done`)
		return run
	case "trigger":
		return text(h.ok(201, "POST", "/v1/triggers", bodies["createTrigger"])["id"])
	case "webhook":
		return text(h.ok(201, "POST", "/v1/webhooks", bodies["createWebhook"])["id"])
	case "channel":
		return text(h.ok(201, "POST", "/v1/channels", bodies["createChannel"])["id"])
	case "any": // of the pages of the queue
		return "queues"
	}
	h.t.Fatalf("the test cannot make a %s", kind)
	return ""
}

// newLines gives the lines of a text that another one does not have.
func newLines(before, after string) string {
	var added []string
	had := slices.Collect(strings.Lines(before))
	for line := range strings.Lines(after) {
		if !slices.Contains(had, line) {
			added = append(added, line)
		}
	}
	return strings.Join(added, "")
}

// door is one route of the server, as the router has it.
type door struct{ method, path string }

func (h *house) doors() []door {
	h.t.Helper()
	router, ok := h.handler.(interface{ Routes() gin.RoutesInfo })
	if !ok {
		h.t.Fatal("the routes cannot be listed")
	}
	var doors []door
	for _, r := range router.Routes() {
		doors = append(doors, door{r.Method, r.Path})
	}
	slices.SortFunc(doors, func(a, b door) int { return strings.Compare(a.path+" "+a.method, b.path+" "+b.method) })
	return doors
}

// parameter gives the kind that the path names, or "".
func (d door) parameter() string {
	_, name, _ := strings.Cut(strings.ReplaceAll(d.path, "*", ":"), ":")
	name, _, _ = strings.Cut(name, "/")
	return name
}

func (d door) at(id string) string {
	name := d.parameter()
	return strings.NewReplacer(":"+name, id, "*"+name, id).Replace(d.path)
}

// untilBegun ends a request when its answer begins, so that streams end.
type untilBegun struct {
	*httptest.ResponseRecorder
	stream bool
	end    context.CancelFunc
}

func (w *untilBegun) Flush() {
	w.ResponseRecorder.Flush()
	if w.stream {
		w.end()
	}
}

// knock calls a door with a token.
func (h *house) knock(d door, id, secret, body string) int {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, d.method, d.at(id), strings.NewReader(body))
	r.RemoteAddr = "203.0.113.7:4000"
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := &untilBegun{ResponseRecorder: httptest.NewRecorder(), stream: d.path == "/v1/events" || strings.HasSuffix(d.path, "/observe"), end: cancel}
	h.limiter.reset()
	h.handler.ServeHTTP(w, r)
	return w.Code
}

// styleName is the address of the style sheet, which changes with its content.
var styleName = regexp.MustCompile(`/style-[0-9a-f]+\.css +`)

// Every route of the server, by every kind of caller: the whole table is kept, so that
// a new route or a changed right shows.
func TestWhoMayCallWhat(t *testing.T) {
	h := newHouse(t, func(o *api.Options) {
		o.Monitoring = func(string, bool) http.Handler { return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}) }
	})
	h.connect()
	_, reader := h.token(`["read","*"]`)
	_, writer := h.token(`["write","*"]`)
	_, admin := h.token(`["admin","*"]`)
	_, nobody := h.token(`["apps.call:*"]`)
	revokedID, revoked := h.token(`["admin","*"]`)
	h.ok(204, "DELETE", "/v1/tokens/"+revokedID, "")
	expired := text(h.ok(201, "POST", "/v1/tokens", fmt.Sprintf(`{"name":"x","scopes":["admin","*"],"expiresAt":%d}`, h.clock.now().Add(time.Minute).UnixMilli()))["token"])
	h.clock.advance(time.Minute)
	other := h.otherOrganization()
	must(t, h.engine.ChainAudit(t.Context()))
	callers := []struct {
		name, secret string
		fresh        bool // may change what it calls, so that each call gets a thing of its own
	}{{"none", "", false}, {"wrong", "obt_wrong-wrong-wrong-wrong", false}, {"expired", expired, false}, {"revoked", revoked, false}, {"no role", nobody, false},
		{"read", reader, false}, {"other", other, false}, {"write", writer, true}, {"admin", admin, true}}

	var table strings.Builder
	fmt.Fprintf(&table, "%-7s %-42s", "", "")
	for _, c := range callers {
		fmt.Fprintf(&table, " %-7s", c.name)
	}
	things, n := map[string]string{}, 0
	ours := func() string { // what belongs to the first organization
		var kept []string
		for line := range strings.Lines(h.snapshot()) {
			if !strings.Contains(line, elsewhere) && !strings.Contains(line, "sqlite_sequence") {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	for _, d := range h.doors() {
		op, _ := h.contract.find(d.method, d.at("x"))
		body := bodies[op.id]
		kind := d.parameter()
		if kind != "" && things[kind] == "" {
			n++
			things[kind] = h.another(kind, n)
		}
		fmt.Fprintf(&table, "\n%-7s %-42s", d.method, d.path)
		before := ours()
		for _, c := range callers {
			id := things[kind]
			if c.fresh {
				if before != "" && ours() != before {
					t.Errorf("%s %s: one who may not change it changed something:\n%s", d.method, d.path, newLines(before, ours()))
				}
				before = ""
				if n++; kind != "" && d.method != "GET" {
					id = h.another(kind, n)
				}
			}
			body := body
			if op.id == "createTool" {
				body = with(t, body, "name", fmt.Sprintf(`"made%d"`, n))
			}
			if op.id == "cancelDelegation" {
				body = fmt.Sprintf(`{"commandKey":"stop-%d"}`, n)
			}
			if op.id == "createGrant" && c.name != "other" {
				body = strings.Replace(body, "bot_00000000000000000000000000000001", string(h.me.mainBot), 1)
			}
			status := h.knock(d, id, c.secret, body)
			fmt.Fprintf(&table, " %-7d", status)
			switch {
			case op.role == "" || op.id == "signalTrigger":
			case strings.HasSuffix(op.path, "/receipt") && status == 404: // nobody has decided it
			case strings.Contains(op.path, "{delivery}") && c.fresh && status == 404: // there is no dead one of that ID
			case slices.Contains([]string{"none", "wrong", "expired", "revoked"}, c.name) && status != 401,
				c.name == "no role" && status != 403,
				c.name == "read" && op.role != "read" && status != 403,
				c.name == "write" && op.role == "admin" && status != 403,
				c.name == "other" && kind != "" && status != 404,
				c.name == "admin" && status >= 300:
				t.Errorf("%s %s by %s gave %d", d.method, d.path, c.name, status)
			}
		}
	}
	if len(h.doors()) < len(h.contract.operations)+9 {
		t.Errorf("there are %d routes only", len(h.doors()))
	}
	var lines []string
	for line := range strings.Lines(table.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	got := styleName.ReplaceAllString(strings.Join(lines, "\n")+"\n", fmt.Sprintf("%-43s", "/style.css"))
	path := filepath.Join("testdata", "access.golden")
	if *update {
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got != string(want) {
		t.Errorf("who may call what has changed (go test ./api -update writes it):\n%s", got)
	}
}
