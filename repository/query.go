package repository

import (
	"context"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"openbot/domain"
)

// defaultLimit is used where a caller gives no limit; no list is without one.
const defaultLimit = 100

func atLeastOne(limit int) int {
	if limit <= 0 {
		return defaultLimit
	}
	return limit
}

// one reads one row; not_found when there is none.
func one[R, D any](ctx context.Context, s *Store, what string, to func(R) D, query func(*gorm.DB) *gorm.DB) (D, error) {
	var found D
	limited := func(db *gorm.DB) *gorm.DB { return query(db).Limit(1) }
	err := s.together(ctx, func(ask ask) error {
		return ask(asking("read a "+what, limited, func(rows []R) error {
			if len(rows) == 0 {
				return notFound(what)
			}
			read(s.images, &rows[0])
			found = to(rows[0])
			return nil
		}))
	})
	return found, err
}

// list reads rows.
func list[R, D any](ctx context.Context, s *Store, attempt string, to func(R) D, query func(*gorm.DB) *gorm.DB) ([]D, error) {
	var found []D
	err := s.together(ctx, func(ask ask) error { return ask(askList(attempt, &found, to, query)) })
	return found, err
}

// paged narrows a list to a page, newest first.
func paged(db *gorm.DB, page domain.Page) *gorm.DB {
	if page.Before != "" {
		db = db.Where("id < ?", page.Before)
	}
	return db.Order("id DESC").Limit(atLeastOne(page.Limit))
}

// before is the same condition for hand-written SQL: it begins with AND, or is "".
func before(page domain.Page) (string, []any) {
	if page.Before == "" {
		return "", nil
	}
	return " AND id < ?", []any{page.Before}
}

var schemas sync.Map

// columns names every column of a row type under an alias, renamed with a prefix,
// so that one statement can give rows of several tables.
func columns[R any](alias, prefix string) string {
	s, err := schema.Parse(new(R), &schemas, schema.NamingStrategy{})
	if err != nil {
		panic("a row type cannot be read: " + err.Error())
	}
	names := make([]string, len(s.DBNames))
	for i, name := range s.DBNames {
		names[i] = alias + `."` + name + `" AS "` + prefix + name + `"`
	}
	return strings.Join(names, ", ")
}
