// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Sweep reads the journals of dead processes, of one kind and in one namespace. It calls undo with the
// interface and the changes of each, and removes the journal if undo succeeds. It also removes journals of
// destroyed namespaces. It skips journals of other users.
func Sweep(dir, kind string, in Namespace, undo func(index int, changes []string) error) error {
	return eachDead(dir, kind, func(path string, of Place, changes []string) error {
		if of.Namespace.Cookie == in.Cookie {
			if err := undo(of.Index, changes); err != nil {
				return err
			}
		} else if !of.Namespace.gone() {
			return nil
		}
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // the owner removed the file between open and lock
	})
}

// Left calls found with the interfaces and the changes that Sweep would undo. It changes nothing.
func Left(dir, kind string, in Namespace, found func(index int, changes []string)) error {
	return eachDead(dir, kind, func(_ string, of Place, changes []string) error {
		if of.Namespace.Cookie == in.Cookie {
			found(of.Index, changes)
		}
		return nil
	})
}

// eachDead calls do with each journal of a dead process, of one kind. It holds the lock on the directory.
func eachDead(dir, kind string, do func(path string, of Place, changes []string) error) error {
	unlock, err := lockDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	paths, err := filepath.Glob(filepath.Join(dir, kind+"-*-*-*-*"))
	for _, path := range paths {
		if of, ok := parseName(kind, filepath.Base(path)); ok {
			err = errors.Join(err, readDead(path, func(changes []string) error { return do(path, of, changes) }))
		}
	}
	return err
}

// parseName parses the name of a journal file of this kind.
func parseName(kind, name string) (at Place, ok bool) {
	rest, ok := strings.CutPrefix(name, kind+"-")
	if !ok {
		return at, false
	}
	_, err := fmt.Sscanf(rest, "%d-%d-%d-", &at.Namespace.Cookie, &at.Namespace.Inode, &at.Index)
	return at, err == nil
}

// readDead reads a journal if its owner is dead.
func readDead(path string, do func(changes []string) error) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // removed by its owner meanwhile, or owned by another user
	}
	if err != nil {
		return err
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil // its owner is alive
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	return do(listed(string(text)))
}

// listed reads the changes in a journal. A line without newline was not written completely, so its
// change was not made.
func listed(text string) (changes []string) {
	for line := range strings.Lines(text) {
		if change := strings.TrimSpace(line); strings.HasSuffix(line, "\n") && change != "" {
			changes = append(changes, change)
		}
	}
	return changes
}
