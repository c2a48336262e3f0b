//go:build unix

package services

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is the user that a server runs as when this process is root, which
// PostgreSQL refuses. nil stands for the user of this process.
type account struct {
	name     string
	uid, gid uint32
}

func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(found.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root: add a user named postgres or nobody")
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// takeOver gives the folder to the account and lets it pass through the temporary
// folders above, which are made for their owner alone.
func (a *account) takeOver(folder string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(folder, int(a.uid), int(a.gid)); err != nil {
		return err
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	for above := filepath.Dir(absolute); above != filepath.Dir(above); above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 != 0 {
			continue
		}
		if !isTemporary(above) {
			return fmt.Errorf("the user %s cannot enter %s: name a folder that it can, or none", a.name, above)
		}
		if err := os.Chmod(above, info.Mode().Perm()|0o011); err != nil {
			return err
		}
	}
	return nil
}

// isTemporary reports whether a folder is one of the temporary ones, whose rights
// may be widened; those of a home may not.
func isTemporary(folder string) bool {
	for _, top := range []string{os.TempDir(), "/tmp"} {
		if folder == filepath.Clean(top) || strings.HasPrefix(folder, filepath.Clean(top)+string(os.PathSeparator)) {
			return true
		}
	}
	return false
}
