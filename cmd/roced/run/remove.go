// SPDX-License-Identifier: Apache-2.0

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

// removedPrefix starts the names of directories that are being removed. No socket name starts with a dot.
const removedPrefix = ".removed-"

// maxRemoved is the maximum number of files that one removal deletes, because the container may still create files.
const maxRemoved = 1 << 22

// discard renames the directory of a socket, so that its name is free immediately, and removes it with its
// contents in the background.
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

// removeHidden removes a discarded directory: an empty one immediately, others in the background, one after
// the other. After a failure the next start of the service tries again.
func (s *service) removeHidden(folder string) {
	if os.Remove(folder) == nil {
		return
	}
	go func() {
		s.removing.Lock()
		defer s.removing.Unlock()
		if err := removeFolder(folder, maxRemoved); err != nil {
			s.log.Warn("cannot remove the directory of a removed socket; the next start of the service tries again", "folder", folder, "error", err)
		}
	}()
}

// isHidden reports whether a name is that of a discarded directory.
func isHidden(name string) bool { return strings.HasPrefix(name, removedPrefix) }

// remover empties a directory tree. It does not follow links and holds two descriptors regardless of depth:
// directories of the second level are moved to the first.
type remover struct {
	top   *os.File
	left  int // number of files that may still be deleted or moved
	moved int
}

// removeFolder removes a directory tree of at most most files.
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

// empty removes the contents of the top directory or of a directory in it.
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

// remove removes a file. A non-empty directory is emptied if it is in the top directory, otherwise moved to
// it.
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

// emptyChild empties a directory in the top directory; the next round removes it.
func (r *remover) emptyChild(name string) error {
	fd, err := unix.Openat(int(r.top.Fd()), name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	child := os.NewFile(uintptr(fd), name)
	defer child.Close()
	return r.empty(child)
}
