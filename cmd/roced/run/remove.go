package run

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// removedPrefix begins the names of folders that wait for their removal. No name of a socket begins with a dot.
const removedPrefix = ".removed-"

// mostRemoved is the maximum number of files that one removal of a folder deletes: its container may still write to it.
const mostRemoved = 1 << 22

// discard takes the folder of a socket out of use: the name is free at once, and the next folder of that name is another
// one. What a container has left in the folder is removed in the background.
func (s *service) discard(folder string) error {
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	hidden := filepath.Join(filepath.Dir(folder), removedPrefix+rand.Text())
	if err := os.Rename(folder, hidden); err != nil {
		return err
	}
	s.removeHidden(hidden)
	return nil
}

// removeHidden removes a discarded folder: an empty one at once, others in the background, one after the other. After a
// failure the next start of the service tries again.
func (s *service) removeHidden(folder string) {
	if os.Remove(folder) == nil {
		return
	}
	go func() {
		s.removing.Lock()
		defer s.removing.Unlock()
		if err := removeFolder(folder, mostRemoved); err != nil {
			s.log.Warn("the folder of a removed socket is not removed; the next start of the service tries again", "folder", folder, "error", err)
		}
	}()
}

// isHidden reports whether a name in the folder of the sockets is of a discarded folder.
func isHidden(name string) bool { return strings.HasPrefix(name, removedPrefix) }

// remover empties a folder. It follows no links, and holds two descriptors, however deep the folders in it are: those of
// the second level are moved to the first.
type remover struct {
	top   *os.File
	left  int // number of files that it may still delete or move
	moved int
}

// removeFolder removes a folder that contains at most so many files.
func removeFolder(path string, most int) error {
	top, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer top.Close()
	r := remover{top: top, left: most}
	if err := r.empty(top); err != nil {
		return err
	}
	return os.Remove(path)
}

// empty removes what is in a folder, which is the top or in it.
func (r *remover) empty(folder *os.File) error {
	for {
		names, err := folder.Readdirnames(1024)
		switch {
		case len(names) == 0 && errors.Is(err, io.EOF):
			return nil
		case len(names) == 0:
			return err
		}
		for _, name := range names {
			if err := r.remove(folder, name); err != nil {
				return err
			}
		}
		if _, err := folder.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// remove removes a file. A folder with files is emptied if it is in the top, and moved to the top if not.
func (r *remover) remove(folder *os.File, name string) error {
	if r.left--; r.left < 0 {
		return fmt.Errorf("%w: too many files in %s", verbs.ErrLimit, r.top.Name())
	}
	in := int(folder.Fd())
	err := unix.Unlinkat(in, name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(in, name, unix.AT_REMOVEDIR)
	}
	if errors.Is(err, unix.ENOTEMPTY) && folder == r.top {
		return r.emptyChild(name)
	}
	if errors.Is(err, unix.ENOTEMPTY) {
		r.moved++
		err = unix.Renameat2(in, name, int(r.top.Fd()), fmt.Sprint(removedPrefix, r.moved), unix.RENAME_NOREPLACE)
	}
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EEXIST) { // the next round tries another name
		return nil
	}
	return &fs.PathError{Op: "remove", Path: name, Err: err}
}

// emptyChild empties a folder in the top, which the next round removes.
func (r *remover) emptyChild(name string) error {
	fd, err := unix.Openat(int(r.top.Fd()), name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	child := os.NewFile(uintptr(fd), name)
	defer child.Close()
	return r.empty(child)
}
