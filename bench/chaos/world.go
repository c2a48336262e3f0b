//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"openbot/apps/appstest"
	"openbot/bench/internal/child"
	"openbot/build/testenv/services"
)

// process is one process of the product, which is started again after it is killed.
type process struct {
	name, role string
	env        []string
	folder     string
	mu         sync.Mutex // two strikes may hit it at once
	cmd        *exec.Cmd
	ended      <-chan struct{}
}

// start starts the process unless it runs.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs() {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(p.folder, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.env[0], p.role)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.env[1:], p.folder, log, log
	ended, err := child.Start(cmd)
	if err != nil {
		return err
	}
	p.cmd, p.ended = cmd, ended
	return nil
}

// runs reports whether the process has not ended. p.mu is held.
func (p *process) runs() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs() {
		_ = p.cmd.Process.Signal(s)
	}
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		<-p.ended
	}
}

// world is everything that runs.
type world struct {
	folder, binary string
	env            []string // of commands
	postgres       *services.Postgres
	keeper         *services.Redis
	redis          *redis.Client
	wire           *wire // to PostgreSQL
	app            *appstest.App
	gate           *gate // to the App
	model          *recorder
	connection     string // to the App
	processes      []*process
	clients        []*client // one for each api
}

func startWorld(ctx context.Context, folder, binary string, record *record) (*world, error) {
	w := &world{folder: folder, binary: binary}
	var err error
	if w.app, err = appstest.Start("127.0.0.1:0"); err != nil {
		return w, err
	}
	if w.gate, err = startGate(w.app.URL); err != nil {
		return w, err
	}
	if w.model, err = startRecorder(record); err != nil {
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
	where, err := url.Parse(database)
	if err != nil {
		return w, err
	}
	if w.wire, err = startWire(where.Host); err != nil {
		return w, err
	}
	where.Host = w.wire.address()
	token := rand.Text() + rand.Text()
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "OPENBOT_TOKEN=" + token, "OPENBOT_APPS_ALLOW_PRIVATE=true",
		"DATABASE_URL=" + where.String(), "OPENAI_API_KEY=sk-chaos", "OPENAI_BASE_URL=" + w.model.url, "REDIS_URL=" + w.keeper.URL(), "OPENBOT_SECRET_KEY=" + rand.Text() + rand.Text()}
	if out, err := w.command(ctx, "migrate", "up"); err != nil {
		return w, fmt.Errorf("openbot migrate up: %w: %s", err, out)
	}
	for i, role := range []string{"api", "api", "worker", "worker", "worker", "scheduler", "scheduler"} {
		listen := "127.0.0.1:0"
		if role == "api" {
			if listen, err = child.FreeAddress(); err != nil {
				return w, err
			}
			w.clients = append(w.clients, newClient("http://"+listen, token, record))
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
	var made struct {
		ID     string
		Health struct{ Status string }
	}
	err = w.clients[0].insist(ctx, time.Minute, "POST", "/v1/connections",
		object{"name": "desk", "transport": "http", "url": w.gate.url}, &made)
	if err == nil && made.Health.Status != "ok" {
		err = fmt.Errorf("the App is not reached: its health is %q", made.Health.Status)
	}
	w.connection = made.ID
	return w, err
}

// role gives the processes of a role.
func (w *world) role(role string) []*process {
	return slices.DeleteFunc(slices.Clone(w.processes), func(p *process) bool { return p.role != role })
}

// killRole kills the processes of a role, or the one of them that is named by its number,
// and then starts them again.
func (w *world) killRole(role string, only ...int) error {
	killed := w.role(role)
	if len(only) > 0 {
		killed = killed[only[0] : only[0]+1]
	}
	for _, p := range killed {
		p.kill()
	}
	var faults []error
	for _, p := range killed {
		faults = append(faults, p.start())
	}
	return errors.Join(faults...)
}

// command runs the binary once and gives what it said.
func (w *world) command(ctx context.Context, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, w.binary, arguments...)
	cmd.Env, cmd.Dir = slices.Concat(w.env, []string{"OPENBOT_DATA=" + w.folder}), w.folder
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// heal brings everything back that a strike left down.
func (w *world) heal(ctx context.Context) error {
	w.wire.set(wireWhole)
	w.gate.how.Store(appWell)
	w.model.how.Store(modelWell)
	faults := []error{w.keeper.Thaw(), w.postgres.Thaw(), w.redis.ConfigSet(ctx, "maxmemory", "0").Err()}
	for _, p := range w.processes {
		p.signal(syscall.SIGCONT)
		faults = append(faults, p.start())
	}
	return errors.Join(faults...)
}

// tend starts what ended by itself, as whoever runs the program would, until ctx ends.
func (w *world) tend(ctx context.Context, record *record) {
	for ctx.Err() == nil {
		if err := w.tendOnce(); err != nil {
			record.breach("strike", "a process cannot be started: %v", err)
		}
		wait(ctx, time.Second)
	}
}

func (w *world) tendOnce() error {
	var faults []error
	for _, p := range w.processes {
		faults = append(faults, p.start())
	}
	return errors.Join(faults...)
}

// hear notes what the App wrote down.
func (w *world) hear(r *record) {
	for _, receipt := range w.app.Receipts() {
		p, ok := partIn(receipt.Arguments)
		if !ok {
			r.breach(undecided, "the App was called with %s", receipt.Arguments)
			continue
		}
		add(r, &r.arrivals, arrival{p, receipt.At})
	}
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
	if w.wire != nil {
		w.wire.close()
	}
	if w.postgres != nil {
		_ = w.postgres.Stop()
	}
	if w.model != nil {
		w.model.close()
	}
	if w.gate != nil {
		w.gate.close()
	}
	if w.app != nil {
		w.app.Close()
	}
}
