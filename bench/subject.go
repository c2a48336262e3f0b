//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"openbot/apps/appstest"
	"openbot/bench/internal/child"
	"openbot/build/testenv/services"
)

// subject is what is measured: the processes of the product and the servers that
// they need.
type subject struct {
	name    string
	client  *client
	app     *appstest.App
	watched []watched
	// answered counts the answers that were taken.
	answered atomic.Int64
	// database and redis ask the servers for their own counts; nil in one process.
	database *pgxpool.Pool
	redis    *redis.Client
	floor    floor
	members  []*member
	stops    []func() error // in the order of starting
}

// watched is one process, with those below it, whose CPU and memory count.
type watched struct {
	name string
	pid  int
}

// stop stops everything, last started first.
func (s *subject) stop() error {
	var faults []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		faults = append(faults, s.stops[i]())
	}
	s.stops = nil
	return errors.Join(faults...)
}

func (s *subject) onStop(stop func() error) { s.stops = append(s.stops, stop) }

// begin starts one process of the product as part of the subject.
func (b *bench) begin(s *subject, name, role string, env []string, failed context.CancelCauseFunc) error {
	m := &member{name: name, role: role, env: env, failed: failed}
	if err := b.startMember(m); err != nil {
		return err
	}
	s.onStop(func() error { return m.process.stop() })
	s.members = append(s.members, m)
	s.watched = append(s.watched, watched{name, m.process.cmd.Process.Pid})
	return nil
}

// environment gives a process of the product nothing but what is set here.
func environment(data, address, token string, more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + data, "OPENBOT_DATA=" + data, "OPENBOT_LISTEN=" + address,
		"OPENBOT_TOKEN=" + token, "OPENBOT_APPS_ALLOW_PRIVATE=true"}, more...)
}

// newToken gives a token as long as a server asks for.
func newToken() string { return rand.Text() + rand.Text() }

// startServe starts everything in one process, on SQLite.
func (b *bench) startServe(ctx context.Context, failed context.CancelCauseFunc) (*subject, error) {
	s := &subject{name: "serve with SQLite"}
	address, err := child.FreeAddress()
	if err != nil {
		return s, err
	}
	data := filepath.Join(b.folder, "serve")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return s, err
	}
	b.say("starting %s", s.name)
	if s.floor, err = newFileFloor(filepath.Join(data, "floor.db")); err != nil {
		return s, err
	}
	s.onStop(s.floor.close)
	token := newToken()
	if err := b.begin(s, "serve", "serve", environment(data, address, token), failed); err != nil {
		return s, err
	}
	s.client = newClient("http://"+address, token)
	return s, s.client.awaitReady(ctx)
}

// startRoles starts PostgreSQL, Redis and one process of each role, or more
// workers.
func (b *bench) startRoles(ctx context.Context, failed context.CancelCauseFunc) (*subject, error) {
	s := &subject{name: fmt.Sprintf("PostgreSQL, Redis, 1 api, %d worker, 1 scheduler", b.workers)}
	b.say("starting %s", s.name)
	database, err := b.startServers(ctx, s)
	if err != nil {
		return s, err
	}
	token, address := newToken(), ""
	more := []string{"DATABASE_URL=" + database, "REDIS_URL=" + redisURL(s.redis), "OPENBOT_SECRET_KEY=" + newToken()}
	migrate := exec.CommandContext(ctx, b.binary, "migrate", "up")
	migrate.Env = environment(b.folder, "127.0.0.1:0", token, more...)
	if output, err := migrate.CombinedOutput(); err != nil {
		return s, fmt.Errorf("openbot migrate up: %w: %s", err, strings.TrimSpace(string(output)))
	}
	if address, err = child.FreeAddress(); err != nil {
		return s, err
	}
	roles := []struct{ name, role, address string }{{"api", "api", address}}
	for i := range b.workers {
		name := "worker"
		if b.workers > 1 {
			name = fmt.Sprint("worker ", i+1)
		}
		roles = append(roles, struct{ name, role, address string }{name, "worker", "127.0.0.1:0"})
	}
	roles = append(roles, struct{ name, role, address string }{"scheduler", "scheduler", "127.0.0.1:0"})
	for _, r := range roles {
		data := filepath.Join(b.folder, "data of "+r.name)
		if err := os.MkdirAll(data, 0o700); err != nil {
			return s, err
		}
		if err := b.begin(s, r.name, r.role, environment(data, r.address, token, more...), failed); err != nil {
			return s, err
		}
	}
	s.client = newClient("http://"+address, token)
	return s, s.client.awaitReady(ctx)
}

