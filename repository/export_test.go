package repository

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Watch shows a test every statement that the store sends, values filled in.
func (s *Store) Watch(saw func(query string)) {
	watched := &gorm.Session{Logger: watcher{logger.Discard, saw}}
	s.writer, s.reader = s.writer.Session(watched), s.reader.Session(watched)
}

type watcher struct {
	logger.Interface
	saw func(string)
}

func (w watcher) LogMode(logger.LogLevel) logger.Interface { return w }

func (w watcher) Trace(_ context.Context, _ time.Time, sql func() (string, int64), _ error) {
	query, _ := sql()
	w.saw(query)
}

// Plans gives the lines of the plan of a statement.
func (s *Store) Plans(ctx context.Context, query string) ([]string, error) {
	var lines []string
	if s.postgres {
		err := s.write(ctx).Raw("EXPLAIN " + query).Scan(&lines).Error
		return lines, err
	}
	var rows []struct{ Detail string }
	err := s.write(ctx).Raw("EXPLAIN QUERY PLAN " + query).Scan(&rows).Error
	for _, row := range rows {
		lines = append(lines, row.Detail)
	}
	return lines, err
}

// Exec runs a statement that no caller may.
func (s *Store) Exec(ctx context.Context, query string, args ...any) error {
	return s.write(ctx).Exec(query, args...).Error
}
