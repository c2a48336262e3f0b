package services

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// attributes puts a server into a group of its own, out of reach of Ctrl-C, as the
// given user, and has the kernel end it when this process dies in whatever way.
func attributes(who *account, death syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: who.credential(), Pdeathsig: death}
}

// descendants lists the children of a process and theirs.
func descendants(root int) []int {
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if _, parent, ok := stat(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	var found []int
	for next := children[root]; len(next) > 0; next = next[1:] {
		found = append(found, next[0])
		next = append(next, children[next[0]]...)
	}
	return found
}

// isAlive reports whether a process still holds anything; one that only waits to be
// collected does not.
func isAlive(pid int) bool {
	state, _, ok := stat(pid)
	return ok && state != 'Z' && state != 'X'
}

// stat reads state and parent. The name before them is in brackets and may hold
// anything, so reading starts at the last bracket.
func stat(pid int) (state byte, parent int, ok bool) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return fields[0][0], parent, err == nil
}
