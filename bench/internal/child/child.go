//go:build linux

// Package child starts the processes of load programs. They end with whoever started
// them, however that ends, and Ctrl-C does not reach them.
package child

import (
	"net"
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts a command in a group of its own. ended is closed when it has ended; how it
// did stands in its ProcessState. An error means that it was not started.
func Start(command *exec.Cmd) (ended <-chan struct{}, err error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		// The death signal comes when the starting thread ends, so that thread is kept.
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
	}()
	return over, <-started
}

// FreeAddress gives a loopback address that was free a moment ago.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
