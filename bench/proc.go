//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of times in /proc: 100 a second on every Linux that Go runs
// on.
const clockTick = 10 * time.Millisecond

// procStat is the part of /proc/PID/stat that is used here.
type procStat struct {
	parent int
	own    time.Duration // of the process itself
	reaped time.Duration // of children that ended and were waited for
}

func statOf(pid int) (s procStat, err error) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, err
	}
	// The name before them is in brackets and may hold anything.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	if len(fields) < 15 {
		return s, fmt.Errorf("/proc/%d/stat cannot be read", pid)
	}
	number := func(field int) int64 {
		n, e := strconv.ParseInt(string(fields[field-3]), 10, 64) // proc(5) counts from pid
		if e != nil {
			err = e
		}
		return n
	}
	s.parent = int(number(4))
	s.own = time.Duration(number(14)+number(15)) * clockTick
	s.reaped = time.Duration(number(16)+number(17)) * clockTick
	return s, err
}

// tree lists a process and all below it, the process first.
func tree(root int) []int {
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if s, err := statOf(pid); err == nil {
			children[s.parent] = append(children[s.parent], pid)
		}
	}
	found := []int{root}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// cpuOf gives the CPU time that a process and everything below it has used, also
// what ended meanwhile.
func cpuOf(root int) (sum time.Duration, err error) {
	for i, pid := range tree(root) {
		s, e := statOf(pid)
		if e != nil && i == 0 {
			return 0, e
		}
		sum += s.own + s.reaped
	}
	return sum, nil
}

// memoryOf gives the resident memory in bytes: that of the process when it is alone,
// and else the proportional share of the whole tree, so that what its processes
// share counts once.
func memoryOf(root int) int64 {
	pids := tree(root)
	if len(pids) == 1 {
		return kilobytes(fmt.Sprintf("/proc/%d/status", root), "VmRSS:")
	}
	var sum int64
	for _, pid := range pids {
		sum += kilobytes(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:")
	}
	return sum
}

// kilobytes reads one value of a file of /proc, in bytes.
func kilobytes(file, key string) int64 {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// hostBusy gives the CPU time that all cores were not idle.
func hostBusy() time.Duration {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(content), "\n")
	var sum int64
	for i, field := range strings.Fields(first) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // name, idle, iowait, guests (counted in user)
			continue
		}
		n, _ := strconv.ParseInt(field, 10, 64)
		sum += n
	}
	return time.Duration(sum) * clockTick
}

// ownCPU gives the CPU time of this program, which is the load.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// loadAverage gives the machine's load of the last minute.
func loadAverage() float64 {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(content), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}
