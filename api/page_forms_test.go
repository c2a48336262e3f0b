package api_test

import (
	"context"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"openbot/api"
)

// A Chat is begun and gone on with on its page, and a form that is sent twice counts
// once.
func TestChatsOnPages(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	form := formOf(b.get("/chats").body, url.Values{"text": {"Hello <Bot>"}, "title": {"A talk"}})
	first := b.post("/chats", form)
	again := b.post("/chats", form)
	if first.header.Get("Location") != again.header.Get("Location") {
		t.Errorf("the form made two Chats: %s, %s", first.header.Get("Location"), again.header.Get("Location"))
	}
	h.work()
	page := b.follow(first)
	page.reads(t, "A talk", "You said: Hello <Bot>", "Done.")
	chat := strings.TrimSuffix(first.header.Get("Location"), "#chat-end")
	form = formOf(page.body, url.Values{"text": {"/fail no luck"}})
	b.post(chat+"/messages", form)
	b.post(chat+"/messages", form)
	h.work()
	b.get(chat).reads(t, "The Turn failed: no luck")
	chats := h.call("GET", "/v1/chats", "").list(t)
	if len(chats) != 1 || len(h.call("GET", "/v1/chats/"+text(chats[0]["id"])+"/turns", "").list(t)) != 2 {
		t.Errorf("there are other Chats or Turns: %v", chats)
	}
	for _, bad := range []url.Values{{"key": {"k"}}, {"text": {"x"}}, {"text": {"x"}, "key": {"a b"}}, {"text": {"a\x00b"}, "key": {"k"}}, {"text": {"\xff"}, "key": {"k"}}} {
		if a := b.post("/chats", bad); a.status != 422 {
			t.Errorf("%v gave %d", bad, a.status)
		}
	}
	if a := b.post("/chats/chat_1/messages", url.Values{"text": {"x"}, "key": {"k"}}); a.status != 404 {
		t.Errorf("a Chat that is not there gave %d", a.status)
	}
	if a := b.post("/chats", url.Values{"text": {strings.Repeat("x", 1<<20)}}); a.status != 400 {
		t.Errorf("a form of more than 1 MiB gave %d", a.status)
	}
	b.follow(b.post(chat+"/change", url.Values{"title": {"Another"}, "plan": {"1"}, "minutes": {"5"}, "onExpire": {"allow"}})).reads(t, "Another", "plan mode")
	if c := h.ok(200, "GET", "/v1"+chat, ""); c["mode"] != "plan" || c["planTimeoutMs"] != 300000.0 || c["planOnExpire"] != "allow" {
		t.Errorf("the Chat is %v", c)
	}
	h.connect()
	waiting, turn, _ := h.asking()
	b.get("/chats/"+waiting).reads(t, "Main waits for an answer.", "Answer it")
	b.follow(b.post("/chats/"+waiting+"/interrupt", nil)).reads(t, "The Turn was interrupted.")
	if h.ok(200, "GET", "/v1/turns/"+turn, "")["status"] != "Interrupted" {
		t.Error("the Turn goes on")
	}
	b.post(chat+"/delete", nil)
	if a := b.get(chat); a.status != 404 {
		t.Errorf("a deleted Chat gives %d", a.status)
	}
}

// A long text of a Chat is cut, says so, and can be read whole.
func TestLongTextsOfChats(t *testing.T) {
	h := newHouse(t)
	long := strings.Repeat("word ", 5000) + "the end"
	chat, _ := h.chat(long)
	b := h.signIn(h.secret)
	page := b.get("/chats/" + chat)
	page.reads(t, "Read all 25.0 kB")
	if strings.Contains(page.body, "the end") {
		t.Error("the text is not cut")
	}
	whole := regexp.MustCompile(`href="(\?whole=1)#`).FindStringSubmatch(page.body)
	if whole == nil {
		t.Fatal("there is no way to the whole")
	}
	b.get("/chats/"+chat+whole[1]).shows(t, "the end")
}

