//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"openbot/apps/appstest"
	"openbot/build/testenv/services"
)

// process is one process of the product, which is started again after it is killed.
type process struct {
	name, role string
	env        []string
	folder     string
	cmd        *exec.Cmd
	ended      chan struct{}
}

func (p *process) start() error {
	log, err := os.OpenFile(filepath.Join(p.folder, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, ended, started := exec.Command(p.env[0], p.role), make(chan struct{}), make(chan error, 1)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.env[1:], p.folder, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	go func() {
		defer close(ended)
		runtime.LockOSThread() // the death signal comes when the starting thread ends
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.cmd, p.ended = cmd, ended
	return nil
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

func (p *process) kill() {
	if p.cmd != nil {
		p.signal(syscall.SIGKILL)
		<-p.ended
	}
}

// revive starts the process again when it has ended.
func (p *process) revive() error {
	select {
	case <-p.ended:
		return p.start()
	default:
		p.signal(syscall.SIGCONT)
		return nil
	}
}

// world is everything that runs.
type world struct {
	folder, binary string
	env            []string // of commands
	postgres       *services.Postgres
	keeper         *services.Redis
	redis          *redis.Client
	app            *appstest.App
	processes      []*process
	clients        []*client // one for each api
}

func startWorld(ctx context.Context, folder, binary string) (*world, error) {
	w := &world{folder: folder, binary: binary}
	var err error
	if w.app, err = appstest.Start("127.0.0.1:0"); err != nil {
		return w, err
	}
	if w.postgres, err = services.StartPostgres(folder, services.PostgresOptions{Durable: true}); err != nil {
		return w, err
	}
	if w.keeper, err = services.StartRedis(folder, services.RedisOptions{AppendOnly: true}); err != nil {
		return w, err
	}
	address, err := redis.ParseURL(w.keeper.URL())
	if err != nil {
		return w, err
	}
	w.redis = redis.NewClient(address)
	database, err := w.postgres.NewDatabase("openbot")
	if err != nil {
		return w, err
	}
	token := rand.Text() + rand.Text()
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "OPENBOT_TOKEN=" + token, "OPENBOT_APPS_ALLOW_PRIVATE=true",
		"DATABASE_URL=" + database, "REDIS_URL=" + w.keeper.URL(), "OPENBOT_SECRET_KEY=" + rand.Text() + rand.Text()}
	if out, err := w.command(ctx, "migrate", "up"); err != nil {
		return w, fmt.Errorf("openbot migrate up: %w: %s", err, out)
	}
	for i, role := range []string{"api", "api", "worker", "worker", "worker", "scheduler", "scheduler"} {
		listen := "127.0.0.1:0"
		if role == "api" {
			if listen, err = freeAddress(); err != nil {
				return w, err
			}
			w.clients = append(w.clients, newClient("http://"+listen, token))
		}
		data := filepath.Join(folder, fmt.Sprint("data", i))
		if err := os.Mkdir(data, 0o700); err != nil {
			return w, err
		}
		p := &process{name: fmt.Sprint(role, i), role: role, folder: folder,
			env: append([]string{binary, "OPENBOT_DATA=" + data, "OPENBOT_LISTEN=" + listen}, w.env...)}
		if err := p.start(); err != nil {
			return w, err
		}
		w.processes = append(w.processes, p)
	}
	for _, c := range w.clients {
		if err := c.insist(ctx, time.Minute, "GET", "/v1/me", nil, nil); err != nil {
			return w, err
		}
	}
	var made struct{ Health struct{ Status string } }
	err = w.clients[0].insist(ctx, time.Minute, "POST", "/v1/connections",
		object{"name": "desk", "transport": "http", "url": w.app.URL}, &made)
	if err == nil && made.Health.Status != "ok" {
		err = fmt.Errorf("the App is not reached: its health is %q", made.Health.Status)
	}
	return w, err
}

// command runs the binary once and gives what it said.
func (w *world) command(ctx context.Context, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, w.binary, arguments...)
	cmd.Env, cmd.Dir = slices.Concat(w.env, []string{"OPENBOT_DATA=" + w.folder}), w.folder
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// heal brings everything back that a strike left down.
func (w *world) heal() error {
	faults := []error{}
	for _, p := range w.processes {
		faults = append(faults, p.revive())
	}
	return errors.Join(faults...)
}

func (w *world) stop() {
	for _, p := range w.processes {
		p.kill()
	}
	if w.redis != nil {
		_ = w.redis.Close()
	}
	if w.keeper != nil {
		_ = w.keeper.Stop()
	}
	if w.postgres != nil {
		_ = w.postgres.Stop()
	}
	if w.app != nil {
		w.app.Close()
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
