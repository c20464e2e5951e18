// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Dir is the default directory of journals. It is emptied at boot.
const Dir = "/run/roced"

// Place is the place of a journal's changes: an interface in a network namespace.
type Place struct {
	Namespace Namespace
	Index     int // of the interface
}

// Journal lists the changes of one kind that one process has made in one place.
type Journal struct {
	dir, prefix string
	file        *os.File // nil if no change is listed
	lines       map[string]int64
	free        []int64
}

// lineLen is the length of a line with its newline, in bytes.
const lineLen = 64

// New returns an empty journal. The first Add creates its file.
func New(dir, kind string, at Place) *Journal {
	prefix := fmt.Sprintf("%s-%d-%d-%d-", kind, at.Namespace.Cookie, at.Namespace.Inode, at.Index)
	return &Journal{dir: dir, prefix: prefix, lines: map[string]int64{}}
}

// Add lists a change that is about to be made. The text has at most 63 bytes and no newline.
func (j *Journal) Add(change string) error {
	if len(change) >= lineLen {
		return fmt.Errorf("record %q: longer than %d bytes: %w", change, lineLen-1, unix.EINVAL)
	}
	if _, listed := j.lines[change]; listed {
		return nil
	}
	if j.file == nil {
		if err := j.create(); err != nil {
			return err
		}
	}
	line := int64(len(j.lines))
	if n := len(j.free); n > 0 {
		line = j.free[n-1]
	}
	if err := j.write(line, change); err != nil {
		return errors.Join(err, j.tidy())
	}
	if n := len(j.free); n > 0 {
		j.free = j.free[:n-1]
	}
	j.lines[change] = line
	return nil
}

// Remove removes a change from the list, after it has been undone.
func (j *Journal) Remove(change string) error {
	line, ok := j.lines[change]
	if !ok {
		return nil
	}
	if err := j.write(line, ""); err != nil {
		return err
	}
	delete(j.lines, change)
	j.free = append(j.free, line)
	return j.tidy()
}

func (j *Journal) write(line int64, text string) error {
	_, err := j.file.WriteAt(fmt.Appendf(nil, "%-*s\n", lineLen-1, text), line*lineLen)
	return err
}

// tidy removes the file if no change is listed.
func (j *Journal) tidy() error {
	if len(j.lines) > 0 || j.file == nil {
		return nil
	}
	err := errors.Join(os.Remove(j.file.Name()), j.file.Close())
	j.file, j.free = nil, nil
	return err
}

// Close closes the file. If it lists changes, the next Sweep finds them.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file, j.lines, j.free = nil, map[string]int64{}, nil
	return err
}

// create creates the file. The lock on the directory prevents Sweep from treating it as a dead process's file
// before it is locked.
func (j *Journal) create() error {
	if err := os.MkdirAll(j.dir, 0o755); err != nil {
		return err
	}
	unlock, err := lockDir(j.dir)
	if err != nil {
		return err
	}
	defer unlock()
	file, err := os.CreateTemp(j.dir, j.prefix)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), os.Remove(file.Name()), file.Close())
	}
	j.file = file
	return nil
}

// lockDir prevents other processes from creating or sweeping journals. The lock is on a file that only its
// owner can open, because any user can lock a readable file.
func lockDir(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "journal.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return func() { file.Close() }, nil
}
