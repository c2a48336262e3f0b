package api_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// What a Member reads is its own work, in money that is rounded once; an admin reads
// the organization's by Member.
func TestUsageInMoney(t *testing.T) {
	h := newHouse(t)
	h.ok(200, "PATCH", "/v1/settings", `{"modelPrices":{"playbook":{"inputMicrosPerToken":0.2,"outputMicrosPerToken":0.2}}}`)
	// Two steps of one word in and three out, 0.8 micro-USD each: 1.6 are 2, and not 1 and 1.
	for range 2 {
		h.chat("hello")
	}
	ann, secret := h.stranger(`["write","*"]`, `["write"]`)
	h.clock.advance(time.Second)

	read := func(secret, path string) []map[string]any {
		t.Helper()
		a := h.as(secret, "GET", path, "")
		if a.status != 200 {
			t.Fatalf("%s gave %d: %s", path, a.status, a.body)
		}
		return a.list(t)
	}
	sums := read(h.secret, "/v1/usage?group=model")
	if len(sums) != 1 || sums[0]["model"] != "playbook" || sums[0]["steps"] != 2.0 || sums[0]["costMicros"] != 2.0 {
		t.Errorf("by model it is %v", sums)
	}
	for _, name := range []string{"bot", "chat", "member", "delegation"} {
		if _, there := sums[0][name]; there {
			t.Errorf("a sum by model has a field %s", name)
		}
	}
	if sums := read(h.secret, "/v1/usage?group=member"); len(sums) != 1 || sums[0]["member"] != string(h.me.member) {
		t.Errorf("by Member it is %v", sums)
	}
	if sums := read(secret, "/v1/usage?group=model"); len(sums) != 0 {
		t.Errorf("Ann sees %v", sums)
	}

	chat := text(h.asObject(secret, "POST", "/v1/chats", `{}`)["id"])
	h.asObject(secret, "POST", "/v1/chats/"+chat+"/messages", `{"text":"hello"}`)
	h.work()
	h.clock.advance(time.Second)
	if sums := read(secret, "/v1/usage?group=member"); len(sums) != 1 || sums[0]["member"] != ann {
		t.Errorf("Ann sees %v", sums)
	}
	all := read(h.secret, "/v1/usage?group=member")
	if len(all) != 2 || all[0]["member"] != string(h.me.member) || all[1]["member"] != ann {
		t.Errorf("an admin sees %v", all)
	}
	if sums := read(h.secret, "/v1/usage?group=chat"); len(sums) != 2 {
		t.Errorf("an admin sees the Chats %v", sums)
	}

	if a := h.as("", "GET", "/v1/usage", ""); a.status != 401 {
		t.Errorf("without a token it is %d", a.status)
	}
}

// The judge's reading is no step, and costs.
func TestUsageHoldsTheJudge(t *testing.T) {
	h := newHouse(t)
	h.ok(200, "PATCH", "/v1/settings", `{"modelPrices":{"playbook":{"inputMicrosPerToken":1,"outputMicrosPerToken":1}}}`)
	h.connect()
	h.ok(201, "POST", "/v1/rules", `{"text":"Never send_email to anybody.","effect":"deny"}`)
	_, turn := h.chat(`/call mail__send_email {"to":"ann@example.com"}`)
	h.clock.advance(time.Second)
	sum := h.call("GET", "/v1/usage", "").list(t)[0]
	own := h.ok(200, "GET", "/v1/turns/"+turn, "")["usage"].(map[string]any)
	if sum["steps"] != own["steps"] || sum["costMicros"].(float64) <= own["costMicros"].(float64) || sum["bot"] != string(h.me.mainBot) {
		t.Errorf("the usage is %v, the Turn's own %v", sum, own)
	}
}

func TestWhatUsageRefuses(t *testing.T) {
	h := newHouse(t)
	now := h.clock.now().UnixMilli()
	for query, says := range map[string]string{
		"from=" + strconv.FormatInt(now, 10): "from must be before to", // to is now
		"from=5&to=5":                        "from must be before to",
		"from=6&to=5":                        "from must be before to",
		"from=-1":                            "from must be number >= 0",
		"to=253402300800000":                 "to must be number <= 2.53402300799999e+14",
		"from=9223372036854775808":           "from",
		"group=day":                          "group must be one of",
		"from=yesterday":                     "from",
		"member=" + string(h.me.member):      "is not a known query parameter",
	} {
		a := h.call("GET", "/v1/usage?"+query, "")
		if a.status != 422 || !strings.Contains(a.body, says) {
			t.Errorf("%s gave %d: %s", query, a.status, a.body)
		}
	}
	if a := h.call("GET", "/v1/usage?from=0&to=1&group=", ""); a.status != 200 && a.status != 422 {
		t.Errorf("an empty group gave %d", a.status)
	}
}

// asObject sends a request with a token and decodes what it made.
func (h *house) asObject(secret, method, path, body string) map[string]any {
	h.t.Helper()
	a := h.as(secret, method, path, body)
	if a.status/100 != 2 {
		h.t.Fatalf("%s %s gave %d: %s", method, path, a.status, a.body)
	}
	return a.object(h.t)
}
