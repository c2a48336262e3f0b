package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

const (
	inboxRequests = 20 // shown at once
	inboxItems    = 30 // of the Chat on the page
)

func (s *server) showInbox(ctx context.Context, gc *gin.Context) error {
	p, err := s.fromBrowser(ctx, gc)
	if err != nil {
		return err
	}
	infoFrom(ctx).principal = p
	if err := mayCall(p, domain.RoleRead); err != nil {
		return err
	}
	org, err := s.Engine.Organization(ctx, p)
	if err != nil {
		return err
	}
	v := web.Inbox{Member: p.Member.Name, Organization: org.Name, MayAnswer: p.HasRole(domain.RoleWrite), MayMonitor: s.Monitoring != nil}
	names, err := s.namesFor(ctx, p)
	if err != nil {
		return err
	}
	requests, err := s.Engine.Requests(ctx, p, domain.RequestFilter{Status: domain.RequestPending}, domain.Page{Limit: inboxRequests + 1})
	if err != nil {
		return err
	}
	if v.More = len(requests) > inboxRequests; v.More {
		requests = requests[:inboxRequests]
	}
	now := s.Engine.Clock()
	for _, r := range requests {
		v.Requests = append(v.Requests, requestCard(r, names, now))
	}
	if v.Notice, err = s.noticeOf(ctx, gc, p, names); err != nil {
		return err
	}
	if v.Chat, err = s.chatBox(ctx, p, gc.Query("chat"), names); err != nil {
		return err
	}
	writeView(gc, http.StatusOK, v)
	return nil
}

// names are what people call the Bots and Connections of a page.
type names struct {
	bots        map[domain.BotID]string
	connections map[domain.ConnectionID]string
}

func (s *server) namesFor(ctx context.Context, p domain.Principal) (names, error) {
	n := names{map[domain.BotID]string{}, map[domain.ConnectionID]string{}}
	bots, err := s.Engine.Bots(ctx, p, domain.Page{Limit: 200})
	if err != nil {
		return n, err
	}
	for _, b := range bots {
		n.bots[b.ID] = b.Name
	}
	connections, err := s.Engine.Connections(ctx, p, domain.Page{Limit: 200})
	for _, c := range connections {
		n.connections[c.ID] = c.Name
	}
	return n, err
}

func (n names) bot(id domain.BotID) string {
	if name := n.bots[id]; name != "" {
		return name
	}
	return string(id)
}

func requestCard(r domain.Request, n names, now time.Time) web.Request {
	card := web.Request{ID: string(r.ID), Expected: r.Revision, Bot: n.bot(r.Bot), BotID: string(r.Bot), Action: r.Capability.Action,
		Target: r.Capability.Target, Arguments: layOut(r.Arguments), Reason: r.Reason,
		Asked: moment(r.CreatedAt, now), Expires: moment(r.ExpiresAt, now)}
	if a := r.App; a != nil {
		card.Tool, card.App = a.Tool, n.connections[a.Connection]
	} else if r.Capability.Action == domain.ActionToolsCall {
		card.Tool = r.Capability.Target
	}
	explainCard(&card, r, n)
	if c := r.Code; c != nil {
		card.Program, card.Place = c.Program, fmt.Sprintf("its call %d, at line %d, column %d", c.Index+1, c.Line, c.Column)
	}
	if r.Unknown != nil {
		at := moment(time.UnixMilli(r.Unknown.SentAtMs), now)
		card.UnknownAt = &at
	}
	return card
}

// explainCard says what the tags, the taint and the reviewer add to a Request.
func explainCard(card *web.Request, r domain.Request, n names) {
	card.Resource, card.Tags = r.Resource, strings.Join(r.Tags, ", ")
	if r.TagLine.Effect == domain.TagEffectHuman {
		card.Tags += " (" + r.TagLine.Tag + " is for people alone)"
	}
	for _, source := range r.Taint {
		name := source.String()
		if known := n.connections[source.Connection]; known != "" {
			name = "the App " + known
		}
		card.Taint = append(card.Taint, name)
	}
	if len(r.Taint) > 0 {
		card.Held = r.TaintedTag
	}
	if v := r.ReviewVerdict; v != nil {
		card.Verdict, card.Note = v.Verdict, v.Note
	}
}

// layOut puts JSON over lines without changing a letter of its values.
func layOut(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, rawJSON(raw), "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func moment(at, now time.Time) web.Moment {
	ago, far := now.Sub(at), ""
	switch {
	case ago >= time.Second:
		far = roughly(ago) + " ago"
	case ago <= -time.Second:
		far = "in " + roughly(-ago)
	default:
		far = "now"
	}
	at = at.UTC()
	return web.Moment{ISO: at.Format(time.RFC3339), Text: at.Format("2006-01-02 15:04:05") + " UTC (" + far + ")"}
}

// roughly is a duration to the nearest unit that people think in.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d days", d.Round(day)/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d.Round(time.Hour)/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", d.Round(time.Minute)/time.Minute)
	default:
		return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
	}
}

