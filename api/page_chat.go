package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

const (
	// shownItems is how many entries of a Chat a page shows.
	shownItems = 60
	// shownText is how much of one text it shows, in bytes.
	shownText = 12_000
	// shownResult is how much of what a call gave it shows, in bytes.
	shownResult = 6_000
	// shownUnread is how much of what the Bot has not read yet a page shows, newest last.
	shownUnread = 20
)

// showChat shows the newest entries of a Chat, or those before a given one.
func (s *server) showChat(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	id, err := ChatPath{Chat: gc.Param("chat")}.id()
	if err != nil {
		return web.View{}, err
	}
	unread, err := s.Engine.Unread(ctx, p, id) // before the items: what is read meanwhile shows twice, never not at all
	if err != nil {
		return web.View{}, err
	}
	chat, err := s.Engine.Chat(ctx, p, id)
	if err != nil {
		return web.View{}, err
	}
	end := chat.LastItem
	if before, err := strconv.ParseInt(gc.Query("before"), 10, 64); err == nil && before > 1 && before <= end {
		end = before - 1
	}
	whole, _ := strconv.ParseInt(gc.Query("whole"), 10, 64) // 0 for none
	if whole > 0 && whole+shownItems/2 < end {
		end = whole + shownItems/2
	}
	items, calls, err := s.Engine.Items(ctx, p, id, max(0, end-shownItems), int(min(end, shownItems)))
	if end == 0 {
		items, err = nil, nil
	}
	if err != nil {
		return web.View{}, err
	}
	var c nameless
	c.bot(chat.Bot)
	for _, i := range items {
		if domain.ValidID(i.From, domain.PrefixBot) {
			c.bot(domain.BotID(i.From))
		}
	}
	for _, call := range calls {
		if call.Decided != nil {
			c.bot(call.Decided.By.Bot)
		}
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return web.View{}, err
	}
	v := web.Chat{ChatRow: s.chatRow(chat, n), BotID: string(chat.Bot), Closed: chat.Kind == domain.ChatReview || chat.Channel != "", Key: rand.Text(),
		Later: end < chat.LastItem, OnExpire: chat.Plan.OnExpire}
	if chat.Parent != nil {
		v.Parent = string(chat.Parent.Chat)
	}
	if ms := chat.Plan.TimeoutMs; ms > 0 {
		v.Timeout = strconv.FormatInt(max(1, ms/60_000), 10)
	}
	if len(items) > 0 && items[0].Sequence > 1 {
		v.Earlier = items[0].Sequence
	}
	if v.Work, err = s.chatWork(ctx, p, chat); err != nil {
		return web.View{}, err
	}
	if partFor(gc, "work") {
		return v.WorkPart(), nil
	}
	v.Lines = s.linesOf(items, calls, p, n, whole)
	if !v.Later {
		v.Unread = s.unreadLines(unread, p, n)
		v.MoreUnread = len(unread) - len(v.Unread)
	}
	if err := s.stateOf(ctx, p, chat, &v); err != nil {
		return web.View{}, err
	}
	if partFor(gc, "chat") {
		return v.Part(), nil
	}
	return v.View(), nil
}

// linesOf puts what was said in order. A call and what it gave are one line.
func (s *server) linesOf(items []domain.Item, calls map[domain.CallID]domain.Call, p domain.Principal, n names, whole int64) []web.Line {
	var lines []web.Line
	shown := map[domain.CallID]bool{}
	now := s.Engine.Clock()
	for _, i := range items {
		if call, ok := calls[i.Call]; ok {
			if !shown[call.ID] {
				shown[call.ID] = true
				lines = append(lines, web.Line{Sequence: i.Sequence, Kind: "call", At: moment(i.CreatedAt, now), Call: callLine(call, p, n, i.Sequence == whole)})
			}
			continue
		}
		l := s.lineOf(i, p, n)
		if i.Sequence != whole {
			cutLine(&l)
		}
		lines = append(lines, l)
	}
	return lines
}

