package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folder is a folder for temporary files for as long as this process lives: it holds the folder's lock. What a killed
// process has left is found by that, and removed by the next one.
type folder struct {
	path string
	lock *os.File
}

const (
	folderPrefix  = "roced-exec-"
	socketName    = "roced.sock"
	maxSocketPath = len(unix.RawSockaddrUnix{}.Path) - 1
)

func newFolder() (folder, error) {
	removeLeft()
	for {
		f, err := makeFolder()
		if !errors.Is(err, fs.ErrNotExist) || !exists(os.TempDir()) {
			return f, explainTemporary(err)
		}
	}
}

// makeFolder makes a folder and locks it. fs.ErrNotExist says that another process removed it between the two.
func makeFolder() (f folder, err error) {
	if f.path, err = os.MkdirTemp("", folderPrefix); err != nil {
		return folder{}, err
	}
	if len(f.socket()) > maxSocketPath {
		return folder{}, errors.Join(fmt.Errorf("%w: %s has %d bytes, and the kernel takes %d as a socket's path", unix.ENAMETOOLONG, f.socket(), len(f.socket()), maxSocketPath), os.Remove(f.path))
	}
	if f.lock, err = lockFolder(f.path); errors.Is(err, unix.EWOULDBLOCK) {
		return folder{}, fs.ErrNotExist // it is being removed
	}
	return f, err
}

// lockFolder gives the lock, which goes with the process. Programs do not inherit it.
func lockFolder(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
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
		if lock, err := lockFolder(path); err == nil {
			_ = os.RemoveAll(path)
			lock.Close()
		}
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
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}