func TestBotsAppsAndGrantsOnPages(t *testing.T) {
	h := newHouse(t)
	con := h.connect()
	b := h.signIn(h.secret)
	made := b.post("/bots", url.Values{"name": {"Programmer"}, "role": {"Writes code"}, "owner": {string(h.me.mainBot)}})
	bot := strings.TrimPrefix(made.header.Get("Location"), "/bots/")
	b.get("/bots").reads(t, "Programmer", "belongs to Main")
	b.follow(b.post("/bots/"+bot, url.Values{"name": {"Coder"}, "role": {"r"}, "instructions": {"Be careful."}, "memory": {"m"}})).shows(t, "Coder", "Be careful.")
	if a := b.post("/bots", url.Values{"name": {""}}); a.status != 422 || !strings.Contains(a.plain(), "name") {
		t.Errorf("a Bot without a name gave %d %s", a.status, a.plain())
	}
	b.follow(b.post("/grants", url.Values{"bot": {bot}, "action": {"apps.call"}, "target": {con + "/send_email"}, "decision": {"deny"}})).
		reads(t, "Deny every send_email of Coder on mail while mail is at revision 1")
	grant := text(h.call("GET", "/v1/grants", "").list(t)[0]["id"])
	b.post("/grants/"+grant+"/revoke", nil)
	grants := b.get("/grants")
	grants.reads(t, "No Grant is in force")
	grants.shows(t, `<option value="`+con+`/send_email">send_email on mail</option>`)
	b.post("/grants", url.Values{"bot": {bot}, "action": {"odd"}}).reads(t, "Go back in your browser to change it: what you wrote is still there.")
	b.get("/grants?revoked=true").reads(t, "every send_email of Coder on mail")

	page := b.get("/apps/" + con)
	page.reads(t, "Revision 1", "send_email", "Sends one mail.", "says: open world", "Authorization", "bad tool: its schema is no JSON Schema", "Mark as a read")
	if strings.Contains(page.body, "hush-hush") {
		t.Error("the page shows a secret")
	}
	b.follow(b.post("/apps/"+con+"/read", url.Values{"tool": {"send_email"}, "read": {"1"}})).reads(t, "read: no decision", "Let it ask again")
	b.follow(b.post("/apps/"+con+"/read", url.Values{"tool": {"send_email"}})).reads(t, "Mark as a read")
	if a := b.post("/apps/"+con+"/read", url.Values{"tool": {"*"}, "read": {"1"}}); a.status != 422 {
		t.Errorf("a star was marked as a read: %d", a.status)
	}
	b.follow(b.post("/apps/"+con, url.Values{"name": {"post"}, "transport": {"http"}, "url": {"https://post.example/mcp"}})).
		reads(t, "post", "Revision 2", "A person changed the Connection.")
	b.post("/bots/"+bot+"/archive", nil)
	b.get("/bots/"+bot).reads(t, "It is archived")
	b.post("/apps/"+con+"/delete", nil)
	b.get("/apps").reads(t, "No App is connected.")
	a := b.post("/apps", url.Values{"name": {"new"}, "transport": {"http"}, "url": {"https://new.example/mcp"}, "headers": {"Authorization: Bearer x\n"}})
	b.follow(a).reads(t, "new", "Authorization")
}

