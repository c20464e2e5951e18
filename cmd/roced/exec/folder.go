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

// folder is a folder for temporary files for as long as this process lives: it holds the folder's lock. What a killed
// process has left is found by that. Its guard removes it; if that is killed too, the next command does.
type folder struct {
	path  string
	lock  *os.File
	guard *guard // nil: there is none
}

const (
	folderPrefix  = "roced-exec-"
	socketName    = "roced.sock"
	maxSocketPath = len(unix.RawSockaddrUnix{}.Path) - 1
	folderTries   = 100
)

// newFolder makes a folder, with a guard that is there before it. Others may remove the folder, and seldom do: where it
// is never there, as in /proc, none can be made.
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

// make makes the folder and locks it. fs.ErrNotExist says that another process removed it between the two.
func (f folder) make() (folder, error) {
	if len(f.socket()) > maxSocketPath {
		return f, fmt.Errorf("%w: %s has %d bytes, and the kernel takes %d as a socket's path", unix.ENAMETOOLONG, f.socket(), len(f.socket()), maxSocketPath)
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

// lockFolder gives the lock, which goes with the process; with unix.LOCK_NB it does not wait for it. Programs do not
// inherit it.
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

// removeLeft removes the folders of this user's processes that were killed. What fails is left for the next time.
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

// removeFolder removes a folder when nobody has its lock.
func removeFolder(path string, flags int) {
	if lock, err := lockFolder(path, flags); err == nil {
		_ = os.RemoveAll(path)
		lock.Close()
	}
}

// explainTemporary says what to do about a folder for temporary files that cannot be used.
func explainTemporary(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; TMPDIR names the folder for temporary files: set it to one that is there, may be written to and has a short path, such as /tmp", err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (f folder) socket() string { return filepath.Join(f.path, socketName) }

// remove removes the folder with what is in it.
func (f folder) remove() error {
	if f.lock == nil {
		return nil
	}
	err := errors.Join(os.RemoveAll(f.path), f.lock.Close())
	f.guard.end()
	return err
}
