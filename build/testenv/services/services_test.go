//go:build unix

package services_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"openbot/build/testenv/services"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// ask runs one statement and gives the first value of its answer.
func ask(ctx context.Context, address, statement string) (string, error) {
	connection, err := pgconn.Connect(ctx, address)
	if err != nil {
		return "", err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	results, err := connection.Exec(ctx, statement).ReadAll()
	if err != nil || len(results) == 0 || len(results[len(results)-1].Rows) == 0 {
		return "", err
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPostgresKeepsWhatWasCommittedOverACrash(t *testing.T) {
	folder := t.TempDir()
	server, err := services.StartPostgres(folder, services.PostgresOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	address, err := server.NewDatabase(`odd "name"`)
	must(t, err)
	ctx := within(t, time.Minute)

	_, err = ask(ctx, address, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
	must(t, err)
	// A backend at work must not outlive the crash and keep the files locked.
	busy, err := pgconn.Connect(ctx, address)
	must(t, err)
	defer busy.Close(ctx)
	server.Kill()
	if _, err := ask(ctx, address, "SELECT 1"); err == nil {
		t.Fatal("a killed server answered")
	}
	if _, err := busy.Exec(ctx, "SELECT 1").ReadAll(); err == nil {
		t.Fatal("a child of the killed server answered")
	}
	server.Kill() // a second one changes nothing

	must(t, server.Restart())
	if got, err := ask(ctx, address, "SELECT n FROM kept"); err != nil || got != "7" {
		t.Errorf("got %q and %v, want what was committed", got, err)
	}
	must(t, server.Restart())
	if got, err := ask(ctx, address, "SHOW max_connections"); err != nil || got != "200" {
		t.Errorf("got %q and %v, want 200", got, err)
	}

	must(t, server.Stop())
	must(t, server.Stop())
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("%v were left behind, %v", left, err)
	}
}

func TestPostgresAsksForThePassword(t *testing.T) {
	server, err := services.StartPostgres("", services.PostgresOptions{Durable: true, MaxConnections: 12})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	ctx := within(t, time.Minute)
	for setting, want := range map[string]string{"fsync": "on", "max_connections": "12", "listen_addresses": "127.0.0.1"} {
		if got, err := ask(ctx, server.URL(), "SHOW "+setting); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", setting, got, err, want)
		}
	}
	u, err := url.Parse(server.URL())
	must(t, err)
	u.User = url.UserPassword(u.User.Username(), "wrong")
	if _, err := ask(ctx, u.String(), "SELECT 1"); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("a wrong password gave %v", err)
	}
}

func TestAFrozenServerHangsAndGoesOn(t *testing.T) {
	database, err := services.StartPostgres("", services.PostgresOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, database.Stop()) })
	queue, err := services.StartRedis("", services.RedisOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, queue.Stop()) })
	client := redisClient(t, queue)
	connection, err := pgconn.Connect(within(t, time.Minute), database.URL())
	must(t, err)
	defer connection.Close(context.Background())

	must(t, database.Freeze())
	must(t, queue.Freeze())
	short := within(t, 200*time.Millisecond)
	if err := client.Ping(short).Err(); err == nil {
		t.Error("a frozen Redis answered")
	}
	if _, err := connection.Exec(short, "SELECT 1").ReadAll(); err == nil {
		t.Error("a frozen PostgreSQL answered")
	}
	must(t, database.Thaw())
	must(t, queue.Thaw())
	ctx := within(t, time.Minute)
	must(t, client.Ping(ctx).Err())
	_, err = ask(ctx, database.URL(), "SELECT 1")
	must(t, err)

	must(t, database.Freeze()) // and Stop still ends it
	must(t, database.Stop())
	if err := database.Freeze(); err == nil {
		t.Error("a stopped server was frozen")
	}
}

func redisClient(t *testing.T, server *services.Redis) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(server.URL())
	must(t, err)
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

func TestRedisForgetsOrKeeps(t *testing.T) {
	for name, keeps := range map[string]bool{"in memory": false, "append-only": true} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			server, err := services.StartRedis(folder, services.RedisOptions{AppendOnly: keeps})
			must(t, err)
			t.Cleanup(func() { must(t, server.Stop()) })
			client, ctx := redisClient(t, server), within(t, time.Minute)
			must(t, client.Set(ctx, "a", "b", 0).Err())
			server.Kill()
			must(t, server.Restart())
			if found, err := client.Exists(ctx, "a").Result(); err != nil || (found == 1) != keeps {
				t.Errorf("found %d and %v", found, err)
			}
			policy, err := client.ConfigGet(ctx, "maxmemory-policy").Result()
			if err != nil || policy["maxmemory-policy"] != "noeviction" {
				t.Errorf("got %v and %v", policy, err)
			}
			must(t, server.Stop())
			if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
				t.Errorf("%v were left behind, %v", left, err)
			}
		})
	}
}

func TestOnlyLoopbackWithAPassword(t *testing.T) {
	server, err := services.StartRedis("", services.RedisOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	u, err := url.Parse(server.URL())
	must(t, err)
	if host, _, err := net.SplitHostPort(u.Host); err != nil || host != "127.0.0.1" {
		t.Errorf("it stands on %q, %v", host, err)
	}
	client := redis.NewClient(&redis.Options{Addr: u.Host})
	defer client.Close()
	if err := client.Ping(within(t, time.Minute)).Err(); err == nil {
		t.Error("it answers without the password")
	}
}

func TestAFolderThatCannotBeUsedIsNamed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "absent")
	if server, err := services.StartRedis(folder, services.RedisOptions{}); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("got %v and %v, want a fault that names the folder", server, err)
	}
	if server, err := services.StartPostgres(folder, services.PostgresOptions{}); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("got %v and %v, want a fault that names the folder", server, err)
	}
}

func TestAServerThatEndsByItselfSaysSo(t *testing.T) {
	server, err := services.StartRedis("", services.RedisOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	must(t, server.Fault())
	ctx := within(t, time.Minute)
	_ = redisClient(t, server).ShutdownNoSave(ctx).Err() // the answer is a cut connection
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for server.Fault() == nil {
		select {
		case <-ctx.Done():
			t.Fatal("nothing says that Redis has ended")
		case <-ticker.C:
		}
	}
	must(t, server.Restart())
	must(t, server.Fault())
	server.Kill()
	must(t, server.Fault()) // it was asked to
}