// A Rule is tried before it is kept.
func TestRulesOnPages(t *testing.T) {
	h := newHouse(t)
	h.connect()
	_, _, request := h.asking()
	h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"allow"}`)
	h.work()
	b := h.signIn(h.secret)
	form := url.Values{"text": {"Never use send_email."}, "effect": {"deny"}, "bot": {string(h.me.mainBot)}}
	before := h.call("GET", "/v1/rules", "").body
	b.post("/rules/preview", form).reads(t, "It would have decided 1 of 1 past Request", "allow deny", "“Never use send_email.”")
	if h.call("GET", "/v1/rules", "").body != before {
		t.Error("trying kept a Rule")
	}
	b.follow(b.post("/rules", form)).reads(t, "Never use send_email.", "can only deny", "Turn off")
	rule := text(h.call("GET", "/v1/rules", "").list(t)[0]["id"])
	b.follow(b.post("/rules/"+rule, url.Values{"enabled": {"false"}})).reads(t, "Turn on")
	b.follow(b.post("/rules/"+rule+"/delete", nil)).reads(t, "No Rule is kept.")
	b.get("/history").reads(t, "send_email Main on mail \"to\":\"ann@example.com\",\"text\":\"Hello <b>Ann</b>\" Allowed by you, once")
	b.get("/history?status=denied").reads(t, "Nothing was decided that fits.")
	if a := b.get("/history?status=odd"); a.status != 422 {
		t.Errorf("a status that there is not gave %d", a.status)
	}
}

// The form of the settings changes what was changed in it, and nothing else.
func TestSettingsOnPages(t *testing.T) {
	h := newHouse(t)
	con := h.connect()
	h.ok(200, "PATCH", "/v1/settings", `{"toolTags":[{"tool":"`+con+`/send_email","tags":["external_send","publish"]}],"appReadRules":["`+con+`/list_*"],
		"resourceTemplates":[{"tool":"`+con+`/send_email","template":"mail:{to}"}],"modelPrices":{"playbook":{"inputMicrosPerToken":0.25,"outputMicrosPerToken":2,"cachedInputMicrosPerToken":0.025}},
		"trustedSources":["`+con+`"],"redaction":{"keys":["pin"],"mail":true},"rateLimits":{"v1PerKey":1000000},"escalation":{"afterMs":5400000,"member":"`+string(h.me.member)+`"},
		"judgeModel":"playbook","reviewer":{"enabled":true},"requestTimeoutMs":90000}`)
	b := h.signIn(h.secret)
	before := h.call("GET", "/v1/settings", "").body
	form := fieldsOf(b.get("/settings").body)
	b.follow(b.post("/settings", form)).reads(t, "Saved.")
	if after := h.call("GET", "/v1/settings", "").body; after != before {
		t.Errorf("saving what is there changed it:\n%s\n%s", before, after)
	}
	form.Set("requestTimeout", "2")
	form.Set("requestTimeoutUnit", "h")
	form.Set("policy-delete", "deny")
	form["tainted"] = []string{"delete"}
	b.post("/settings", form)
	got := h.ok(200, "GET", "/v1/settings", "")
	if got["requestTimeoutMs"] != 7200000.0 || got["tagPolicy"].(map[string]any)["delete"] != "deny" || len(got["taintedTags"].([]any)) != 1 {
		t.Errorf("the settings are %v", got)
	}
	for name, value := range map[string]string{"prices": "playbook: x", "toolTags": "no colon", "resources": "x", "perKey": "0", "requestTimeout": "-1", "judge": "nobody:x", "reads": "send_email"} {
		wrong := url.Values{}
		for n, v := range form {
			wrong[n] = v
		}
		wrong.Set(name, value)
		if a := b.post("/settings", wrong); a.status != 422 {
			t.Errorf("%s=%s gave %d", name, value, a.status)
		}
	}
}

var (
	inputs  = regexp.MustCompile(`<input id="([^"]*)" name="([^"]*)"[^>]* value="([^"]*)"`)
	checked = regexp.MustCompile(`<input type="checkbox" name="([^"]*)" value="([^"]*)" checked>`)
	areas   = regexp.MustCompile(`(?s)<textarea id="[^"]*" name="([^"]*)"[^>]*>(.*?)</textarea>`)
	selects = regexp.MustCompile(`(?s)<select (?:id="[^"]*" )?name="([^"]*)"[^>]*>(.*?)</select>`)
	option  = regexp.MustCompile(`<option value="([^"]*)" selected>`)
)