// noticeOf says what became of the Request that was just answered, by what the
// Request itself says.
func (s *server) noticeOf(ctx context.Context, gc *gin.Context, p domain.Principal, n names) (*web.Notice, error) {
	id := gc.Query("request")
	if !domain.ValidID(id, domain.PrefixRequest) {
		return nil, nil
	}
	r, err := s.Engine.Request(ctx, p, domain.RequestID(id))
	if domain.IsCode(err, domain.CodeNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := &web.Notice{Kind: "good", Title: "Done: " + outcome(r, p, n), Text: r.Capability.Action + " on " + r.Capability.Target}
	if gc.Query("stale") != "" {
		out.Kind, out.Title = "bad", "Your answer did not count. What is so now: "+outcome(r, p, n)
	}
	if d := r.Decision; d != nil && d.Reason != nil {
		out.Text += "\nReason: " + *d.Reason
	}
	return out, nil
}

func outcome(r domain.Request, p domain.Principal, n names) string {
	switch r.Status {
	case domain.RequestPending:
		return "the Request changed since you saw it and still waits. Look at it again below."
	case domain.RequestCancelled:
		return "the Request was cancelled, because its work was stopped."
	}
	word := "denied"
	if r.Status == domain.RequestAllowed {
		word = "allowed"
	}
	if r.Decision == nil {
		return word + "."
	}
	by := "somebody else"
	switch {
	case r.Decision.By == domain.Person(p.Member.ID):
		by = "you"
	case r.Decision.By.Tag == domain.TagExpiry:
		by = "expiry, because nobody answered in time"
	case r.Decision.By.Tag == domain.TagGrant:
		by = "a kept decision (Grant)"
	case r.Decision.By.Tag == domain.TagBot:
		by = n.bot(r.Decision.By.Bot)
	}
	return word + " by " + by + " at " + time.UnixMilli(r.Decision.AtMs).UTC().Format("15:04:05") + " UTC."
}

// chatBox shows the newest entries of a Chat, or an empty box.
func (s *server) chatBox(ctx context.Context, p domain.Principal, id string, n names) (web.Chat, error) {
	box := web.Chat{Key: rand.Text()}
	if !domain.ValidID(id, domain.PrefixChat) {
		return box, nil
	}
	chat, err := s.Engine.Chat(ctx, p, domain.ChatID(id))
	if domain.IsCode(err, domain.CodeNotFound) {
		return box, nil
	}
	if err != nil {
		return box, err
	}
	items, calls, err := s.Engine.Items(ctx, p, chat.ID, max(0, chat.LastItem-inboxItems), inboxItems)
	if err != nil {
		return box, err
	}
	box.ID = id
	for _, i := range items {
		box.Lines = append(box.Lines, lineOf(i, calls, p, n))
	}
	switch chat.Status {
	case domain.ChatRunning:
		box.Busy, box.Status = true, "The Bot works."
	case domain.ChatWaiting:
		box.Busy, box.Status = true, "The Bot waits for an answer above."
	case domain.ChatIdle:
		if chat.LastTurn == "" {
			break
		}
		v, err := s.Engine.Turn(ctx, p, chat.LastTurn)
		if err != nil {
			return box, err
		}
		if v.Turn.Error != "" {
			box.Lines = append(box.Lines, web.Line{Who: "OpenBot", Kind: "notice", Text: "The Turn failed: " + v.Turn.Error})
		}
	}
	return box, nil
}

func lineOf(i domain.Item, calls map[domain.CallID]domain.Call, p domain.Principal, n names) web.Line {
	l := web.Line{Who: "OpenBot", Kind: "notice", Text: i.Text}
	switch i.Kind {
	case domain.ItemMessage:
		l.Who, l.Kind = "You", "message"
		if i.From != string(p.Member.ID) {
			l.Who = i.From
		}
	case domain.ItemAnswer:
		l.Who, l.Kind = n.bot(domain.BotID(i.From)), "answer-text"
	case domain.ItemToolCall:
		c := calls[i.Call]
		l.Who, l.Kind, l.Text = "Tool call", "tool", c.Name+" "+strings.TrimSpace(string(c.Arguments))+" ("+string(c.Status)+")"
	case domain.ItemToolResult:
		l.Who, l.Kind = "Result", "tool"
	}
	return l
}

// chatUnder makes a Chat with the Main Bot once for a key.
func (s *server) chatUnder(ctx context.Context, p domain.Principal, key string) (domain.ChatID, error) {
	k := &engine.Keeping{Member: p.Member.ID, Key: key, Fingerprint: "chat", Status: http.StatusCreated,
		Render: func(result any) ([]byte, error) {
			chat, ok := result.(domain.Chat)
			if !ok {
				return nil, fmt.Errorf("the command gave %T to keep, not a Chat", result)
			}
			return []byte(chat.ID), nil
		}}
	err := s.Engine.Kept(ctx, k)
	if err == nil {
		var chat domain.Chat
		if chat, err = s.Engine.CreateChat(engine.WithKeeping(ctx, k), p, engine.NewChat{}); err == nil {
			return chat.ID, nil
		}
	}
	var kept *engine.KeptError
	if errors.As(err, &kept) {
		return domain.ChatID(kept.Answer.Body), nil
	}
	return "", err
}

func isKept(err error) bool {
	var kept *engine.KeptError
	return errors.As(err, &kept)
}
