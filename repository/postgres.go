package repository

import (
	"context"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"openbot/domain"
)

const (
	// connectTimeout bounds the making of a connection when the URL does not.
	connectTimeout = 5 * time.Second
	// connLifetime makes connections anew, so that they spread over servers that came
	// back.
	connLifetime = 30 * time.Minute
	connIdleTime = 5 * time.Minute
)

func (s *Store) openPostgres(ctx context.Context, o Options) error {
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return domain.Wrap(domain.CodeInvalid, "DatabaseURL",
			"The database URL cannot be read. It looks like postgres://user:password@host:5432/name.", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "openbot"
	}
	size := o.MaxConns
	if size <= 0 {
		size = max(8, 4*runtime.GOMAXPROCS(0))
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	pool.SetConnMaxLifetime(connLifetime)
	pool.SetConnMaxIdleTime(connIdleTime)
	s.pools = append(s.pools, pool)
	s.postgres = true

	if err := pool.PingContext(ctx); err != nil {
		return s.wrap(ctx, "open the database", err)
	}
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool, WithoutReturning: true}), gormConfig())
	if err != nil {
		return s.wrap(ctx, "open the database", err)
	}
	s.writer, s.reader = db, db
	return nil
}