// fieldsOf reads a form as a browser would send it.
func fieldsOf(body string) url.Values {
	form := url.Values{}
	plain := strings.NewReplacer("&#43;", "+", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace
	for _, m := range inputs.FindAllStringSubmatch(body, -1) {
		form.Set(m[2], plain(m[3]))
	}
	for _, m := range checked.FindAllStringSubmatch(body, -1) {
		form.Add(m[1], m[2])
	}
	for _, m := range areas.FindAllStringSubmatch(body, -1) {
		form.Set(m[1], plain(m[2]))
	}
	for _, m := range selects.FindAllStringSubmatch(body, -1) {
		form.Set(m[1], "")
		if picked := option.FindStringSubmatch(m[2]); picked != nil {
			form.Set(m[1], picked[1])
		}
	}
	return form
}

func TestTokensOnPages(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	page := b.post("/tokens", url.Values{"name": {"phone"}, "scopes": {"read\n"}, "days": {"3"}})
	secret := regexp.MustCompile(`<code id="secret">([^<]*)</code>`).FindStringSubmatch(page.body)
	if secret == nil {
		t.Fatalf("the secret is not shown: %s", page.plain())
	}
	if a := h.as(secret[1], "GET", "/v1/me", ""); a.status != 200 || !strings.Contains(a.body, `"read"`) {
		t.Errorf("the new token gives %d %s", a.status, a.body)
	}
	again := b.get("/tokens")
	again.reads(t, "phone", "this session", "ends in 3 days")
	if strings.Contains(again.body, secret[1]) {
		t.Error("the secret is shown again")
	}
	id := regexp.MustCompile(`/tokens/(tok_[0-9a-f]+)/revoke`).FindStringSubmatch(again.body)
	b.post("/tokens/"+id[1]+"/revoke", nil)
	if a := h.as(secret[1], "GET", "/v1/me", ""); a.status != 401 {
		t.Errorf("a revoked token gives %d", a.status)
	}
	if a := b.post("/tokens", url.Values{"name": {"x"}, "scopes": {"odd"}}); a.status != 422 {
		t.Errorf("an odd scope gave %d", a.status)
	}
	b.follow(b.post("/members", url.Values{"name": {"Ann"}, "permissions": {"write\n*"}})).reads(t, "Ann", "write *")
	member := regexp.MustCompile(`/members/(mem_[0-9a-f]+)`).FindStringSubmatch(b.get("/tokens").body)
	b.follow(b.post("/members/"+member[1], url.Values{"disabled": {"true"}})).reads(t, "disabled")
}

// A link signs in once, within its time, by a click and not by being fetched.
func TestLoginLinks(t *testing.T) {
	key := []byte("a session key of more than 16 bytes")
	h := newHouse(t)
	page := h.signIn(h.secret).post("/tokens/link", nil)
	made := regexp.MustCompile(`<code id="link">http://[^/]*(/login\?link=[^<]*)</code>`).FindStringSubmatch(page.body)
	if made == nil || strings.Contains(page.body, h.secret) {
		t.Fatalf("there is no link, or a secret: %s", page.plain())
	}
	other, err := api.LoginLink(key, h.secret, time.Now())
	must(t, err)
	for _, link := range []string{made[1], other} {
		sealed := strings.TrimPrefix(link, "/login?link=")
		phone := &browser{h: h}
		phone.get(link).reads(t, "This link signs you in once.")
		phone.get(link).reads(t, "This link signs you in once.")
		if phone.cookie != nil {
			t.Error("fetching the link signed in")
		}
		if a := phone.post("/login", url.Values{"link": {sealed}}); a.status != 303 || phone.get("/").status != 200 {
			t.Errorf("the link gave %d", a.status)
		}
		second := &browser{h: h}
		if a := second.post("/login", url.Values{"link": {sealed}}); a.status != 401 || second.cookie != nil {
			t.Errorf("the link worked twice: %d", a.status)
		}
	}
	old, err := api.LoginLink(key, h.secret, time.Now().Add(-api.LinkTime))
	must(t, err)
	foreign, err := api.LoginLink([]byte("the session key of another server"), h.secret, time.Now())
	must(t, err)
	session := h.signIn(h.secret).cookie.Value
	for _, link := range []string{old, foreign, "/login?link=x", "/login?link=" + session} {
		b := &browser{h: h}
		b.get(link).reads(t, "used up or too old")
		if a := b.post("/login", url.Values{"link": {strings.TrimPrefix(link, "/login?link=")}}); a.status != 401 || b.cookie != nil {
			t.Errorf("%s signed in: %d", link, a.status)
		}
	}
}

// A page's stream begins where the page was read, so that nothing falls between, and
// goes on where it broke off.
func TestThePagesStream(t *testing.T) {
	h := newHouse(t)
	h.connect()
	b := h.signIn(h.secret)
	at := regexp.MustCompile(`hx-sse:connect="(/live\?afterSequence=\d+)"`).FindStringSubmatch(b.get("/").body)
	if at == nil {
		t.Fatal("the page has no stream")
	}
	_, _, request := h.asking() // after the page was read, before its stream begins
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", at[1], nil)
	r.AddCookie(b.cookie)
	w := &firstEvents{ResponseRecorder: httptest.NewRecorder(), until: request, stop: cancel}
	h.handler.ServeHTTP(w, r)
	if got := w.Body.String(); !strings.Contains(got, "event: request.pending") || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("the stream gives %s", got)
	}
	if a := b.get("/live?afterSequence=x"); a.status != 422 {
		t.Errorf("an odd place gave %d", a.status)
	}
	if a := (&browser{h: h}).get("/live"); a.status != 401 {
		t.Errorf("without a session: %d", a.status)
	}
}

// firstEvents ends a stream when it has given what is waited for.
type firstEvents struct {
	*httptest.ResponseRecorder
	until string
	stop  context.CancelFunc
}

func (w *firstEvents) Write(b []byte) (int, error) {
	n, err := w.ResponseRecorder.Write(b)
	if strings.Contains(string(b), w.until) {
		w.stop()
	}
	return n, err
}
