package api

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

func (s *server) appPages(r *gin.Engine) {
	r.GET("/apps", s.seeing("apps", domain.RoleRead, s.showApps))
	r.GET("/apps/:connection", s.seeing("apps", domain.RoleRead, s.showApp))
	r.POST("/apps", s.acting(domain.RoleWrite, s.connectApp))
	r.POST("/apps/:connection", s.acting(domain.RoleWrite, s.editApp))
	r.POST("/apps/:connection/read", s.acting(domain.RoleAdmin, s.markRead))
	r.POST("/apps/:connection/refresh", s.acting(domain.RoleWrite, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id, err := ConnectionPath{Connection: gc.Param("connection")}.id()
		if err != nil {
			return err
		}
		if _, err := s.Engine.RefreshConnection(ctx, p, id); err != nil {
			return err
		}
		onward(gc, "/apps/"+string(id))
		return nil
	}))
	r.POST("/apps/:connection/delete", s.acting(domain.RoleWrite, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id, err := ConnectionPath{Connection: gc.Param("connection")}.id()
		if err != nil {
			return err
		}
		if err := s.Engine.DeleteConnection(ctx, p, id); err != nil {
			return err
		}
		onward(gc, "/apps")
		return nil
	}))
}

func appRow(c domain.Connection) web.AppRow {
	row := web.AppRow{ID: string(c.ID), Name: c.Name, Address: c.URL, Shared: c.Shared, Health: c.Health, Why: c.HealthWhy, Tools: len(c.Look.Tools)}
	if c.Transport == domain.TransportStdio {
		row.Address = strings.Join(append([]string{c.Command}, c.Args...), " ")
	}
	return row
}

func (s *server) showApps(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	rows, err := s.Engine.Connections(ctx, p, rowsAfter(gc, domain.PrefixConnection))
	if err != nil {
		return web.View{}, err
	}
	v := web.Apps{}
	rows, v.More = cutRows(rows, func(c domain.Connection) string { return string(c.ID) })
	for _, c := range rows {
		v.Rows = append(v.Rows, appRow(c))
	}
	return v.View(), nil
}

func (s *server) showApp(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	id, err := ConnectionPath{Connection: gc.Param("connection")}.id()
	if err != nil {
		return web.View{}, err
	}
	c, err := s.Engine.Connection(ctx, p, id)
	if err != nil {
		return web.View{}, err
	}
	now := s.Engine.Clock()
	v := web.App{AppRow: appRow(c), Transport: string(c.Transport), Revision: c.Revision, Looked: momentOrNil(c.LookedAt, now),
		Secrets: append(append([]string{}, c.HeaderNames...), c.EnvNames...), Own: strings.TrimSpace(c.Look.Name + " " + c.Look.Version),
		Skipped: c.Look.Skipped, MayChange: p.HasRole(domain.RoleWrite) && (c.Member == p.Member.ID || p.HasRole(domain.RoleAdmin))}
	var settings domain.Settings
	if p.HasRole(domain.RoleAdmin) { // as the API shows them
		if settings, err = s.Engine.Settings(ctx, p); err != nil {
			return web.View{}, err
		}
	}
	for _, t := range c.Look.Tools {
		v.ToolList = append(v.ToolList, toolView(c, t, settings))
	}
	for _, r := range c.Look.Resources {
		v.Resources = append(v.Resources, web.AppThing{Name: r.Name, About: strings.TrimSpace(r.URI + " " + r.Description)})
	}
	for _, r := range c.Look.Templates {
		v.Resources = append(v.Resources, web.AppThing{Name: r.Name, About: strings.TrimSpace(r.URITemplate + " " + r.Description)})
	}
	for _, prompt := range c.Look.Prompts {
		v.Prompts = append(v.Prompts, web.AppThing{Name: prompt.Name, About: prompt.Description})
	}
	for _, change := range c.Look.Changes {
		v.Changes = append(v.Changes, changeView(change, now))
	}
	return v.View(), nil
}

func toolView(c domain.Connection, t domain.AppTool, settings domain.Settings) web.AppTool {
	target := string(c.ID) + "/" + t.Name
	v := web.AppTool{Name: t.Name, Title: t.Title, About: t.Description, Schema: layOut(t.Schema), Read: settings.IsRead(target)}
	for _, hint := range []struct {
		set  *bool
		word string
	}{{t.Hints.ReadOnly, "read-only"}, {t.Hints.Destructive, "destructive"}, {t.Hints.Idempotent, "idempotent"}, {t.Hints.OpenWorld, "open world"}} {
		if hint.set != nil {
			word := hint.word
			if !*hint.set {
				word = "not " + word
			}
			v.Hints = append(v.Hints, word)
		}
	}
	for _, pattern := range settings.AppReadRules {
		v.Exact = v.Exact || pattern == target
	}
	v.Repeat = !v.Read && settings.IsRepeatSafe(target)
	for _, tags := range settings.ToolTags {
		if domain.Match(tags.Tool, target) {
			v.Tags = append(v.Tags, tags.Tags...)
		}
	}
	return v
}

