package main

import (
	"os"
	"syscall"
)

// inMemory gives a new folder in memory, or "" where there is none with room and
// programs in it may not run.
func inMemory() (folder string, remove func()) {
	const shared, room = "/dev/shm", 4 << 30
	var stat syscall.Statfs_t
	const noexec = 8 // ST_NOEXEC, see statfs(2)
	if syscall.Statfs(shared, &stat) != nil || stat.Flags&noexec != 0 || stat.Bavail*uint64(stat.Bsize) < room {
		return "", nil
	}
	folder, err := os.MkdirTemp(shared, "openbot-tests-")
	if err != nil {
		return "", nil
	}
	// PostgreSQL runs as another account and must get through.
	if err := os.Chmod(folder, 0o711); err != nil { //nolint:gosec // the folders in it are private
		return "", nil
	}
	return folder, func() { _ = os.RemoveAll(folder) }
}
