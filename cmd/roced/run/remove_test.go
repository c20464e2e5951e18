// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// dig creates deeply nested folders. Their path exceeds PATH_MAX, so dig changes its directory.
func dig(t *testing.T, path string, depth int) {
	t.Helper()
	errtest.Check(t, os.MkdirAll(path, 0o700))
	at, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	errtest.Check(t, err)
	for range depth {
		errtest.Check(t, unix.Mkdirat(at, "deeper", 0o700))
		below, err := unix.Openat(at, "deeper", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		errtest.Check(t, errors.Join(err, unix.Close(at)))
		at = below
	}
	errtest.Check(t, unix.Close(at))
}

// TestRemoveFolder: folders deeper than the longest path are removed, and so are names that the removal itself uses.
func TestRemoveFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder")
	dig(t, filepath.Join(path, "a"), 1000)
	for i := range 20 {
		errtest.Check(t, os.MkdirAll(filepath.Join(path, fmt.Sprint(removedPrefix, i), "a/b/c"), 0o700))
	}
	errtest.Check(t, os.WriteFile(filepath.Join(path, removedPrefix+"20"), nil, 0o600))
	errtest.Check(t, removeFolder(path, 100_000))
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// TestRemovalIsBounded: a removal ends after a number of files, and the next one continues.
func TestRemovalIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder")
	dig(t, path, 1)
	for i := range 150 {
		errtest.Check(t, os.WriteFile(filepath.Join(path, "deeper", fmt.Sprint(i)), nil, 0o600))
	}
	if err := removeFolder(path, 100); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("%v, want %v", err, verbs.ErrLimit)
	}
	if left, err := os.ReadDir(filepath.Join(path, "deeper")); err != nil || len(left) != 51 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	errtest.Check(t, removeFolder(path, 100))
}

// TestRemovalOfALink: a link is not followed, and its target is not removed.
func TestRemovalOfALink(t *testing.T) {
	t.Parallel()
	victim, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	errtest.Check(t, errors.Join(os.WriteFile(filepath.Join(victim, "file"), nil, 0o600), os.Symlink(victim, link)))
	if err := removeFolder(link, 100); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("%v, want %v", err, unix.ENOTDIR)
	}
	if _, err := os.Lstat(filepath.Join(victim, "file")); err != nil {
		t.Error(err)
	}
}
