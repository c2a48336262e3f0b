//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"openbot/build/testenv/services"
)

// countStatements makes PostgreSQL count its statements; that takes a restart.
func countStatements(ctx context.Context, server *services.Postgres) error {
	connection, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
	if err := errors.Join(err, connection.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return server.Restart()
}

// resetStatements begins to count anew.
func (s *subject) resetStatements(ctx context.Context) error {
	if _, err := s.database.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
		return err
	}
	if _, err := s.database.Exec(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
		return err
	}
	return s.redis.ConfigResetStat(ctx).Err()
}

// showStatements lists what both servers were asked since the reset: the statements
// that took most time, and the commands of Redis, for each of so many rounds.
func (s *subject) showStatements(ctx context.Context, to *section, limit int, rounds int64) error {
	n := float64(rounds)
	rows, err := s.database.Query(ctx, `SELECT calls, total_exec_time, rows, query FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY total_exec_time DESC`)
	if err != nil {
		return err
	}
	defer rows.Close()
	list := listing{Name: "statements by time: calls a round, ms each, ms a round, rows each"}
	var calls, total float64
	for i := 0; rows.Next(); i++ {
		var count, got int64
		var spent float64
		var query string
		if err := rows.Scan(&count, &spent, &got, &query); err != nil {
			return err
		}
		calls, total = calls+float64(count), total+spent
		if i < limit {
			text := strings.Join(strings.Fields(query), " ")
			list.Lines = append(list.Lines, fmt.Sprintf("%6.2f  %7.3f  %7.3f  %5.1f  %.160s", float64(count)/n, spent/float64(count), spent/n,
				float64(got)/float64(count), text))
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	list.Lines = append(list.Lines, fmt.Sprintf("%6.2f  all statements, %.3f ms a round", calls/n, total/n))
	to.Tables = append(to.Tables, list)

	info, err := s.redisInfo(ctx, "commandstats")
	if err != nil {
		return err
	}
	commands := listing{Name: "commands of Redis: calls a round, microseconds a round (scripts count their own commands too)"}
	for _, name := range sortedKeys(info) {
		var count, usec float64
		if _, err := fmt.Sscanf(info[name], "calls=%f,usec=%f", &count, &usec); err == nil && count/n >= 0.05 {
			commands.Lines = append(commands.Lines, fmt.Sprintf("%6.2f  %7.1f  %s", count/n, usec/n, strings.TrimPrefix(name, "cmdstat_")))
		}
	}
	to.Tables = append(to.Tables, commands)
	return nil
}
