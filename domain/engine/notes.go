package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"openbot/domain"
)

// checkHook says what is wrong with the address of a webhook, by its format.
func (e *Engine) checkHook(w domain.Webhook, p domain.Principal) error {
	if w.Format.ForPeople() && e.PublicURL == "" {
		return invalid("format", "needs the address of the inbox for its links: set OPENBOT_PUBLIC_URL")
	}
	switch w.Format {
	case domain.FormatEmail:
		return e.checkMailbox(w.URL, p)
	case domain.FormatNtfy:
		if _, _, ok := ntfyTopic(w.URL); !ok {
			return invalid("url", "must end in the topic, such as https://ntfy.sh/my-topic")
		}
	case domain.FormatStandard, domain.FormatSlack:
	default:
		return invalid("format", "must be standard, email, slack or ntfy")
	}
	return e.checkReceiver(w.URL)
}

// checkMailbox keeps Members from sending mail in the server's name to whom they like: an
// address outside of the server's own domain is for an admin to name.
func (e *Engine) checkMailbox(link string, p domain.Principal) error {
	if e.MailDomain == "" {
		return invalid("format", "email needs a mail server: set OPENBOT_SMTP_URL and OPENBOT_MAIL_FROM")
	}
	_, host, ok := domain.MailAddress(link)
	if !ok {
		return invalid("url", "must be one plain address, such as mailto:ann@example.com")
	}
	if host != e.MailDomain && !p.HasRole(domain.RoleAdmin) {
		return invalid("url", "must be an address at "+e.MailDomain+"; only an admin may name another")
	}
	return nil
}

// ntfyTopic takes the address of a topic apart: messages in JSON are posted to the root
// of the server and name the topic. It is false for an address that names none.
func ntfyTopic(address string) (root, topic string, ok bool) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", false
	}
	path := strings.TrimSuffix(u.Path, "/")
	at := strings.LastIndexByte(path, '/')
	if at < 0 {
		return "", "", false
	}
	topic = path[at+1:]
	strange := func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if topic == "" || len(topic) > 64 || strings.ContainsFunc(topic, strange) {
		return "", "", false
	}
	u.Path, u.RawPath, u.Fragment = path[:at+1], "", ""
	return u.String(), topic, true
}

// forPeople turns a message into one that a person reads, as things stand now, or says
// why it is not wanted any more.
func (e *Engine) forPeople(ctx context.Context, m *domain.HookMessage, w domain.Webhook, v domain.Delivery) (string, error) {
	note, why, err := e.note(ctx, v)
	if err != nil || why != "" {
		return why, err
	}
	m.Unsigned = true
	switch w.Format {
	case domain.FormatEmail:
		address, _, ok := domain.MailAddress(w.URL)
		if !ok {
			return "The address is not one to which mail can be sent.", nil
		}
		m.Mail = &domain.Mail{ID: v.ID, To: address, Subject: note.Title, Text: note.Text()}
	case domain.FormatSlack:
		m.Payload = note.Slack()
	case domain.FormatNtfy:
		root, topic, ok := ntfyTopic(w.URL)
		if !ok {
			return "The address names no topic.", nil
		}
		m.URL, m.Payload = root, note.Ntfy(topic)
	case domain.FormatStandard:
	}
	return "", nil
}

// note words what a delivery is about.
func (e *Engine) note(ctx context.Context, v domain.Delivery) (domain.Note, string, error) {
	var told struct {
		Data struct {
			Request    domain.RequestID
			Delegation domain.DelegationID
			Limit      string
			Status     string
		}
	}
	if err := json.Unmarshal(v.Payload, &told); err != nil {
		return domain.Note{}, "The message cannot be read.", nil
	}
	switch v.Event {
	case domain.HookDelegationPaused, domain.HookDelegationEnded:
		return e.workNote(ctx, v, told.Data.Delegation, told.Data.Status, told.Data.Limit)
	}
	r, err := e.Store.Request(ctx, told.Data.Request)
	if err != nil {
		return domain.Note{}, "The Request is not there any more.", gone(err)
	}
	if v.Event != domain.HookRequestDecided && r.Status != domain.RequestPending {
		return domain.Note{}, "The Request was closed before this went out.", nil
	}
	return e.requestNote(ctx, v.Event, r)
}

