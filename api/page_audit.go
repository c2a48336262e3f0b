package api

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/web"
)

func (s *server) auditPages(r *gin.Engine) {
	r.GET("/audit", s.seeing("audit", domain.RoleAdmin, s.showAudit))
	r.GET("/audit/export", s.browsing(func(ctx context.Context, gc *gin.Context) error {
		p, err := s.fromBrowser(ctx, gc)
		if err != nil {
			return err
		}
		infoFrom(ctx).principal = p
		if err := mayCall(p, domain.RoleAdmin); err != nil {
			return err
		}
		filter, err := auditFilter(gc)
		if err != nil {
			return err
		}
		s.exportAudit(gc, p, filter)
		return nil
	}))
}

var auditFields = []string{"kind", "subject", "actor", "from", "to"}

// auditFilter reads what a page of the audit log is narrowed to. Days are those of UTC.
func auditFilter(gc *gin.Context) (domain.AuditFilter, error) {
	f := domain.AuditFilter{Kind: gc.Query("kind"), Subject: strings.TrimSpace(gc.Query("subject")), Actor: strings.TrimSpace(gc.Query("actor"))}
	if f.Kind != "" && !slices.Contains(domain.AuditKinds(), f.Kind) {
		return f, invalid("kind", "must be a kind of the list")
	}
	for name, text := range map[string]string{"subject": f.Subject, "actor": f.Actor} {
		if len(text) > maxSearch || strings.ContainsRune(text, 0) || strings.ToValidUTF8(text, "") != text {
			return f, invalid(name, "must be text of at most 100 bytes")
		}
	}
	for name, into := range map[string]*time.Time{"from": &f.From, "to": &f.To} {
		text := gc.Query(name)
		if text == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, text)
		if err != nil || at.Year() < 1970 {
			return f, invalid(name, "must be a day such as 2026-01-31")
		}
		*into = at
	}
	if !f.To.IsZero() {
		f.To = f.To.Add(day) // the day itself is in it
	}
	return f, nil
}

// auditLinks lead to what has a page of its own.
var auditLinks = map[string]string{domain.PrefixRequest: "/requests/", domain.PrefixConnection: "/apps/"}

// showAudit lists the audit log, newest first.
func (s *server) showAudit(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	filter, err := auditFilter(gc)
	if err != nil {
		return web.View{}, err
	}
	before := int64(0)
	if text := gc.Query("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return web.View{}, invalid("before", "must be where the page before ended")
		}
	}
	entries, err := s.Engine.AuditLog(ctx, p, filter, before, shownRows+1)
	if err != nil {
		return web.View{}, err
	}
	query := url.Values{}
	for _, name := range auditFields {
		if value := gc.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	v := web.Audit{Subject: filter.Subject, Actor: filter.Actor, From: gc.Query("from"), To: gc.Query("to"), Narrow: len(query) > 0, Export: asQuery(query)}
	v.Kinds = []web.Choice{{Value: "", Label: "anything"}}
	for _, kind := range domain.AuditKinds() {
		v.Kinds = append(v.Kinds, web.Choice{Value: kind, Label: kind, Picked: kind == filter.Kind})
	}
	if len(entries) > shownRows {
		entries = entries[:shownRows]
		query.Set("before", itoa(entries[len(entries)-1].Position))
		v.More = asQuery(query)
	}
	if v.Rows, err = s.auditRows(ctx, p, entries); err != nil {
		return web.View{}, err
	}
	head, err := s.Engine.AuditHead(ctx, p)
	if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
		return web.View{}, err
	}
	if err == nil {
		v.Head = &web.AuditEnd{Count: head.Count, Hash: head.Hash, At: moment(head.LinkedAt, s.Engine.Clock())}
	}
	return v.View(), nil
}

func asQuery(query url.Values) string {
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

func (s *server) auditRows(ctx context.Context, p domain.Principal, entries []domain.AuditEntry) ([]web.AuditRow, error) {
	members, err := s.Engine.Members(ctx, p, domain.Page{Limit: 200})
	if err != nil {
		return nil, err
	}
	called := map[domain.MemberID]string{}
	for _, m := range members {
		called[m.ID] = m.Name
	}
	var c nameless
	for _, e := range entries {
		c.bot(e.Actor.Bot)
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return nil, err
	}
	var rows []web.AuditRow
	for _, e := range entries {
		row := web.AuditRow{At: moment(e.At, s.Engine.Clock()), Kind: e.Kind, Subject: e.Subject, Address: e.Address, Token: string(e.Token), Data: layOut(e.Data)}
		row.Actor = actorWords(e.Actor, called, n)
		if id := e.Actor.ID(); id != e.Actor.Tag {
			row.ActorID = id
		}
		for prefix, path := range auditLinks {
			if domain.ValidID(e.Subject, prefix) {
				row.Link = path + e.Subject
			}
		}
		if e.Link != nil {
			row.Number, row.Hash = itoa(e.Link.Number), e.Link.Hash
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// actorWords names who acted, as an admin knows them.
func actorWords(a domain.Actor, called map[domain.MemberID]string, n names) string {
	switch a.Tag {
	case domain.TagPerson:
		return cmp.Or(called[a.User], "A Member")
	case domain.TagOperator:
		return "The operator of the server"
	case domain.TagServer:
		return "The server itself"
	case domain.TagBot:
		return n.bot(a.Bot)
	case domain.TagGrant:
		return "A Grant"
	case domain.TagRule:
		return "A Rule"
	case domain.TagExpiry:
		return "Expiry: nobody answered in time"
	case domain.TagPolicy:
		return "Policy"
	case domain.TagExemption:
		return "The settings: it needs no decision"
	}
	return a.Tag
}
