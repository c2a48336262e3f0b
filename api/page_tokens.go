package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

func (s *server) tokenPages(r *gin.Engine) {
	r.GET("/tokens", s.seeing("tokens", domain.RoleAdmin, func(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
		v, err := s.tokensPage(ctx, gc, p)
		return v.View(), err
	}))
	r.POST("/tokens", s.acting(domain.RoleAdmin, s.makeToken))
	r.POST("/tokens/link", s.acting(domain.RoleAdmin, s.makeLink))
	r.POST("/tokens/:token/revoke", s.acting(domain.RoleAdmin, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id := gc.Param("token")
		if !domain.ValidID(id, domain.PrefixToken) {
			return notFound("Token")
		}
		if err := s.Engine.RevokeToken(ctx, p, domain.TokenID(id)); err != nil {
			return err
		}
		onward(gc, "/tokens")
		return nil
	}))
	r.POST("/members", s.acting(domain.RoleAdmin, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		body := NewMember{Name: gc.Request.PostForm.Get("name"), Permissions: lines(gc.Request.PostForm.Get("permissions"))}
		if err := s.fits(body); err != nil {
			return err
		}
		if _, err := s.Engine.CreateMember(ctx, p, engine.MemberFields{Name: &body.Name, Permissions: body.Permissions}); err != nil {
			return err
		}
		onward(gc, "/tokens")
		return nil
	}))
	r.POST("/members/:member", s.acting(domain.RoleAdmin, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id := gc.Param("member")
		if !domain.ValidID(id, domain.PrefixMember) {
			return notFound("Member")
		}
		disabled := gc.Request.PostForm.Get("disabled") == "true"
		if _, err := s.Engine.ChangeMember(ctx, p, domain.MemberID(id), engine.MemberFields{Disabled: &disabled}); err != nil {
			return err
		}
		onward(gc, "/tokens")
		return nil
	}))
}

func (s *server) tokensPage(ctx context.Context, gc *gin.Context, p domain.Principal) (web.Tokens, error) {
	v := web.Tokens{}
	rows, err := s.Engine.Tokens(ctx, p, rowsAfter(gc, domain.PrefixToken))
	if err != nil {
		return v, err
	}
	rows, v.More = cutRows(rows, func(t domain.Token) string { return string(t.ID) })
	members, err := s.Engine.Members(ctx, p, domain.Page{Limit: 200})
	if err != nil {
		return v, err
	}
	called := map[domain.MemberID]string{}
	for _, m := range members {
		called[m.ID] = m.Name
		if m.DisabledAt == nil {
			v.Members = append(v.Members, web.Choice{Value: string(m.ID), Label: m.Name, Picked: m.ID == p.Member.ID})
		}
		v.People = append(v.People, web.MemberRow{ID: string(m.ID), Name: m.Name, Permissions: strings.Join(m.Permissions, " "),
			Disabled: m.DisabledAt != nil, Me: m.ID == p.Member.ID})
	}
	now := s.Engine.Clock()
	for _, t := range rows {
		row := web.TokenRow{ID: string(t.ID), Name: t.Name, Member: called[t.Member], Scopes: strings.Join(t.Scopes, " "), Created: moment(t.CreatedAt, now),
			Used: momentOrNil(t.LastUsedAt, now), Expires: momentOrNil(t.ExpiresAt, now), Revoked: momentOrNil(t.RevokedAt, now), Current: t.ID == p.Token.ID}
		row.Expired = t.ExpiresAt != nil && !domain.Before(now, *t.ExpiresAt)
		if row.Member == "" {
			row.Member = string(t.Member)
		}
		v.Rows = append(v.Rows, row)
	}
	return v, nil
}

// makeToken shows the new secret in this answer alone.
func (s *server) makeToken(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	body := NewToken{Name: form.Get("name"), Scopes: lines(form.Get("scopes")), Member: form.Get("member")}
	if days := form.Get("days"); days != "" {
		n, err := strconv.Atoi(days)
		if err != nil || n < 1 || n > 3650 {
			return invalid("days", "must be from 1 to 3650")
		}
		at := s.Engine.Clock().Add(time.Duration(n) * 24 * time.Hour).UnixMilli()
		body.ExpiresAt = &at
	}
	if err := s.fits(body); err != nil {
		return err
	}
	made, err := s.createToken(ctx, p, &struct {
		Keyed
		Body NewToken
	}{Body: body})
	if err != nil {
		return err
	}
	v, err := s.tokensPage(ctx, gc, p)
	if err != nil {
		return err
	}
	v.Made = &web.MadeSecret{Name: made.Body.Name, Secret: made.Body.Token}
	return s.afterForm(ctx, gc, p, "tokens", v.View())
}

// makeLink makes a link that signs another browser in with the token of this session.
func (s *server) makeLink(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	v, err := s.tokensPage(ctx, gc, p)
	if err != nil {
		return err
	}
	origin := s.place.origin
	switch {
	case origin != "":
	case secure(gc):
		origin = "https://" + gc.Request.Host
	default:
		origin = "http://" + gc.Request.Host
	}
	v.Link = origin + at(gc, s.session.link(infoFrom(ctx).secret, time.Now()))
	return s.afterForm(ctx, gc, p, "tokens", v.View())
}

// afterForm shows a page in the answer to a form itself: for what is shown once.
func (s *server) afterForm(ctx context.Context, gc *gin.Context, p domain.Principal, here string, v web.View) error {
	shell, err := s.shell(ctx, p, here, true)
	if err != nil {
		return err
	}
	if shell.Position, err = s.Engine.Position(ctx, p); err != nil {
		return err
	}
	s.write(gc, http.StatusOK, v, shell)
	return nil
}
