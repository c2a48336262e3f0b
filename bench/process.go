//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// stopTimeout is longer than a stop of the product may take.
const stopTimeout = 27 * time.Second

// process is one running process of the product.
type process struct {
	name  string
	log   string // path
	cmd   *exec.Cmd
	ended chan struct{}
	// stopping says that its end is wanted.
	stopping atomic.Bool
}

// startProcess starts the binary with a role. A process that ends before it is
// stopped gives its last words to failed.
func (b *bench) startProcess(name, role string, env []string, failed context.CancelCauseFunc) (*process, error) {
	p := &process{name: name, log: filepath.Join(b.folder, name+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(b.binary, role)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = b.folder, env, log, log
	// A group of its own, so that Ctrl-C reaches this program alone, which then stops
	// its children in order; and the kernel ends them when this program dies in
	// whatever way.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		defer close(p.ended)
		// The death signal comes when the starting thread ends, so that thread is kept.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait() // its log says how it ended
		if !p.stopping.Load() {
			failed(fmt.Errorf("%s ended by itself: %s", name, p.lastLine()))
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", name, err)
	}
	return p, nil
}

func (p *process) lastLine() string {
	content, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return lines[len(lines)-1]
}

// stop asks the process to end, and ends it when that takes too long.
func (p *process) stop() error {
	p.stopping.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not stop within %s and was killed", p.name, stopTimeout)
	}
}

// freeAddress gives an address that was free a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
