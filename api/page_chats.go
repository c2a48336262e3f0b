package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

// shownRows is how many rows a page of other lists shows.
const shownRows = 50

func (s *server) chatPages(r *gin.Engine) {
	r.GET("/chats", s.seeing("chats", domain.RoleRead, s.showChats))
	r.GET("/chats/:chat", s.seeing("chats", domain.RoleRead, s.showChat))
	r.POST("/chats", s.acting(domain.RoleWrite, s.startChat))
	r.POST("/chats/:chat/messages", s.acting(domain.RoleWrite, s.sendMessage))
	r.POST("/chats/:chat/change", s.acting(domain.RoleWrite, s.editChat))
	r.POST("/chats/:chat/interrupt", s.acting(domain.RoleWrite, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id, err := ChatPath{Chat: gc.Param("chat")}.id()
		if err != nil {
			return err
		}
		if _, err := s.Engine.Interrupt(ctx, p, id, false); err != nil {
			return err
		}
		onward(gc, "/chats/"+string(id))
		return nil
	}))
	r.POST("/chats/:chat/delete", s.acting(domain.RoleWrite, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id, err := ChatPath{Chat: gc.Param("chat")}.id()
		if err != nil {
			return err
		}
		if err := s.Engine.DeleteChat(ctx, p, id); err != nil {
			return err
		}
		onward(gc, "/chats")
		return nil
	}))
}

// rowsAfter reads which page of a list is asked for.
func rowsAfter(gc *gin.Context, prefix string) domain.Page {
	page := domain.Page{Limit: shownRows + 1}
	if before := gc.Query("before"); domain.ValidID(before, prefix) {
		page.Before = before
	}
	return page
}

// cutRows takes away the row that was read to see whether more follow, and gives the
// ID after which they do.
func cutRows[T any](rows []T, id func(T) string) ([]T, string) {
	if len(rows) <= shownRows {
		return rows, ""
	}
	rows = rows[:shownRows]
	return rows, id(rows[len(rows)-1])
}

// botChoices lists the Bots that can be chosen, the Main Bot first.
func (s *server) botChoices(ctx context.Context, p domain.Principal, picked string) ([]web.Choice, error) {
	bots, err := s.Engine.Bots(ctx, p, domain.Page{Limit: 200})
	if err != nil {
		return nil, err
	}
	var first, rest []web.Choice
	for _, b := range bots {
		if b.ArchivedAt != nil || b.Kind == domain.BotSession {
			continue
		}
		choice := web.Choice{Value: string(b.ID), Label: b.Name, Picked: string(b.ID) == picked}
		if b.ID == p.Member.MainBot {
			first = append(first, choice)
		} else {
			rest = append(rest, choice)
		}
	}
	return append(first, rest...), nil
}

func (s *server) showChats(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	rows, err := s.Engine.Chats(ctx, p, rowsAfter(gc, domain.PrefixChat))
	if err != nil {
		return web.View{}, err
	}
	v := web.Chats{Key: rand.Text()}
	rows, v.More = cutRows(rows, func(c domain.Chat) string { return string(c.ID) })
	if v.Bots, err = s.botChoices(ctx, p, gc.Query("bot")); err != nil {
		return web.View{}, err
	}
	var c nameless
	for _, chat := range rows {
		c.bot(chat.Bot)
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return web.View{}, err
	}
	for _, chat := range rows {
		v.Rows = append(v.Rows, s.chatRow(chat, n))
	}
	return v.View(), nil
}

func (s *server) chatRow(c domain.Chat, n names) web.ChatRow {
	row := web.ChatRow{ID: string(c.ID), Title: c.Title, Bot: n.bot(c.Bot), Status: string(c.Status), Plan: c.Mode == domain.ModePlan,
		Tainted: c.Tainted(), Updated: moment(c.UpdatedAt, s.Engine.Clock())}
	switch c.Kind {
	case domain.ChatTask:
		row.Kind = "work that was given"
	case domain.ChatReview:
		row.Kind = "a review"
	}
	return row
}

