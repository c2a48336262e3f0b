package repository

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

var numberedTexts sync.Map // text to the same with numbered places

// numbered gives a statement the places that PostgreSQL knows: "?" becomes "$1" and so on.
// None of the texts has a "?" of another meaning.
func numbered(text string) string {
	if known, ok := numberedTexts.Load(text); ok {
		return known.(string)
	}
	var made strings.Builder
	rest := text
	for n := 1; ; n++ {
		before, after, found := strings.Cut(rest, "?")
		made.WriteString(before)
		if !found {
			break
		}
		made.WriteString("$" + strconv.Itoa(n))
		rest = after
	}
	numberedTexts.Store(text, made.String())
	return made.String()
}

// said is db.Raw for a statement whose text is one of few and whose arguments are no
// lists. Where statements are only built, GORM's own walk through the text, letter by
// letter, would be most of the work.
func said(db *gorm.DB, text string, args ...any) *gorm.DB {
	if !db.DryRun {
		return db.Raw(text, args...)
	}
	built := db.Raw("")
	built.Statement.SQL.WriteString(numbered(text))
	built.Statement.Vars = args
	return built
}

// done is db.Exec for the same.
func done(db *gorm.DB, text string, args ...any) *gorm.DB {
	if !db.DryRun {
		return db.Exec(text, args...)
	}
	built := said(db, text, args...)
	show(built)
	return built
}

// show tells the logger of a statement that was built, as GORM does when it runs one.
func show(built *gorm.DB) {
	if built.Logger == logger.Discard || built.Error != nil {
		return
	}
	built.Logger.Trace(built.Statement.Context, time.Now(), func() (string, int64) {
		return built.Explain(built.Statement.SQL.String(), built.Statement.Vars...), 0
	}, nil)
}
