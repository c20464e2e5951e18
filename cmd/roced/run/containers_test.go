// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/server"
	"golang.org/x/sys/unix"
)

// serviceIn returns a service whose sockets of containers are below a folder.
func serviceIn(folder string) *service {
	return &service{log: slog.New(slog.DiscardHandler), config: &config.Config{Socket: config.Socket{Path: filepath.Join(folder, "roced.sock")}}}
}

// TestContainerThatWritesToItsFolder: a container cannot make the service change other files, or prevent the creation
// of its socket, by files in the folder of its socket.
func TestContainerThatWritesToItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := serviceIn(dir)
	folder := filepath.Join(dir, "sockets", "web")
	if err := errors.Join(os.Mkdir(filepath.Dir(folder), 0o700), os.Mkdir(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	other := fmt.Sprintf(".roced-%d", os.Getpid()) // the temporary name of a socket
	if err := os.Symlink(victim, filepath.Join(folder, other)); err != nil {
		t.Fatal(err)
	}
	l, path, err := s.listenFor("web")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for file, mode := range map[string]os.FileMode{victim: 0o600, path: 0o666} {
		if now, err := os.Lstat(file); err != nil || now.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want %v", file, now.Mode(), err, mode)
		}
	}
}

// TestOthersSocketsFolder: sockets are not created in another user's folder, or through a link.
func TestOthersSocketsFolder(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"link":     func(path string) error { return os.Symlink(filepath.Dir(path), path) },
		"writable": func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777)) },
		"file":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		dir := t.TempDir()
		if err := put(filepath.Join(dir, "sockets")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := serviceIn(dir).listenFor("web"); !errors.Is(err, unix.EACCES) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "web")); err == nil {
			t.Errorf("%s: a folder was made elsewhere", name)
		}
	}
}

// TestSocketsAtOnce: closing a container's socket does not remove the folder of the next socket of that name.
func TestSocketsAtOnce(t *testing.T) {
	t.Parallel()
	s := newContainers(t, t.TempDir())
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for range 100 {
				if err := s.server.RemoveSocket("web"); err != nil && !errors.Is(err, verbs.ErrInvalid) {
					t.Error(err)
				}
				if _, err := s.server.AddSocket("web"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asking.Wait()
}

// newContainers starts a service whose sockets of containers are below a folder.
func newContainers(t *testing.T, folder string) *service {
	t.Helper()
	s := serviceIn(folder)
	var err error
	s.server, err = server.New(server.Config{PrivilegedGroup: -1, Listen: s.listenFor, Log: s.log})
	errtest.Check(t, err)
	t.Cleanup(func() { s.server.Close() })
	return s
}

// restart ends the service and returns a new one with the same folder.
func (s *service) restart(t *testing.T) *service {
	t.Helper()
	s.ending.Store(true)
	errtest.Check(t, s.server.Close())
	waittest.Eventually(t, "no socket is served", func() bool {
		names, err := filepath.Glob(filepath.Join(s.socketsFolder(), "*/roced.sock"))
		return err == nil && !slices.ContainsFunc(names, func(name string) bool { return errors.Is(checkName("unixpacket", name), unix.EADDRINUSE) })
	})
	next := newContainers(t, filepath.Dir(s.socketsFolder()))
	next.addSockets()
	return next
}

// empty waits until the service has removed the folders of all sockets.
func (s *service) empty(t *testing.T) {
	t.Helper()
	waittest.Eventually(t, "all sockets are removed", func() bool {
		there, err := os.ReadDir(s.socketsFolder())
		return err == nil && len(there) == 0
	})
}

// TestSocketIsRemoved: a socket is removed even if its container has added files to the folder, or replaced the socket
// by a link. The container's mount does not lead to the next socket of that name, and links are not followed.
func TestSocketIsRemoved(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	victim := filepath.Join(other, "victim")
	errtest.Check(t, os.WriteFile(victim, nil, 0o600))
	s := newContainers(t, dir)
	path, err := s.server.AddSocket("web")
	errtest.Check(t, err)
	folder := filepath.Dir(path)
	mount, err := os.Open(folder) // as the container's mount
	errtest.Check(t, err)
	defer mount.Close()
	errtest.Check(t, errors.Join(
		os.Remove(path), os.Symlink(victim, path), os.Symlink(other, filepath.Join(folder, "link")),
		os.MkdirAll(filepath.Join(folder, "a/b/c"), 0o700), os.Symlink(other, filepath.Join(folder, "a/b/link")),
		os.WriteFile(filepath.Join(folder, "a/b/file"), nil, 0o600)))
	errtest.Check(t, s.server.RemoveSocket("web"))
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder after the removal: %v", err)
	}
	s.empty(t)
	s = s.restart(t)
	if err := s.server.RemoveSocket("web"); !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("the socket after a restart: %v", err)
	}
	_, err = s.server.AddSocket("web")
	errtest.Check(t, err)
	old, err := mount.Stat()
	errtest.Check(t, err)
	now, err := os.Stat(folder)
	errtest.Check(t, err)
	if os.SameFile(old, now) {
		t.Error("the next socket has the old folder")
	}
	if c, err := net.Dial("unixpacket", fmt.Sprintf("/proc/self/fd/%d/roced.sock", mount.Fd())); err == nil {
		c.Close()
		t.Error("the old mount leads to a socket")
	}
	if _, err := os.Lstat(victim); err != nil {
		t.Error(err)
	}
}