// startChat makes a Chat with its first message. The key of the form makes sending it
// twice harmless.
func (s *server) startChat(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	body := NewChat{Bot: form.Get("bot"), Title: form.Get("title")}
	if form.Get("plan") != "" {
		body.Mode = domain.ModePlan
	}
	message := Message{Text: form.Get("text")}
	for _, b := range []any{body, message} {
		if err := s.fits(b); err != nil {
			return err
		}
	}
	ctx, err := s.once(ctx, gc, "chat", http.StatusCreated)
	if err != nil {
		return err
	}
	made, err := s.createChat(ctx, p, &struct {
		Keyed
		Body *NewChat
	}{Body: &body})
	id, err := keptOr(err, func(kept Chat) domain.ChatID { return kept.ID }, func() domain.ChatID { return made.Body.ID })
	if err != nil {
		return err
	}
	return s.say(ctx, gc, p, id, message)
}

func (s *server) sendMessage(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	id, err := ChatPath{Chat: gc.Param("chat")}.id()
	if err != nil {
		return err
	}
	message := Message{Text: gc.Request.PostForm.Get("text")}
	if err := s.fits(message); err != nil {
		return err
	}
	return s.say(ctx, gc, p, id, message)
}

func (s *server) say(ctx context.Context, gc *gin.Context, p domain.Principal, id domain.ChatID, message Message) error {
	ctx, err := s.once(ctx, gc, "message:"+string(id), http.StatusAccepted)
	if err != nil {
		return err
	}
	_, err = s.postMessage(ctx, p, &struct {
		Keyed
		ChatPath
		Body Message
	}{ChatPath: ChatPath{Chat: string(id)}, Body: message})
	if _, err := keptOr(err, func(Posted) domain.ChatID { return id }, func() domain.ChatID { return id }); err != nil {
		return err
	}
	onward(gc, "/chats/"+string(id)+"#chat-end")
	return nil
}

// once lets the next command count once for the key of its form, as an Idempotency-Key
// does for a call of the API. It gives a kept answer as an error.
func (s *server) once(ctx context.Context, gc *gin.Context, what string, status int) (context.Context, error) {
	key := gc.Request.PostForm.Get("key")
	if !visible(key) || len(key) > 64 {
		return ctx, invalid("key", "is missing; load the page again")
	}
	i := infoFrom(ctx)
	i.key = "page:" + key + ":" + what
	i.body = fingerprint(http.MethodPost, what, nil)
	i.route = &route{path: gc.FullPath(), status: status}
	return ctx, s.kept(ctx, i)
}

// editChat sets the title, the mode and the terms of plans.
func (s *server) editChat(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	title, mode := form.Get("title"), ""
	if form.Get("plan") != "" {
		mode = domain.ModePlan
	}
	body := ChatChange{Title: &title, Mode: Optional[string]{Set: true}}
	if mode != "" {
		body.Mode.Value = &mode
	}
	if minutes := form.Get("minutes"); minutes != "" {
		n, err := strconv.ParseInt(minutes, 10, 32)
		if err != nil {
			return invalid("minutes", "must be a whole number")
		}
		n *= 60_000
		body.PlanTimeoutMs = &n
	}
	end := form.Get("onExpire")
	body.PlanOnExpire = &end
	if err := s.fits(NewChat{Title: title, Mode: mode, PlanTerms: body.PlanTerms}); err != nil {
		return err
	}
	changed, err := s.changeChat(ctx, p, &struct {
		ChatPath
		Body ChatChange
	}{ChatPath: ChatPath{Chat: gc.Param("chat")}, Body: body})
	if err != nil {
		return err
	}
	onward(gc, "/chats/"+string(changed.Body.ID))
	return nil
}

// kept gives the answer that is kept under the key of a form.
func (s *server) kept(ctx context.Context, i *info) error {
	err := s.Engine.Kept(ctx, &engine.Keeping{Member: i.principal.Member.ID, Key: i.key, Fingerprint: hex.EncodeToString(i.body[:])})
	if isKept(err) {
		return nil // the command finds it again, and gives it
	}
	return err
}
