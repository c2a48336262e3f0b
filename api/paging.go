package api

import (
	"context"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"openbot/domain"
)

// Paged is the input of every list.
type Paged struct {
	Limit  int    `query:"limit" default:"50" minimum:"1" maximum:"200" doc:"How many to give at most."`
	Cursor string `query:"cursor" maxLength:"400" doc:"Where the page before ended. Take it from its Link header."`
}

// listed is the output of every list.
type listed[T any] struct {
	Link string `header:"Link" doc:"The next page, rel=\"next\"; left out on the last."`
	Body []T
}

const cursorVersion = 1

// cursorAfter names the place after a row of one list. It is bound to the list, so
// that a cursor is never taken for one of another.
func cursorAfter(list, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(rune(cursorVersion)) + id + " " + list))
}

// page gives the slice that is asked for, and one row more to see whether another
// page follows.
func (p Paged) page(list string) (domain.Page, error) {
	page := domain.Page{Limit: p.Limit + 1}
	if p.Cursor == "" {
		return page, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(p.Cursor)
	if err != nil || strings.ContainsAny(p.Cursor, "\r\n") || // which the decoder passes over
		len(raw) == 0 || raw[0] != cursorVersion {
		return page, badCursor()
	}
	id, of, ok := strings.Cut(string(raw[1:]), " ")
	if !ok || of != list || !plainID(id) {
		return page, badCursor()
	}
	page.Before = id
	return page, nil
}

func badCursor() *Problem {
	return invalid("cursor", "is not a cursor of this list; take it from the page before")
}

// plainID reports whether a text has the letters of an ID.
func plainID(id string) bool {
	return id != "" && len(id) <= 100 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// listOf cuts the row that was read ahead and encodes the others.
func listOf[R, T any](ctx context.Context, list string, p Paged, rows []R, id func(R) string, wire func(R) T) *listed[T] {
	out := &listed[T]{Body: []T{}}
	if len(rows) > p.Limit {
		rows = rows[:p.Limit]
		out.Link = nextLink(ctx, url.Values{"cursor": {cursorAfter(list, id(rows[len(rows)-1]))}, "limit": {strconv.Itoa(p.Limit)}})
	}
	for _, r := range rows {
		out.Body = append(out.Body, wire(r))
	}
	return out
}

// nextLink is the same address with other query values.
func nextLink(ctx context.Context, change url.Values) string {
	i := infoFrom(ctx)
	at := i.url
	query := at.Query()
	for name, values := range change {
		query[name] = values
	}
	return "<" + i.root + at.EscapedPath() + "?" + query.Encode() + `>; rel="next"`
}
