package repository

import (
	"context"
	"strings"
	"sync"

	"gorm.io/gorm"

	"openbot/domain"
)

// What pages read: many rows at once, without the payloads that only one of them is
// shown with.

const (
	// headText is how much of a text stands in the head of a Request, in characters.
	headText = 400
	// likeWindow is how many Requests of a Bot are looked through for equal ones.
	likeWindow = 500
)

// headColumns are those of a Request with its payloads left out or cut.
var headColumns = sync.OnceValue(func() string {
	all := strings.Split(columns[requestRow]("requests", ""), ", ")
	for i, column := range all {
		switch name := strings.Trim(column[strings.LastIndex(column, " ")+1:], `"`); name {
		case "arguments", "reason":
			all[i] = "substr(requests." + name + ", 1, ?) AS " + name
		case "code", "plan":
			all[i] = "'' AS " + name
		}
	}
	return strings.Join(all, ", ")
})

// RequestHeads lists as Requests does, without what only one Request is shown with:
// programs and plans are left out, and arguments and reasons are cut.
func (s *Store) RequestHeads(ctx context.Context, org domain.OrganizationID, filter domain.RequestFilter, page domain.Page) ([]domain.Request, error) {
	return list(ctx, s, "list the heads of Requests", headOf, func(db *gorm.DB) *gorm.DB {
		return pagedRequests(db.Select(headColumns(), headText, headText), org, filter, page)
	})
}

// headOf takes a row whose arguments may be cut: they are text to look at, no JSON.
func headOf(row requestRow) domain.Request { return row.domain() }

// CountRequests counts Requests that fit the filter, up to atMost.
func (s *Store) CountRequests(ctx context.Context, org domain.OrganizationID, filter domain.RequestFilter, atMost int) (int, error) {
	var ids []domain.RequestID
	db, limit := s.read(ctx), atLeastOne(atMost)
	rows := filterRequests(db.Model(&requestRow{}), org, filter)
	if filter.Approver != "" {
		own, passed := answerable(db, org, filter, func(half *gorm.DB) *gorm.DB { return half.Limit(limit) })
		rows = db.Session(&gorm.Session{NewDB: true}).Table("(SELECT id FROM (?) AS own UNION ALL SELECT id FROM (?) AS passed) AS waiting", own, passed)
	}
	err := rows.Limit(limit).Pluck("id", &ids).Error
	return len(ids), s.wrap(ctx, "count Requests", err)
}

// AllowedLike gives allowed Requests of the same Bot, Member and capability among the
// last ones of that Bot before this one, newest first. It looks no further, so that
// it costs the same however many Requests a Bot made.
func (s *Store) AllowedLike(ctx context.Context, r domain.Request, limit int) ([]domain.Request, error) {
	return list(ctx, s, "find equal Requests", requestRow.domain, func(db *gorm.DB) *gorm.DB {
		recent := db.Session(&gorm.Session{NewDB: true}).Table("requests").Select("id").
			Where("bot_id = ? AND id < ?", r.Bot, r.ID).Order("id DESC").Limit(likeWindow)
		return db.Where("id IN (SELECT id FROM (?) AS recent)", recent).
			Where("member_id = ? AND action = ? AND target = ? AND status = 'allowed'", r.Member, clean(r.Capability.Action), clean(r.Capability.Target)).
			Order("id DESC").Limit(atLeastOne(limit))
	})
}

type nameRow struct {
	ID   string
	Name string
}

// Names gives the names of these Bots and Connections of an organization, deleted
// ones included.
func (s *Store) Names(ctx context.Context, org domain.OrganizationID, bots []domain.BotID, connections []domain.ConnectionID) (domain.Names, error) {
	names := domain.Names{Bots: map[domain.BotID]string{}, Connections: map[domain.ConnectionID]string{}}
	var questions []question
	namesIn := func(table string, ids any, take func(nameRow)) {
		questions = append(questions, asking("read names", func(db *gorm.DB) *gorm.DB {
			return db.Table(table).Select("id, name").Where("id IN ? AND organization_id = ?", ids, org)
		}, func(rows []nameRow) error {
			for _, row := range rows {
				take(row)
			}
			return nil
		}))
	}
	if len(bots) > 0 {
		namesIn("bots", bots, func(r nameRow) { names.Bots[domain.BotID(r.ID)] = r.Name })
	}
	if len(connections) > 0 {
		namesIn("connections", connections, func(r nameRow) { names.Connections[domain.ConnectionID(r.ID)] = r.Name })
	}
	if len(questions) == 0 {
		return names, nil
	}
	err := s.together(ctx, func(ask ask) error { return ask(questions...) })
	return names, err
}