// TestSocketsAfterARestart: a socket is restored in its folder. A socket that its container has replaced is removed and
// can be created again. Leftovers of an earlier service are removed.
func TestSocketsAfterARestart(t *testing.T) {
	t.Parallel()
	s := newContainers(t, t.TempDir())
	good, err := s.server.AddSocket("good")
	errtest.Check(t, err)
	bad, err := s.server.AddSocket("bad")
	errtest.Check(t, err)
	errtest.Check(t, errors.Join(os.Remove(bad), os.Symlink(good, bad), os.MkdirAll(filepath.Join(s.socketsFolder(), ".removed-x/y"), 0o700)))
	before, err := os.Stat(filepath.Dir(good))
	errtest.Check(t, err)
	s = s.restart(t)
	if now, err := os.Stat(filepath.Dir(good)); err != nil || !os.SameFile(before, now) {
		t.Errorf("the folder after a restart: %v", err)
	}
	if _, err := os.Lstat(filepath.Dir(bad)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder without a socket: %v", err)
	}
	_, err = s.server.AddSocket("bad")
	errtest.Check(t, err)
	errtest.Check(t, errors.Join(s.server.RemoveSocket("bad"), s.server.RemoveSocket("good")))
	s.empty(t)
}

// TestSocketsOfAnotherService: a service does not remove folders whose sockets another service serves.
func TestSocketsOfAnotherService(t *testing.T) {
	t.Parallel()
	first := newContainers(t, t.TempDir())
	path, err := first.server.AddSocket("web")
	errtest.Check(t, err)
	second := newContainers(t, filepath.Dir(first.socketsFolder()))
	second.addSockets()
	if _, err := second.server.AddSocket("web"); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("%v, want %v", err, unix.EADDRINUSE)
	}
	c, err := net.Dial("unixpacket", path)
	errtest.Check(t, err)
	c.Close()
}

// TestRestartInOthersFolder: a service deletes nothing in a folder that another user has placed at its path.
func TestRestartInOthersFolder(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	victim := filepath.Join(other, "victim")
	errtest.Check(t, errors.Join(os.WriteFile(victim, nil, 0o600), os.Symlink(other, filepath.Join(dir, "sockets"))))
	newContainers(t, dir).addSockets()
	if _, err := os.Lstat(victim); err != nil {
		t.Error(err)
	}
}
