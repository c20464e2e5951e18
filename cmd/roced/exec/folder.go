// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folder is the temporary directory of this process, which holds a lock on it. The lock distinguishes it from
// directories of killed processes. The guard removes it if this process is killed; otherwise the next command
// does.
type folder struct {
	path  string
	lock  *os.File
	guard *guard // nil if none
}

const (
	folderPrefix  = "roced-exec-"
	socketName    = "roced.sock"
	maxSocketPath = len(unix.RawSockaddrUnix{}.Path) - 1
	folderTries   = 100
)

// newFolder creates the directory and, if guarded, starts its guard first. Creation is retried because
// another process may remove the directory before it is locked.
func newFolder(guarded bool) (folder, error) {
	removeLeft()
	for try := 1; ; try++ {
		f := folder{path: filepath.Join(os.TempDir(), folderPrefix+rand.Text()[:12])}
		if guarded {
			f.guard = startGuard(f.path)
		}
		f, err := f.make()
		if err != nil {
			f.guard.end()
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) || !exists(os.TempDir()) || try == folderTries {
			return f, explainTemporary(err)
		}
	}
}

// make creates the directory and locks it. It returns fs.ErrNotExist if another process removed the directory
// in between.
func (f folder) make() (folder, error) {
	if len(f.socket()) > maxSocketPath {
		return f, fmt.Errorf("%w: %s has %d bytes; the limit of a socket path is %d", unix.ENAMETOOLONG, f.socket(), len(f.socket()), maxSocketPath)
	}
	err := os.Mkdir(f.path, 0o700)
	if err != nil {
		return f, err
	}
	if f.lock, err = lockFolder(f.path, unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return f, fs.ErrNotExist // it is being removed
	}
	return f, err
}

// lockFolder locks the directory until the process ends. With unix.LOCK_NB it does not wait. Children do not
// inherit the lock.
func lockFolder(path string, flags int) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|flags); err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	own, err := lock.Stat()
	if now, failed := os.Lstat(path); err != nil || failed != nil || !os.SameFile(own, now) {
		lock.Close()
		return nil, errors.Join(err, fs.ErrNotExist)
	}
	return lock, nil
}

// removeLeft removes directories of this user's killed processes. Directories that cannot be removed are left
// for the next run.
func removeLeft() {
	all, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	for _, path := range all {
		var stat unix.Stat_t
		if unix.Lstat(path, &stat) != nil || int(stat.Uid) != os.Geteuid() {
			continue
		}
		removeFolder(path, unix.LOCK_NB)
	}
}

// removeFolder removes a directory when it is unlocked.
func removeFolder(path string, flags int) {
	if lock, err := lockFolder(path, flags); err == nil {
		_ = os.RemoveAll(path)
		lock.Close()
	}
}

// explainTemporary adds the remedy to an error of the temporary directory.
func explainTemporary(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; set TMPDIR to an existing writable directory with a short path, such as /tmp", err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (f folder) socket() string { return filepath.Join(f.path, socketName) }

// remove removes the directory and its contents.
func (f folder) remove() error {
	if f.lock == nil {
		return nil
	}
	err := errors.Join(os.RemoveAll(f.path), f.lock.Close())
	f.guard.end()
	return err
}
