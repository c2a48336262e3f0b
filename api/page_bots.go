package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

func (s *server) botPages(r *gin.Engine) {
	r.GET("/bots", s.seeing("bots", domain.RoleRead, s.showBots))
	r.GET("/bots/:bot", s.seeing("bots", domain.RoleRead, s.showBot))
	r.POST("/bots", s.acting(domain.RoleWrite, s.makeBot))
	r.POST("/bots/:bot", s.acting(domain.RoleWrite, s.editBot))
	r.POST("/bots/:bot/archive", s.acting(domain.RoleWrite, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id, err := BotPath{Bot: gc.Param("bot")}.id()
		if err != nil {
			return err
		}
		if err := s.Engine.ArchiveBot(ctx, p, id); err != nil {
			return err
		}
		onward(gc, "/bots/"+string(id))
		return nil
	}))
}

var botKinds = map[domain.BotKind]string{domain.BotMain: "Main Bot", domain.BotLasting: "lasting", domain.BotSession: "helper in one Chat"}

func botRow(b domain.Bot, n names) web.BotRow {
	row := web.BotRow{ID: string(b.ID), Name: b.Name, Role: b.Role, Kind: botKinds[b.Kind], Archived: b.ArchivedAt != nil}
	switch {
	case b.Shared:
		row.Owner = "shared by the organization"
	case b.Owner != "":
		row.Owner = "belongs to " + n.bot(b.Owner)
	}
	return row
}

func (s *server) showBots(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	rows, err := s.Engine.Bots(ctx, p, rowsAfter(gc, domain.PrefixBot))
	if err != nil {
		return web.View{}, err
	}
	v := web.Bots{}
	rows, v.More = cutRows(rows, func(b domain.Bot) string { return string(b.ID) })
	var c nameless
	for _, b := range rows {
		c.bot(b.Owner)
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return web.View{}, err
	}
	for _, b := range rows {
		v.Rows = append(v.Rows, botRow(b, n))
	}
	if v.Owners, err = s.botChoices(ctx, p, ""); err != nil {
		return web.View{}, err
	}
	if p.HasRole(domain.RoleAdmin) {
		v.Owners = append(v.Owners, web.Choice{Value: "shared", Label: "the organization (shared)"})
	}
	return v.View(), nil
}

func (s *server) showBot(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	id, err := BotPath{Bot: gc.Param("bot")}.id()
	if err != nil {
		return web.View{}, err
	}
	b, err := s.Engine.Bot(ctx, p, id)
	if err != nil {
		return web.View{}, err
	}
	var c nameless
	c.bot(b.Owner)
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return web.View{}, err
	}
	may := b.ArchivedAt == nil && p.HasRole(domain.RoleWrite) && (!b.Shared || p.HasRole(domain.RoleAdmin))
	v := web.Bot{BotRow: botRow(b, n), OwnerID: string(b.Owner), Instructions: b.Instructions, Model: b.Model, Memory: b.Memory,
		Created: moment(b.CreatedAt, s.Engine.Clock()), MayChange: may, MayArchive: may && b.Kind != domain.BotMain}
	if b.Owner != "" {
		v.Owner = n.bot(b.Owner)
	}
	return v.View(), nil
}

func (s *server) makeBot(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	body := NewBot{Name: form.Get("name"), Role: form.Get("role"), Instructions: form.Get("instructions"), Model: given(form.Get("model"))}
	if owner := form.Get("owner"); owner == "shared" {
		shared := true
		body.Shared = &shared
	} else {
		body.Owner = given(owner)
	}
	if err := s.fits(body); err != nil {
		return err
	}
	made, err := s.createBot(ctx, p, &struct {
		Keyed
		Body NewBot
	}{Body: body})
	if err != nil {
		return err
	}
	onward(gc, "/bots/"+string(made.Body.ID))
	return nil
}

// given is a value of a form, or nil for one that was left empty.
func given(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}

func (s *server) editBot(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	id, err := BotPath{Bot: gc.Param("bot")}.id()
	if err != nil {
		return err
	}
	form := gc.Request.PostForm
	name, role, instructions, model, memory := form.Get("name"), form.Get("role"), form.Get("instructions"), form.Get("model"), form.Get("memory")
	body := BotChange{Name: &name, Role: &role, Instructions: &instructions, Model: &model, Memory: &memory}
	if err := s.fits(body); err != nil {
		return err
	}
	if _, err := s.Engine.ChangeBot(ctx, p, id, engine.BotFields{Name: body.Name, Role: body.Role, Instructions: body.Instructions,
		Model: body.Model, Memory: body.Memory}); err != nil {
		return err
	}
	onward(gc, "/bots/"+string(id))
	return nil
}
