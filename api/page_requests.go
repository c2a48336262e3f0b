package api

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/web"
)

const (
	// shownRequests is how many Requests a list shows.
	shownRequests = 30
	// maxBulk is how many are answered with one click.
	maxBulk = 50
	// maxSearch is the longest text to search for, in bytes.
	maxSearch = 100
	// sampleLength is how much of the arguments a list shows, in characters.
	sampleLength = 90
)

func (s *server) requestPages(r *gin.Engine) {
	r.GET("/", s.seeing("requests", domain.RoleRead, s.showRequests))
	r.GET("/requests/selected", s.seeing("requests", domain.RoleRead, s.showSelected))
	r.GET("/requests/:request", s.seeing("requests", domain.RoleRead, s.showRequest))
	r.POST("/requests/answers", s.acting(domain.RoleWrite, s.answerMany))
	r.POST("/requests/:request", s.acting(domain.RoleWrite, s.answerOne))
}

// showRequests is the inbox: what waits, and the newest of it.
func (s *server) showRequests(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	shown := gc.Query("shown") // the one beside the list, when only the list is asked for
	list, err := s.requestList(ctx, gc, p, shown)
	if err != nil {
		return web.View{}, err
	}
	if partFor(gc, "list") {
		return list.Part(), nil
	}
	page := web.Requests{List: list}
	if len(list.Rows) > 0 {
		page.List.Shown = list.Rows[0].ID
		page.Detail, err = s.requestDetail(ctx, p, domain.RequestID(page.List.Shown), false)
		if domain.IsCode(err, domain.CodeNotFound) {
			page.Detail, err = nil, nil
		}
	}
	return page.View(), err
}

func (s *server) showRequest(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	id, err := RequestPath{Request: gc.Param("request")}.id()
	if err != nil {
		return web.View{}, err
	}
	detail, err := s.requestDetail(ctx, p, id, gc.Query("whole") != "")
	if err != nil {
		return web.View{}, err
	}
	detail.Stale = gc.Query("stale") != ""
	if partFor(gc, "detail") {
		return detail.Part(), nil
	}
	list, err := s.requestList(ctx, gc, p, string(id))
	if err != nil {
		return web.View{}, err
	}
	return web.Requests{List: list, Detail: detail, Picked: true}.View(), nil
}

// searchOf reads what to search for. A search also finds the Bots of that name.
func (s *server) searchOf(ctx context.Context, gc *gin.Context, p domain.Principal, filter *domain.RequestFilter) error {
	search := strings.TrimSpace(gc.Query("q"))
	if len(search) > maxSearch || strings.ContainsRune(search, 0) {
		return invalid("q", "must have at most 100 bytes")
	}
	filter.Search = search
	if search == "" {
		return nil
	}
	bots, err := s.Engine.Bots(ctx, p, domain.Page{Limit: 200})
	if err != nil {
		return err
	}
	for _, b := range bots {
		if strings.Contains(strings.ToLower(b.Name), strings.ToLower(search)) {
			filter.Bots = append(filter.Bots, b.ID)
		}
	}
	return nil
}

func (s *server) requestList(ctx context.Context, gc *gin.Context, p domain.Principal, shown string) (web.RequestList, error) {
	filter := domain.RequestFilter{Status: domain.RequestPending}
	if err := s.searchOf(ctx, gc, p, &filter); err != nil {
		return web.RequestList{}, err
	}
	page := domain.Page{Limit: shownRequests + 1}
	if before := gc.Query("before"); domain.ValidID(before, domain.PrefixRequest) {
		page.Before = before
	}
	rows, err := s.Engine.RequestHeads(ctx, p, filter, page)
	if err != nil {
		return web.RequestList{}, err
	}
	list := web.RequestList{Search: filter.Search, Shown: shown, Later: page.Before != ""}
	if len(rows) > shownRequests {
		rows = rows[:shownRequests]
		list.More = string(rows[len(rows)-1].ID)
	}
	var c nameless
	for _, r := range rows {
		c.request(r)
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return list, err
	}
	now := s.Engine.Clock()
	for _, r := range rows {
		list.Rows = append(list.Rows, web.RequestRow{ID: string(r.ID), Like: likeness(r), Title: titleOf(r.Capability, n), Bot: n.bot(r.Bot),
			App: appOf(r.Capability, n), Sample: sample(r.Arguments), Asked: moment(r.CreatedAt, now), Expires: moment(r.ExpiresAt, now),
			Unknown: r.Unknown != nil, Supports: len(r.Endorsements)})
	}
	return list, nil
}

// likeness is the same for Requests that a person may want to answer alike.
func likeness(r domain.Request) string {
	return string(r.Bot) + " " + r.Capability.Action + " " + r.Capability.Target
}

// sample is the beginning of arguments that may be cut already.
func sample(raw json.RawMessage) string {
	text := strings.TrimSpace(string(raw))
	text = strings.TrimPrefix(text, "{")
	runes := []rune(text)
	if len(runes) > sampleLength {
		return string(runes[:sampleLength]) + "…"
	}
	return strings.TrimSuffix(text, "}")
}

// showSelected shows many Requests, to answer them at once.
func (s *server) showSelected(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	ids := gc.QueryArray("id")
	if len(ids) > maxBulk {
		return web.View{}, invalid("id", "may stand there at most 50 times: answer fewer at once")
	}
	bulk := web.Bulk{}
	kinds := map[string]bool{}
	for _, id := range distinct(ids) {
		if !domain.ValidID(id, domain.PrefixRequest) {
			return web.View{}, notFound("Request")
		}
		r, err := s.Engine.Request(ctx, p, domain.RequestID(id))
		if domain.IsCode(err, domain.CodeNotFound) {
			bulk.Gone++
			continue
		}
		if err != nil {
			return web.View{}, err
		}
		if r.Status != domain.RequestPending || !r.AnswerableBy(p.Member.ID) {
			bulk.Gone++
			continue
		}
		kinds[likeness(r)] = true
		detail, err := s.requestBrief(ctx, p, r)
		if err != nil {
			return web.View{}, err
		}
		bulk.Requests = append(bulk.Requests, detail)
	}
	bulk.Kinds = len(kinds)
	bulk.Title = "Answer " + web.Plural(len(bulk.Requests), "Request") + " at once"
	if len(bulk.Requests) == 0 {
		bulk.Title = "None of these waits for you"
		if len(ids) == 0 {
			bulk.Title = "Select some Requests first"
		}
	}
	if partFor(gc, "detail") {
		return bulk.Part(), nil
	}
	list, err := s.requestList(ctx, gc, p, "")
	if err != nil {
		return web.View{}, err
	}
	return web.Requests{List: list, Bulk: &bulk, Picked: true}.View(), nil
}

// distinct gives each ID once.
func distinct(ids []string) []string {
	once := map[string]bool{}
	for _, id := range ids {
		once[id] = true
	}
	return slices.Sorted(maps.Keys(once))
}

// back is where a form without a script goes after an answer.
func back(id domain.RequestID, stale, whole bool) string {
	query := url.Values{}
	if stale {
		query.Set("stale", "1")
	}
	if whole {
		query.Set("whole", "1")
	}
	to := "/requests/" + string(id)
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	return to
}
