//go:build unix && !linux

package services

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes puts a server into a group of its own, out of reach of Ctrl-C, as the
// given user. Without Linux nothing ends it when this process is killed.
func attributes(who *account, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: who.credential()}
}

// descendants lists the children of a process and theirs.
func descendants(root int) []int {
	output, _ := exec.Command("pgrep", "-P", strconv.Itoa(root)).Output()
	var found []int
	for _, word := range strings.Fields(string(output)) {
		if pid, err := strconv.Atoi(word); err == nil {
			found = append(append(found, pid), descendants(pid)...)
		}
	}
	return found
}

// isAlive reports whether there is such a process.
func isAlive(pid int) bool { return syscall.Kill(pid, 0) == nil }
