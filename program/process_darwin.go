package program

import (
	"os"
	"syscall"
)

func ownExecutable() (string, error) { return os.Executable() }

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
