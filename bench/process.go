//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"openbot/bench/internal/child"
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
	ended, err := child.Start(p.cmd)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		<-ended // its log says how
		if !p.stopping.Load() {
			failed(fmt.Errorf("%s ended by itself: %s", name, p.lastLine()))
		}
	}()
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
