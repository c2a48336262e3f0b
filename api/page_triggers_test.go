package api_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// A trigger is made, changed and taken away, and its secret is shown once.
func TestTriggersOnPages(t *testing.T) {
	h := newHouse(t)
	b := h.signIn(h.secret)
	page := b.get("/triggers")
	page.reads(t, "No trigger gives work yet.")
	form := formOf(page.body, url.Values{"kind": {"cron"}, "name": {"Daily <b>\u202e"}, "cron": {"0 9 * * 1-5"}, "timeZone": {"Europe/Berlin"}, "missed": {"once"}, "bot": {string(h.me.mainBot)},
		"task": {"Say <good morning>\u202e."}})
	b.follow(b.post("/triggers", form)).reads(t, "at 0 9 * * 1-5 in Europe/Berlin, gives work to Main; next in 5 hours")
	b.post("/triggers", form)
	list := h.call("GET", "/v1/triggers", "").list(t)
	if len(list) != 1 {
		t.Fatalf("the form made %v", list)
	}
	id := text(list[0]["id"])
	b.get("/triggers").shows(t, `Daily &lt;b&gt;<b class="odd">U+202E</b>`)
	page = b.get("/triggers/" + id)
	page.reads(t, "Fires at 0 9 * * 1-5 in Europe/Berlin", "Take this trigger away?", "Contains")
	form = fieldsOf(page.body)
	before := h.ok(200, "GET", "/v1/triggers/"+id, "")
	b.follow(b.post("/triggers/"+id, form)).reads(t, "Saved.")
	if after := h.ok(200, "GET", "/v1/triggers/"+id, ""); after["task"] != before["task"] || after["missed"] != "once" || after["cron"] != before["cron"] || after["enabled"] != true || after["name"] != before["name"] {
		t.Errorf("saving what is there gave %v, before it was %v", after, before)
	}
	form.Set("cron", "@hourly")
	form.Del("enabled")
	b.follow(b.post("/triggers/"+id, form)).reads(t, "Fires at @hourly in Europe/Berlin off")

	page = b.get("/triggers")
	hook := formOf(page.body, url.Values{"kind": {"webhook"}, "name": {"From outside"}, "task": {"Look at it."}, "bot": {string(h.me.mainBot)}})
	made := b.post("/triggers", hook)
	secret := regexp.MustCompile(`<code id="secret">(whsec_[^<]+)</code>`).FindStringSubmatch(made.body)
	if secret == nil {
		t.Fatalf("the secret is not shown: %s", made.plain())
	}
	made.reads(t, "Its signing secret is shown this once.", "signed as Standard Webhooks says")
	again := b.follow(b.post("/triggers", hook))
	again.reads(t, "From outside")
	if strings.Contains(again.body, secret[1]) || len(h.call("GET", "/v1/triggers", "").list(t)) != 2 {
		t.Error("the same form made another trigger, or shows the secret again")
	}
	hooked := text(h.call("GET", "/v1/triggers", "").list(t)[0]["id"])
	b.get("/triggers/"+hooked).reads(t, "on a signed signal", "/v1/triggers/"+hooked+"/signal", "New signing secret")

	for name, value := range map[string]string{"name": "", "task": " ", "cron": "x", "bot": "bot_1", "chat": "chat_1", "missed": "odd", "kind": "odd"} {
		wrong := url.Values{"kind": {"cron"}, "name": {"n"}, "cron": {"@daily"}, "task": {"t"}, "key": {"k-" + name}}
		wrong.Set(name, value)
		if a := b.post("/triggers", wrong); a.status != 422 {
			t.Errorf("%s=%q gave %d", name, value, a.status)
		}
	}
	_, other := h.stranger(`["write","*"]`, `["write"]`)
	o := h.signIn(other)
	o.get("/triggers").reads(t, "No trigger gives work yet.")
	for _, path := range []string{"/triggers/" + id, "/triggers/" + id + "/delete"} {
		if a := o.post(path, form); a.status != 404 {
			t.Errorf("%s of another Member gave %d", path, a.status)
		}
	}
	if a := o.get("/triggers/" + id); a.status != 404 {
		t.Errorf("the page of another Member's trigger gave %d", a.status)
	}
	b.follow(b.post("/triggers/"+id+"/delete", nil)).reads(t, "From outside")
	if a := b.get("/triggers/" + id); a.status != 404 {
		t.Errorf("a deleted trigger gave %d", a.status)
	}
}
