package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/web"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// layOut puts JSON over lines without changing a letter of its values.
func layOut(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, rawJSON(raw), "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

var endings = []web.Choice{{Value: "", Label: "allowed or denied"}, {Value: string(domain.RequestAllowed), Label: "allowed"},
	{Value: string(domain.RequestDenied), Label: "denied"}, {Value: string(domain.RequestCancelled), Label: "cancelled"}}

// showHistory lists the Requests that this person answered, or that waited for it and
// ended otherwise.
func (s *server) showHistory(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	filter := domain.RequestFilter{Bot: botOf(gc)}
	v := web.History{}
	status := gc.Query("status")
	known := false
	for _, e := range endings {
		e.Picked = e.Value == status
		known = known || e.Picked
		v.Status = append(v.Status, e)
	}
	switch {
	case !known:
		return web.View{}, invalid("status", "must be allowed, denied or cancelled")
	case status == "":
		filter.Decided = true
	default:
		filter.Status = domain.RequestStatus(status)
	}
	if err := s.searchOf(ctx, gc, p, &filter); err != nil {
		return web.View{}, err
	}
	rows, err := s.Engine.RequestHeads(ctx, p, filter, rowsAfter(gc, domain.PrefixRequest))
	if err != nil {
		return web.View{}, err
	}
	rows, v.More = cutRows(rows, func(r domain.Request) string { return string(r.ID) })
	v.Search = filter.Search
	query := url.Values{}
	for _, name := range []string{"q", "status", "bot"} {
		if value := gc.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	if len(query) > 0 {
		v.Query = "&" + query.Encode()
	}
	var c nameless
	for _, r := range rows {
		c.request(r)
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return web.View{}, err
	}
	now := s.Engine.Clock()
	for _, r := range rows {
		row := web.HistoryRow{ID: string(r.ID), Title: titleOf(r.Capability, n), Bot: n.bot(r.Bot), App: appOf(r.Capability, n),
			Sample: sample(r.Arguments), At: moment(r.UpdatedAt, now)}
		if o := outcomeOf(r, p.Member.ID, n); o != nil {
			row.Good, row.Word, row.Reason = o.Good, o.Title, o.Reason
		}
		if r.Decision != nil {
			row.At = moment(time.UnixMilli(r.Decision.AtMs), now)
		}
		v.Rows = append(v.Rows, row)
	}
	return v.View(), nil
}
