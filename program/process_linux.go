package program

import (
	"os"
	"syscall"
)

// ownExecutable gives a path that stays this very binary when the file is replaced
// while the server runs.
func ownExecutable() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
