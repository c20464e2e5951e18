// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// TestMakePrivateInAChroot: after MakePrivate, mounts are not visible outside of their namespace, even if / is not a
// mount point.
func TestMakePrivateInAChroot(t *testing.T) {
	needs.Root(t)
	dir := t.TempDir()
	for _, name := range []string{"proc", "before", "after"} {
		if err := os.MkdirAll(filepath.Join(dir, "root", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var outside []byte
	if err := <-onThread(func() (err error) { outside, err = mountInAChroot(dir); return err }); err != nil {
		t.Fatal(err)
	}
	if mounts := string(outside); !strings.Contains(mounts, dir+"/root/before ") || strings.Contains(mounts, dir+"/root/after ") {
		t.Errorf("want only the mount before MakePrivate outside; got\n%s", mounts)
	}
}

// mountInAChroot creates a mount namespace with a shared folder, and a copy of that namespace. In the copy it mounts
// twice below the folder: before and after MakePrivate. It returns the mounts of the first namespace.
func mountInAChroot(dir string) (mounts []byte, err error) {
	err = errors.Join(
		unix.Unshare(unix.CLONE_NEWNS),
		MakePrivate(),
		unix.Mount(dir, dir, "", unix.MS_BIND, ""),
		unix.Mount("", dir, "", unix.MS_SHARED, ""),
	)
	first, openErr := os.Open("/proc/thread-self/ns/mnt")
	if err = errors.Join(err, openErr); err != nil {
		return nil, err
	}
	defer first.Close()
	err = errors.Join(
		unix.Unshare(unix.CLONE_NEWNS),
		unix.Chroot(dir+"/root"),
		unix.Chdir("/"),
		unix.Mount("proc", "/proc", "proc", 0, ""),
		unix.Mount("tmpfs", "/before", "tmpfs", 0, ""),
		MakePrivate(),
		unix.Mount("tmpfs", "/after", "tmpfs", 0, ""),
		unix.Setns(int(first.Fd()), unix.CLONE_NEWNS),
	)
	if err != nil {
		return nil, err
	}
	return os.ReadFile("/proc/thread-self/mountinfo")
}

// onThread calls fn on a thread that ends afterwards.
func onThread(fn func() error) <-chan error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- fn()
	}()
	return result
}
