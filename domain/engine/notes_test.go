package engine_test

import (
	"strings"
	"testing"

	"openbot/domain"
	"openbot/domain/engine"
)

// friendly makes a webhook for people of my work.
func (w *world) friendly(format domain.HookFormat, url string, events ...string) domain.Webhook {
	w.t.Helper()
	w.engine.PublicURL, w.engine.MailDomain = "https://bots.example.com", "example.com"
	made, secret, err := w.engine.CreateWebhook(w.t.Context(), w.me, engine.WebhookFields{Format: format, URL: &url, Events: events})
	w.must(err)
	if secret != "" || made.Sealed != nil {
		w.t.Fatalf("a webhook for people has the secret %q", secret)
	}
	return made
}

// What is told to people goes out in the form of their service, holds a link to the
// Request, and no argument.
func TestPeopleAreToldInTheFormOfTheirService(t *testing.T) {
	w := newWorld(t)
	w.receiver.status = 200
	w.friendly(domain.FormatEmail, "mailto:ann@example.com", domain.HookRequestPending)
	w.friendly(domain.FormatSlack, "https://hooks.slack.example/services/x", domain.HookRequestPending)
	w.friendly(domain.FormatNtfy, "https://ntfy.example/base/my-topic?auth=QQ", domain.HookRequestPending)
	_, r := w.asking()
	w.run()
	seen := map[string]bool{}
	for _, m := range w.receiver.got {
		text := string(m.Payload)
		switch {
		case m.Mail != nil:
			text = m.Mail.Subject + m.Mail.Text
			seen["email"] = m.Mail.To == "ann@example.com" && m.Mail.ID == m.ID
		case m.URL == "https://ntfy.example/base/?auth=QQ":
			seen["ntfy"] = strings.Contains(text, `"topic":"my-topic"`)
		default:
			seen["slack"] = m.URL == "https://hooks.slack.example/services/x" && strings.Contains(text, `"blocks"`)
		}
		if !m.Unsigned || !strings.Contains(text, "https://bots.example.com/requests/"+string(r.ID)) || strings.Contains(text, "hidden@") || !strings.Contains(text, "send on mail") {
			t.Errorf("told %+v: %s", m, text)
		}
	}
	if len(w.receiver.got) != 3 || len(seen) != 3 || !seen["email"] || !seen["ntfy"] || !seen["slack"] {
		t.Errorf("told %v in %d messages", seen, len(w.receiver.got))
	}
}

// A message to people that has not gone out when the Request is answered is dropped:
// nobody is called to something that is over. Programs still hear both.
func TestNobodyIsCalledToWhatIsOver(t *testing.T) {
	w := newWorld(t)
	w.receiver.status = 503
	people := w.friendly(domain.FormatSlack, "https://hooks.slack.example/x", domain.HookRequestPending)
	_, r := w.asking()
	if n := len(w.receiver.got); n != 1 {
		t.Fatalf("told %d times", n)
	}
	w.mustAnswer(r, domain.DecisionDeny, "")
	w.receiver.status = 200
	w.clock.forward(domain.DeliveryLease)
	w.sweep()
	w.run()
	list := w.deliveries(people.ID, domain.DeliveryDead)
	if len(w.receiver.got) != 1 || len(list) != 1 || !strings.Contains(list[0].Outcome, "closed before") {
		t.Errorf("told %d times, dead are %v", len(w.receiver.got), list)
	}
}

// People hear nothing of a Request while a Bot decides it; when it comes to the person
// they do.
func TestPeopleHearWhenAPersonMustDecide(t *testing.T) {
	w := newWorld(t)
	w.receiver.status = 200
	people := w.friendly(domain.FormatEmail, "mailto:ann@example.com", domain.HookRequestPending)
	programs := w.hook(w.me, false, domain.HookRequestPending)
	name, empty := "Helper", ""
	bot, err := w.engine.CreateBot(t.Context(), w.me, engine.BotFields{Name: &name, Role: &empty, Instructions: &empty})
	w.must(err)
	chat, err := w.engine.CreateChat(t.Context(), w.me, engine.NewChat{Bot: bot.ID})
	w.must(err)
	w.say(chat.ID, `/call mail__send {"to":"a","openbot_reason":"r"}`)
	w.run()
	if r := w.onlyPending(); r.Approver.Tag != domain.TagPerson {
		t.Fatalf("it waits for %v", r.Approver)
	}
	if a, b := len(w.deliveries(people.ID, "")), len(w.deliveries(programs.ID, "")); a != 1 || b != 2 {
		t.Errorf("people heard %d times, programs %d", a, b)
	}
}
