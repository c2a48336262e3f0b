//go:build unix

// Package services starts PostgreSQL and Redis for tests, benchmarks and fault
// trials, each on a free loopback port with its files in a folder of its own, and
// stops, kills, freezes and restarts them.
//
// It owns the processes that it started and their files. It never touches a server
// that was running before, and nothing of the product imports it.
package services

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 20 * time.Second
	pollInterval = 20 * time.Millisecond
)

// process is one server that can be started again after it has ended.
type process struct {
	name        string
	path        string
	args        []string
	folder      string // working folder; also holds the log
	account     *account
	stopSignal  syscall.Signal // ends it in order
	deathSignal syscall.Signal // sent by the kernel when the starter dies
	ready       func(context.Context) error

	mu      sync.Mutex
	running *exec.Cmd
	ended   chan struct{}
	frozen  bool
}

func (p *process) logPath() string { return p.folder + ".log" }

// start starts the server and waits until it answers.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.startLocked()
}

func (p *process) startLocked() error {
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(p.path, p.args...)
	command.Dir = p.folder
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = attributes(p.account, p.deathSignal)

	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel sends the death signal when the starting thread ends, so that
		// thread is kept for as long as the server lives.
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // how it ended stands in its log
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%s cannot be started: %w", p.name, err)
	}
	p.running, p.ended, p.frozen = command, ended, false
	if err := p.awaitReady(); err != nil {
		p.killLocked()
		return err
	}
	return nil
}

func (p *process) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended at its start: %s", p.name, p.lastLine())
		case <-ctx.Done():
			return fmt.Errorf("%s did not answer within %v: %w", p.name, startTimeout, err)
		case <-ticker.C:
		}
	}
}

func (p *process) lastLine() string {
	content, _ := os.ReadFile(p.logPath())
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(lines[len(lines)-1])
}

// fault says how the server ended when nobody had asked it to, or is nil.
func (p *process) fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return nil
	}
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended by itself (%v): %s", p.name, p.running.ProcessState, p.lastLine())
	default:
		return nil
	}
}

// kill ends the server and its children at once, as a crash would.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killLocked()
}

func (p *process) killLocked() {
	if p.running == nil {
		return
	}
	pid := p.running.Process.Pid
	// The children of PostgreSQL have sessions of their own: no group holds them.
	// They are listed while their parent still is.
	children := descendants(pid)
	for _, one := range append([]int{pid}, children...) {
		_ = syscall.Kill(one, syscall.SIGKILL)
	}
	<-p.ended
	p.running = nil
	p.awaitGone(children)
}

// awaitGone waits for children whose memory would keep a new server from starting.
func (p *process) awaitGone(pids []int) {
	deadline := time.Now().Add(stopTimeout)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for _, pid := range pids {
		for isAlive(pid) && time.Now().Before(deadline) {
			<-ticker.C
		}
	}
}

// stop ends the server in order, or by force when that takes too long.
func (p *process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopLocked()
}

func (p *process) stopLocked() {
	if p.running == nil {
		return
	}
	if p.frozen {
		p.signalAll(syscall.SIGCONT)
	}
	_ = p.running.Process.Signal(p.stopSignal)
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.ended:
		p.running = nil
	case <-timer.C:
		p.killLocked()
	}
}

func (p *process) restart() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopLocked()
	return p.startLocked()
}

// freeze stops the server and its children where they are; connections stay open
// and nothing answers.
func (p *process) freeze(frozen bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return fmt.Errorf("%s does not run", p.name)
	}
	signal := syscall.SIGCONT
	if frozen {
		signal = syscall.SIGSTOP
	}
	p.signalAll(signal)
	p.frozen = frozen
	return nil
}

func (p *process) signalAll(signal syscall.Signal) {
	pid := p.running.Process.Pid
	_ = syscall.Kill(pid, signal)
	for _, child := range descendants(pid) {
		_ = syscall.Kill(child, signal)
	}
}

// withFreePort gives start a port that was free a moment ago, and another one when
// it was taken meanwhile.
func withFreePort(start func(port string) error) error {
	var last error
	for range 3 {
		port, err := freePort()
		if err != nil {
			return err
		}
		if last = start(port); last == nil {
			return nil
		}
	}
	return last
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return strconv.Itoa(port), listener.Close()
}

// folderFor makes the folder of one server below parent, or below a new temporary
// folder when parent is empty. The returned function removes what was made.
func folderFor(parent, name string, who *account) (folder string, remove func() error, err error) {
	made := parent == ""
	if made {
		if parent, err = os.MkdirTemp("", "openbot-"+name+"-"); err != nil {
			return "", nil, err
		}
	}
	folder = parent + string(os.PathSeparator) + name
	remove = func() error {
		if made {
			return os.RemoveAll(parent)
		}
		return errors.Join(os.RemoveAll(folder), os.RemoveAll(folder+".log"))
	}
	err = errors.Join(os.Mkdir(folder, 0o700), who.takeOver(folder))
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return folder, remove, nil
}