// lineOf is one thing that was said, whole.
func (s *server) lineOf(i domain.Item, p domain.Principal, n names) web.Line {
	l := web.Line{Sequence: i.Sequence, Who: "OpenBot", Kind: "notice-line", Text: i.Text, At: moment(i.CreatedAt, s.Engine.Clock())}
	switch i.Kind {
	case domain.ItemMessage:
		l.Who, l.Kind = "You", "me"
		if i.From != string(p.Member.ID) {
			l.Who, l.Kind = i.From, "bot"
		}
	case domain.ItemAnswer:
		l.Who, l.Kind = n.bot(domain.BotID(i.From)), "bot"
	case domain.ItemReminder:
		l.Who = "Reminder"
	}
	return l
}

func cutLine(l *web.Line) {
	if len(l.Text) > shownText {
		l.CutFrom = len(l.Text)
		l.Text = strings.ToValidUTF8(l.Text[:shownText], "")
	}
}

// unreadLines is the newest of what waits in the Chat's inbox.
func (s *server) unreadLines(waiting []domain.Input, p domain.Principal, n names) []web.Line {
	var lines []web.Line
	for _, in := range waiting[max(0, len(waiting)-shownUnread):] {
		l := s.lineOf(domain.Item{Kind: in.Kind, From: in.From, Text: in.Text, CreatedAt: in.CreatedAt}, p, n)
		cutLine(&l)
		lines = append(lines, l)
	}
	return lines
}

func callLine(c domain.Call, p domain.Principal, n names, whole bool) *web.CallLine {
	l := &web.CallLine{Name: c.Name, Status: string(c.Status), Request: string(c.Request), Within: c.Parent != "",
		Program: c.Kind == domain.CallProgram, Fields: web.Arguments(rawJSON(c.Arguments), whole), Result: c.Result}
	if len(l.Fields) == 1 && l.Fields[0].Kind == "empty" {
		l.Fields = nil
	}
	for _, f := range l.Fields {
		l.Cut = l.Cut || f.Cut
	}
	if len(l.Result) > shownResult && !whole {
		l.Cut, l.ResultCut = true, len(l.Result)
		l.Result = strings.ToValidUTF8(l.Result[:shownResult], "")
	}
	if d := c.Decided; d != nil {
		word := "Allowed by "
		if c.Status == domain.CallDenied {
			word = "Denied by "
		}
		l.Decided, l.Quote = word+n.actor(d.By, p.Member.ID), d.Quote
		if d.Pattern != "" {
			l.Decided += ": " + code(d.Pattern)
		}
	}
	for _, f := range c.Evidence {
		l.Steps = append(l.Steps, string(f.Step)+": "+f.Found)
	}
	return l
}

// stateOf says what happens in a Chat now, or how its last Turn ended.
func (s *server) stateOf(ctx context.Context, p domain.Principal, chat domain.Chat, v *web.Chat) error {
	if chat.LastTurn == "" {
		return nil
	}
	turn, err := s.Engine.Turn(ctx, p, chat.LastTurn)
	if err != nil {
		return err
	}
	t := turn.Turn
	v.Used = fmt.Sprintf("%s, %d tokens in and %d out", web.Plural(t.Steps, "step"), t.InputTokens, t.OutputTokens)
	if cost := domain.MicrosFromNanos(t.CostNanos); cost > 0 {
		v.Used += fmt.Sprintf(", $%.4f", float64(cost)/1e6)
	}
	switch t.Status {
	case domain.TurnQueued, domain.TurnRunning:
		v.Busy, v.State = true, v.Bot+" works."
	case domain.TurnWaiting:
		v.Busy, v.State = true, v.Bot+" waits for an answer."
		v.Waits = waitsOf(turn)
	case domain.TurnFailed:
		v.State = "The Turn failed: " + t.Error
	case domain.TurnInterrupted:
		v.State = "The Turn was interrupted."
	default:
		v.State = "Done."
	}
	return nil
}

func waitsOf(v engine.TurnView) []web.Wait {
	var out []web.Wait
	for _, c := range v.Calls {
		if c.Open() && c.Request != "" && (c.Status == domain.CallWaiting || c.Status == domain.CallUnknown) {
			out = append(out, web.Wait{Request: string(c.Request), Title: c.Name})
		}
	}
	return out
}
