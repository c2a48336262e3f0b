//go:build linux || darwin

package program

import (
	"os"
	"syscall"
	"time"
)

// kill ends a child and whatever it may have started.
func kill(process *os.Process) error { return syscall.Kill(-process.Pid, syscall.SIGKILL) }

// renounce gives up, for the rest of this process, what no program needs: opening
// anything, writing a file, leaving a core, and more than a minute. The pipes that are
// open stay so.
func renounce() error {
	// The Go runtime opens what its timers need with the first of them, which must be
	// now: it dies when it cannot.
	time.AfterFunc(time.Minute, func() { os.Exit(exitAlone) })
	return setLimits(map[int]uint64{
		syscall.RLIMIT_NOFILE: 0,
		syscall.RLIMIT_FSIZE:  0,
		syscall.RLIMIT_CORE:   0,
		syscall.RLIMIT_CPU:    60,
	})
}

// limitProcessor ends this process soon after its time is up even if its parent
// cannot.
func limitProcessor(limit time.Duration) error {
	return setLimits(map[int]uint64{syscall.RLIMIT_CPU: min(60, uint64(limit/time.Second)+2)})
}

func setLimits(limits map[int]uint64) error {
	for resource, most := range limits {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}
