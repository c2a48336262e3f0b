package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"openbot/config"
)

// mailbox is a real mail server that keeps what it gets, and its HTTP interface.
type mailbox struct{ smtp, web string }

// mailServer starts Mailpit; it takes mail for every address at example.com but gone@.
func mailServer(t *testing.T, args ...string) mailbox {
	t.Helper()
	program := outsideProgram(t, "mailpit")
	m := mailbox{smtp: freeAddress(t), web: freeAddress(t)}
	background(t, nil, program, append([]string{"--smtp", m.smtp, "--listen", m.web, "--disable-version-check", "--smtp-disable-rdns",
		"--smtp-allowed-recipients", `^[^g][^@]*@example\.(com|net)$`}, args...)...)
	return m
}

// awaitUp waits until the server listens.
func (m mailbox) awaitUp(c *client) {
	c.poll("the mail server listens", 30*time.Second, func() bool {
		response, err := http.Get("http://" + m.web + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

func (m mailbox) read(t *testing.T, path string) []byte {
	t.Helper()
	response, err := http.Get("http://" + m.web + path)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return body
}

type envelope struct {
	ID        string
	MessageID string
	Subject   string
	To        []struct{ Address string }
}

// messages lists what has come, newest first.
func (m mailbox) messages(t *testing.T) []envelope {
	t.Helper()
	var list struct{ Messages []envelope }
	must(t, json.Unmarshal(m.read(t, "/api/v1/messages"), &list))
	return list.Messages
}

func (m mailbox) settings(cfg config.Config) config.Config {
	cfg.PublicURL = "https://bots.example.com/in"
	cfg.Mail = config.Mail{ServerURL: config.NewSecret("smtp://" + m.smtp + "?tls=none"), From: "openbot@example.com"}
	return cfg
}

// hostile is what a Bot may say to do harm in a mail: lines that look like headers, a
// second body, markup, addresses, and characters that cannot be seen or turn the text.
const hostile = "Hi\r\nBcc: all@example.com\r\n\r\n.\r\nMAIL FROM:<x@example.com> <img src=x> https://evil.example/allow www.evil.example \u202eevil\u200b\x1b[31m"

func TestAPendingRequestComesAsMail(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		m := mailServer(t)
		c, _, _ := startServe(t, m.settings(b.settings(t.TempDir())))
		m.awaitUp(c)
		hook := c.call("POST", "/v1/webhooks", object{"format": "email", "url": "mailto:ann@example.com", "events": []string{"request.pending"}}, 201)
		if hook["secret"] != nil || hook["format"] != "email" {
			t.Errorf("made %v", hook)
		}
		bot := c.call("POST", "/v1/bots", object{"name": "Mallory\r\nBcc: x@example.com\u202e", "role": "r", "instructions": "i"}, 201)["id"]
		chat := c.call("POST", "/v1/chats", object{"bot": bot}, 201)["id"].(string)
		reason, err := json.Marshal(hostile + strings.Repeat(" and more", 100))
		must(t, err)
		turn := c.say(chat, `/call openbot_spawn {"name":"secret argument","role":"","instructions":"","reason":`+string(reason)+`}`)
		// The Bot's owner endorses nothing and passes it on; only then a person hears of it.
		c.poll("a mail comes", 30*time.Second, func() bool { return len(m.messages(t)) > 0 })
		request := c.pending(turn)[0]
		got := m.messages(t)
		if len(got) != 1 || got[0].Subject != "A Request of Mallory Bcc: x@example.com\ufffd waits for an answer" ||
			len(got[0].To) != 1 || got[0].To[0].Address != "ann@example.com" {
			t.Fatalf("got %+v", got)
		}
		deliveries := c.list("/v1/webhooks/" + hook["id"].(string) + "/deliveries")
		if len(deliveries) != 1 || got[0].MessageID != deliveries[0]["id"].(string)+"@example.com" {
			t.Errorf("the Message-ID is %q, the deliveries %v", got[0].MessageID, deliveries)
		}
		var full struct {
			Text, HTML  string
			Bcc, Cc     []any
			Attachments []any
		}
		must(t, json.Unmarshal(m.read(t, "/api/v1/message/"+got[0].ID), &full))
		link := "https://bots.example.com/in/requests/" + request["id"].(string)
		if !strings.Contains(strings.ReplaceAll(full.Text, "\r\n", "\n"), "\n"+link+"\n") {
			t.Errorf("no link %s in:\n%s", link, full.Text)
		}
		if full.HTML != "" || len(full.Bcc)+len(full.Cc)+len(full.Attachments) != 0 {
			t.Errorf("the mail is more than a text: %+v", full)
		}
		for _, bad := range []string{"secret argument", "\u202e", "\u200b", "\x1b", "https://evil", "www.evil", strings.Repeat(" and more", 40)} {
			if strings.Contains(full.Text, bad) {
				t.Errorf("the mail holds %q:\n%s", bad, full.Text)
			}
		}
		raw := string(m.read(t, "/api/v1/message/"+got[0].ID+"/raw"))
		head, _, _ := strings.Cut(raw, "\r\n\r\n")
		if strings.Contains(head, "\nBcc") || strings.Contains(head, "\nX-Evil") || !strings.Contains(head, "Auto-Submitted: auto-generated") {
			t.Errorf("the headers are\n%s", head)
		}
		c.answer(request, object{"decision": "deny"})
		c.awaitTurn(chat, turn, status("Completed"))
	})
}

// Where a mail server says no for good, the message is dead at once and says why; where
// the server is away, it waits for its next try. Neither holds up an answer.
func TestMailThatIsNotTaken(t *testing.T) {
	m := mailServer(t)
	c, _, _ := startServe(t, m.settings(backend{}.settings(t.TempDir())))
	m.awaitUp(c)
	gone := c.call("POST", "/v1/webhooks", object{"format": "email", "url": "mailto:gone@example.com", "events": []string{"request.pending"}}, 201)["id"].(string)
	chat := c.newChat()
	turn := c.say(chat, asksForAHelper)
	c.awaitTurn(chat, turn, status("Waiting"))
	path := "/v1/webhooks/" + gone + "/deliveries"
	c.poll("the message is dead", 30*time.Second, func() bool {
		list := c.list(path)
		return len(list) == 1 && list[0]["status"] == "dead"
	})
	if d := c.list(path)[0]; d["tries"] != float64(1) || !strings.HasPrefix(fmt.Sprint(d["outcome"]), "The mail server answered with SMTP status 5") {
		t.Errorf("the delivery is %v", d)
	}
	if hook := c.call("GET", "/v1/webhooks/"+gone, nil, 200); hook["enabled"] != true {
		t.Errorf("the webhook is %v", hook)
	}
	c.answer(c.pending(turn)[0], object{"decision": "deny"})
	c.awaitTurn(chat, turn, status("Completed"))
}

// Nobody but an admin makes the server write to strangers, and what cannot work is refused
// when it is set up.
func TestWhoMayBeWrittenTo(t *testing.T) {
	cfg := backend{}.settings(t.TempDir())
	c, _, _ := startServe(t, cfg)
	refused := func(c *client, format, url, want string) {
		t.Helper()
		_, body, err := c.try("POST", "/v1/webhooks", object{"format": format, "url": url, "events": []string{"request.pending"}})
		must(t, err)
		if !strings.Contains(string(body), want) {
			t.Errorf("%s to %s: %s, want %q", format, url, body, want)
		}
	}
	refused(c, "email", "mailto:ann@example.com", "OPENBOT_PUBLIC_URL")
	refused(c, "slack", "https://hooks.slack.com/services/x", "OPENBOT_PUBLIC_URL")
	cfg = backend{}.settings(t.TempDir())
	cfg.PublicURL = "https://bots.example.com"
	c, _, _ = startServe(t, cfg)
	refused(c, "email", "mailto:ann@example.com", "OPENBOT_SMTP_URL")
	cfg = mailbox{smtp: "127.0.0.1:1"}.settings(backend{}.settings(t.TempDir()))
	c, _, _ = startServe(t, cfg)
	for _, bad := range []string{"ann@example.com", "mailto:", "mailto:a@b,c@d", "mailto:a@b?bcc=c@d", "mailto:a@b%0d%0aBcc:c@d", "mailto:a b@c", "mailto:\"a\"@b",
		"mailto:a@b\r\nBcc: c@d", "https://example.com", "mailto:" + strings.Repeat("a", 260) + "@b.c", "mailto:a..b@c.d"} {
		refused(c, "email", bad, "must be one plain address")
	}
	refused(c, "ntfy", "https://ntfy.sh/", "must end in the topic")
	refused(c, "pigeon", "https://example.com/x", "format")
	bob := c.call("POST", "/v1/members", object{"name": "Bob", "permissions": []string{"write", "*"}}, 201)["id"]
	token := c.call("POST", "/v1/tokens", object{"name": "bob", "member": bob, "scopes": []string{"write", "*"}}, 201)["token"].(string)
	his := &client{t: t, base: c.base, token: token}
	refused(his, "email", "mailto:stranger@example.org", "only an admin")
	his.call("POST", "/v1/webhooks", object{"format": "email", "url": "mailto:bob@EXAMPLE.com", "events": []string{"request.pending"}}, 201)
	c.call("POST", "/v1/webhooks", object{"format": "email", "url": "mailto:stranger@example.org", "events": []string{"request.pending"}}, 201)
}

// A Request that stays open is told of once more before its time is up, and goes to the
// second Member, who hears of it by mail, sees it in the inbox and answers it.
func TestAnOpenRequestIsToldOfAgain(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		m := mailServer(t)
		c, _, _ := startServe(t, m.settings(b.settings(t.TempDir())))
		m.awaitUp(c)
		bob := c.call("POST", "/v1/members", object{"name": "Bob", "permissions": []string{"write", "*"}}, 201)["id"]
		token := c.call("POST", "/v1/tokens", object{"name": "bob", "member": bob, "scopes": []string{"write", "*"}}, 201)["token"].(string)
		his := &client{t: t, base: c.base, token: token}
		his.call("POST", "/v1/webhooks", object{"format": "email", "url": "mailto:bob@example.com", "events": []string{"request.escalated"}}, 201)
		c.call("POST", "/v1/webhooks", object{"format": "email", "url": "mailto:ann@example.com", "events": []string{"request.expiring"}}, 201)
		c.call("PATCH", "/v1/settings", object{"requestTimeoutMs": 600_000, "remindBeforeMs": 599_000, "escalation": object{"afterMs": 1000, "member": bob}}, 200)
		chat := c.newChat()
		turn := c.say(chat, asksForAHelper)
		c.awaitTurn(chat, turn, status("Waiting"))
		request := c.pending(turn)[0]
		c.poll("both are told", 30*time.Second, func() bool { return len(m.messages(t)) == 2 })
		told := map[string]string{}
		for _, got := range m.messages(t) {
			told[got.To[0].Address] = got.Subject
		}
		if !strings.HasPrefix(told["ann@example.com"], "The time of a Request of ") || !strings.Contains(told["bob@example.com"], "waits for you, since") {
			t.Errorf("told %v", told)
		}
		seen := his.call("GET", "/v1/requests/"+request["id"].(string), nil, 200)
		if seen["secondMember"] != bob || seen["revision"] != request["revision"] {
			t.Errorf("the second Member sees %v", seen)
		}
		his.answer(seen, object{"decision": "deny"})
		c.awaitTurn(chat, turn, status("Completed"))
		if decided := c.call("GET", "/v1/requests/"+request["id"].(string), nil, 200)["decision"].(object); decided["by"].(object)["userId"] != bob {
			t.Errorf("decided %v", decided)
		}
	})
}