// startServers starts PostgreSQL and Redis as they run in production, and gives the
// address of a new database.
func (b *bench) startServers(ctx context.Context, s *subject) (string, error) {
	var (
		group    sync.WaitGroup
		postgres *services.Postgres
		keeper   *services.Redis
		faults   [2]error
	)
	group.Go(func() {
		postgres, faults[0] = services.StartPostgres(b.folder, services.PostgresOptions{Durable: true})
	})
	group.Go(func() { keeper, faults[1] = services.StartRedis(b.folder, services.RedisOptions{AppendOnly: true}) })
	group.Wait()
	if faults[0] == nil {
		s.onStop(postgres.Stop)
	}
	if faults[1] == nil {
		s.onStop(keeper.Stop)
	}
	if err := errors.Join(faults[:]...); err != nil {
		return "", err
	}
	options, err := redis.ParseURL(keeper.URL())
	if err != nil {
		return "", err
	}
	s.redis = redis.NewClient(options)
	s.onStop(s.redis.Close)
	if b.statements > 0 {
		if err := countStatements(ctx, postgres); err != nil {
			return "", err
		}
	}
	database, err := postgres.NewDatabase("openbot")
	if err != nil {
		return "", err
	}
	if err := b.watchServers(ctx, s, database); err != nil {
		return "", err
	}
	address, err := postgres.NewDatabase("floor")
	if err != nil {
		return "", err
	}
	if s.floor, err = newServerFloor(ctx, address, b.clients); err != nil {
		return "", err
	}
	s.onStop(s.floor.close)
	return database, nil
}

// watchServers learns the processes of both servers from the servers themselves.
func (b *bench) watchServers(ctx context.Context, s *subject, database string) error {
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return err
	}
	config.MaxConns = 1
	config.ConnConfig.RuntimeParams["application_name"] = "bench"
	if s.database, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	s.onStop(func() error { s.database.Close(); return nil })
	var backend int
	var version string
	err = s.database.QueryRow(ctx, "SELECT pg_backend_pid(), current_setting('server_version')").Scan(&backend, &version)
	if err != nil {
		return err
	}
	stat, err := statOf(backend)
	if err != nil {
		return err
	}
	info, err := s.redisInfo(ctx, "server")
	if err != nil {
		return err
	}
	keeper := 0
	if _, err := fmt.Sscan(info["process_id"], &keeper); err != nil {
		return fmt.Errorf("Redis does not say its process: %w", err)
	}
	s.watched = append(s.watched, watched{"PostgreSQL", stat.parent}, watched{"Redis", keeper})
	version, _, _ = strings.Cut(version, " ")
	b.report.Servers = map[string]string{"PostgreSQL": version, "Redis": info["redis_version"]}
	return nil
}

// redisInfo reads one part of what Redis says about itself.
func (s *subject) redisInfo(ctx context.Context, part string) (map[string]string, error) {
	text, err := s.redis.Info(ctx, part).Result()
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[key] = value
		}
	}
	return info, nil
}

func redisURL(c *redis.Client) string {
	o := c.Options()
	return fmt.Sprintf("redis://:%s@%s/%d", o.Password, o.Addr, o.DB)
}
