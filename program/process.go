package program

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"runtime"
	"time"
)

const (
	// maxComplaint is how much of a child's standard error is read, in bytes.
	maxComplaint = 8 << 10
	// closeAfter is how long pipes of a child that ended may stay open.
	closeAfter = time.Second
)

// child starts a child, gives it the request and waits for its end. It inherits
// nothing: no environment, no files but its three pipes, and a group of its own.
func (r *Runner) child(ctx context.Context, request []byte, earlier Trace) (Outcome, error) {
	// On Linux the child dies with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	timed, cancel := context.WithTimeout(ctx, r.limits.Time)
	defer cancel()
	reply := &bounded{limit: r.limits.reply()}
	complaint := &bounded{limit: maxComplaint}
	cmd := exec.CommandContext(timed, r.executable)
	cmd.Args = []string{"openbot", ChildArgument}
	// UTC whatever the server's zone, so that dates are the same on each of them.
	// A child under the race detector would stay for a second after its end.
	cmd.Env = []string{"TZ=UTC", "GOMAXPROCS=1", "GOTRACEBACK=single", "GORACE=atexit_sleep_ms=0"}
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), reply, complaint
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return kill(cmd.Process) }
	cmd.WaitDelay = closeAfter
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return Outcome{}, unavailable("The program could not be run.", err)
	}
	return r.outcome(ctx, timed, cmd.Wait(), reply, complaint, earlier)
}

// neverStarted reports whether a child ended before it ran anything.
func neverStarted(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() >= exitRenounce
}

// killed reports whether a child was killed, and so by the system, which does that to
// what takes too much memory.
func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ProcessState != nil && !exit.Exited()
}
