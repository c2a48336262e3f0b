//go:build !linux && !darwin

package program

import (
	"os"
	"syscall"
	"time"
)

func ownExecutable() (string, error) { return os.Executable() }

func attributes() *syscall.SysProcAttr { return nil }

func kill(process *os.Process) error { return process.Kill() }

func renounce() error { return nil }

func limitProcessor(time.Duration) error { return nil }