// noteTimes is how a Note writes a time: whoever reads it may be anywhere.
const noteTimes = "2006-01-02 15:04 UTC"

func (e *Engine) requestNote(ctx context.Context, event string, r domain.Request) (domain.Note, string, error) {
	bot, who, err := e.namesFor(ctx, r.Bot, r.Member)
	if err != nil {
		return domain.Note{}, "", err
	}
	wants, err := e.wanted(ctx, r)
	if err != nil {
		return domain.Note{}, "", err
	}
	n := domain.Note{Link: e.PublicURL + "/requests/" + string(r.ID), Lines: []string{"Bot: " + bot, "For: " + who, "Wants: " + wants}}
	if reason := domain.PlainLine(r.Reason, domain.MaxNoteText); reason != "" {
		n.Lines = append(n.Lines, "The Bot's own words: "+domain.Quoted(reason))
	}
	expiry := "Denied"
	if r.AllowsOnExpiry() {
		expiry = "Allowed"
	}
	until := fmt.Sprintf("%s if nobody answers by: %s", expiry, r.ExpiresAt.UTC().Format(noteTimes))
	switch event {
	case domain.HookRequestDecided:
		n.Title = fmt.Sprintf("A Request of %s was %s", bot, r.Status)
		return n, "", nil
	case domain.HookRequestExpiring:
		n.Title = fmt.Sprintf("The time of a Request of %s is nearly up", bot)
	case domain.HookRequestEscalated:
		n.Title = fmt.Sprintf("A Request of %s waits for you, since %s has not answered it", bot, who)
	default:
		n.Title = fmt.Sprintf("A Request of %s waits for an answer", bot)
	}
	n.Lines = append(n.Lines, until)
	return n, "", nil
}

func (e *Engine) workNote(ctx context.Context, v domain.Delivery, id domain.DelegationID, status, limit string) (domain.Note, string, error) {
	g, err := e.Store.Delegation(ctx, id)
	if err != nil {
		return domain.Note{}, "The work is not there any more.", gone(err)
	}
	bot, who, err := e.namesFor(ctx, g.Bot, g.Member)
	if err != nil {
		return domain.Note{}, "", err
	}
	n := domain.Note{Title: fmt.Sprintf("Work of %s: %s", bot, status), Link: e.PublicURL + "/work/" + string(g.ID),
		Lines: []string{"Bot: " + bot, "For: " + who, "Status: " + status, "At: " + v.CreatedAt.UTC().Format(noteTimes)}}
	if limit != "" {
		n.Lines = append(n.Lines, "Limit: "+domain.PlainLine(limit, domain.MaxNoteName))
	}
	return n, "", nil
}

// namesFor gives the names of a Bot and of the Member that it works for, fit for a line.
func (e *Engine) namesFor(ctx context.Context, bot domain.BotID, member domain.MemberID) (string, string, error) {
	b, err := e.Store.Bot(ctx, bot)
	if err != nil {
		return "", "", err
	}
	m, err := e.Store.Member(ctx, member)
	return domain.PlainLine(b.Name, domain.MaxNoteName), domain.PlainLine(m.Name, domain.MaxNoteName), err
}

// wanted names what a Request asks for. An App is called by the name of its Connection.
func (e *Engine) wanted(ctx context.Context, r domain.Request) (string, error) {
	if r.Unknown != nil {
		return "to know what became of a call that went out at " + time.UnixMilli(r.Unknown.SentAtMs).UTC().Format(noteTimes), nil
	}
	if r.App == nil {
		return domain.PlainLine(r.Capability.Action+" "+r.Capability.Target, 2*domain.MaxNoteName), nil
	}
	c, err := e.Store.Connection(ctx, r.App.Connection)
	if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
		return "", err
	}
	return domain.PlainLine(r.App.Tool, domain.MaxNoteName) + " on " + domain.PlainLine(c.Name, domain.MaxNoteName), nil
}