func changeView(c domain.AppChange, now time.Time) web.AppChange {
	v := web.AppChange{Revision: c.Revision, At: moment(time.UnixMilli(c.AtMs), now)}
	add := func(what string, tools []string) {
		names := make([]string, len(tools))
		for i, t := range tools {
			names[i] = code(t)
		}
		if len(names) > 0 {
			v.Words = append(v.Words, what+" "+strings.Join(names, ", "))
		}
	}
	if c.Edited {
		v.Words = append(v.Words, "A person changed the Connection.")
	}
	add("New:", c.Added)
	add("Gone:", c.Removed)
	add("Other arguments:", c.Schema)
	add("Other words:", c.Words)
	if len(v.Words) == 0 {
		v.Words = append(v.Words, "What the App says of its tools changed.")
	}
	return v
}

// pairs reads lines of names and values.
func pairs(text, separator, field string) (map[string]string, error) {
	out := map[string]string{}
	for _, line := range lines(text) {
		name, value, ok := strings.Cut(line, separator)
		if !ok {
			return nil, invalid(field, "must have a "+strconv.Quote(separator)+" in each line")
		}
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return out, nil
}

// lines gives what stands on each line that is not empty.
func lines(text string) []string {
	out := []string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

func (s *server) connectApp(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	body := NewConnection{Name: form.Get("name"), Transport: form.Get("transport")}
	var err error
	if body.Transport == string(domain.TransportStdio) {
		body.Command, body.Args = given(form.Get("command")), lines(form.Get("args"))
		body.Env, err = pairs(form.Get("env"), "=", "env")
	} else {
		body.URL = given(form.Get("url"))
		body.Headers, err = pairs(form.Get("headers"), ":", "headers")
	}
	if err != nil {
		return err
	}
	if form.Get("shared") != "" {
		shared := true
		body.Shared = &shared
	}
	if err := s.fits(body); err != nil {
		return err
	}
	transport := domain.Transport(body.Transport)
	c, err := s.Engine.CreateConnection(ctx, p, engine.ConnectionFields{Name: &body.Name, Transport: &transport, URL: body.URL, Command: body.Command,
		Args: body.Args, Headers: body.Headers, Env: body.Env, Shared: body.Shared})
	if err != nil {
		return err
	}
	onward(gc, "/apps/"+string(c.ID))
	return nil
}

func (s *server) editApp(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	name := form.Get("name")
	body := ConnectionChange{Name: &name}
	secrets := form.Get("secrets")
	if form.Get("transport") == string(domain.TransportHTTP) {
		url := form.Get("url")
		body.URL = &url
		if secrets != "" {
			headers, err := pairs(secrets, ":", "headers")
			if err != nil {
				return err
			}
			body.Headers = &headers
		}
	} else if secrets != "" {
		env, err := pairs(secrets, "=", "env")
		if err != nil {
			return err
		}
		body.Env = &env
	}
	if err := s.fits(body); err != nil {
		return err
	}
	changed, err := s.changeConnection(ctx, p, &struct {
		ConnectionPath
		Body ConnectionChange
	}{ConnectionPath: ConnectionPath{Connection: gc.Param("connection")}, Body: body})
	if err != nil {
		return err
	}
	onward(gc, "/apps/"+string(changed.Body.ID))
	return nil
}

// markRead says of one tool that it is a read, or takes that back.
func (s *server) markRead(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	id, err := ConnectionPath{Connection: gc.Param("connection")}.id()
	if err != nil {
		return err
	}
	c, err := s.Engine.Connection(ctx, p, id)
	if err != nil {
		return err
	}
	tool, read := gc.Request.PostForm.Get("tool"), gc.Request.PostForm.Get("read") != ""
	if _, ok := c.Tool(tool); !ok && read {
		return invalid("tool", "is not a tool of this App")
	}
	if strings.Contains(tool, "*") && read {
		return invalid("tool", "has a star in its name, which would match other tools; it cannot be marked here")
	}
	target := string(id) + "/" + tool
	_, err = s.Engine.ChangeSettings(ctx, p, func(now *domain.Settings) error {
		rules := []string{}
		for _, rule := range now.AppReadRules {
			if rule != target {
				rules = append(rules, rule)
			}
		}
		if read {
			rules = append(rules, target)
		}
		now.AppReadRules = rules
		return nil
	})
	if err != nil {
		return err
	}
	onward(gc, "/apps/"+string(id))
	return nil
}
