//go:build unix

package services

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// RedisOptions changes how Redis is started.
type RedisOptions struct {
	// AppendOnly keeps the data over Kill and Restart; without it they are lost.
	AppendOnly bool
}

// Redis is a Redis server of one's own. Its methods may be called from several
// goroutines.
type Redis struct {
	process  process
	remove   func() error
	port     string
	password string
}

// FindRedis gives the path of redis-server. Its error says what to install.
func FindRedis() (string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", errors.New("Redis is not installed: install it (Debian: apt-get install redis-server)")
	}
	return path, nil
}

// StartRedis starts Redis with its files in dir/redis, or in a new temporary folder
// when dir is empty, and returns when it answers. Stop ends it and removes its files.
func StartRedis(dir string, options RedisOptions) (*Redis, error) {
	program, err := FindRedis()
	if err != nil {
		return nil, err
	}
	folder, remove, err := folderFor(dir, "redis", nil)
	if err != nil {
		return nil, fmt.Errorf("Redis has no folder for its files: %w", err)
	}
	r := &Redis{remove: remove, password: rand.Text()}
	file := filepath.Join(folder, "redis.conf")
	r.process = process{
		name: "Redis", path: program, args: []string{file}, folder: folder,
		stopSignal: syscall.SIGTERM, deathSignal: syscall.SIGKILL,
		ready: r.answers,
	}
	err = withFreePort(func(port string) error {
		r.port = port
		if err := os.WriteFile(file, []byte(r.settings(options)), 0o600); err != nil {
			return err
		}
		return r.process.start()
	})
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return r, nil
}

func (r *Redis) settings(options RedisOptions) string {
	appendOnly := "no"
	if options.AppendOnly {
		appendOnly = "yes"
	}
	return strings.Join([]string{
		"bind 127.0.0.1", "port " + r.port, "requirepass " + r.password, "daemonize no",
		`save ""`, "appendonly " + appendOnly, "maxmemory-policy noeviction", "",
	}, "\n")
}

// answers asks in Redis' own protocol, so that no client library is needed.
func (r *Redis) answers(ctx context.Context) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+r.port)
	if err != nil {
		return err
	}
	defer connection.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = connection.SetDeadline(deadline)
	}
	if _, err := fmt.Fprintf(connection, "AUTH %s\r\nPING\r\n", r.password); err != nil {
		return err
	}
	reader := bufio.NewReader(connection)
	for _, want := range []string{"+OK\r\n", "+PONG\r\n"} {
		line, err := reader.ReadString('\n')
		if err != nil {
			return err
		}
		if line != want {
			return fmt.Errorf("Redis answered %q", strings.TrimSpace(line))
		}
	}
	return nil
}

// URL is the address of database 0.
func (r *Redis) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", r.password), Host: "127.0.0.1:" + r.port, Path: "/0"}
	return u.String()
}

// Kill ends the server at once, as a crash would.
func (r *Redis) Kill() { r.process.kill() }

// Restart ends the server in order if it runs, and starts it again on the same
// port. It returns when the server answers.
func (r *Redis) Restart() error { return r.process.restart() }

// Freeze lets the server hang: connections stay open and nothing answers.
func (r *Redis) Freeze() error { return r.process.freeze(true) }

// Thaw lets a frozen server go on.
func (r *Redis) Thaw() error { return r.process.freeze(false) }

// Fault says how the server ended when none of these methods had ended it, or is nil.
func (r *Redis) Fault() error { return r.process.fault() }

// Stop ends the server in order and removes its files. It may be called twice.
func (r *Redis) Stop() error {
	r.process.stop()
	return r.remove()
}
