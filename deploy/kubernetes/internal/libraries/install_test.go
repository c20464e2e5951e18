// SPDX-License-Identifier: Apache-2.0

package libraries

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/roced/roced/internal/mounts"
	"golang.org/x/sys/unix"
)

// TestInstall checks that Install does not write to existing files, which programs may have mapped, and keeps identical
// ones.
func TestInstall(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "new", "folder")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := func() (same, changed os.FileInfo) {
		t.Helper()
		err := Install(from, to)
		same, sameErr := os.Stat(filepath.Join(to, "same"))
		changed, changedErr := os.Stat(filepath.Join(to, "changed"))
		if err := errors.Join(err, sameErr, changedErr); err != nil {
			t.Fatal(err)
		}
		return same, changed
	}
	write("same", "a")
	write("changed", "b")
	if err := os.Mkdir(filepath.Join(from, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("folder/inside", "d")
	same, changed := install()
	if text, err := os.ReadFile(filepath.Join(to, "folder", "inside")); err != nil || string(text) != "d" {
		t.Errorf("in a folder: %q, %v", text, err)
	}
	if same.Mode().Perm() != 0o644 {
		t.Errorf("others cannot read it: %v", same.Mode())
	}
	mapped, err := os.Open(filepath.Join(to, "changed"))
	if err != nil {
		t.Fatal(err)
	}
	defer mapped.Close()
	write("changed", "c")
	sameNow, changedNow := install()
	old := make([]byte, 2)
	if n, _ := mapped.Read(old); string(old[:n]) != "b" {
		t.Errorf("a mapped file is now %q", old[:n])
	}
	if !os.SameFile(same, sameNow) || os.SameFile(changed, changedNow) {
		t.Error("the wrong file was replaced")
	}
}

// TestInstallWhereNothingCanRun checks the error for a folder that is mounted noexec. The mount is in a namespace of
// the thread, and ends with it.
func TestInstallWhereNothingCanRun(t *testing.T) {
	t.Parallel()
	folder, from := t.TempDir(), t.TempDir()
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // without unlock: no other goroutine may use the thread
		ended <- errors.Join(
			unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS),
			mounts.MakePrivate(),
			unix.Mount("none", folder, "tmpfs", unix.MS_NOEXEC, ""),
			Install(from, folder),
		)
	}()
	if err := <-ended; !errors.Is(err, unix.EACCES) {
		t.Errorf("%v", err)
	}
}
