package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/server"
	"golang.org/x/sys/unix"
)

// serviceIn is a service that makes sockets of containers below a folder.
func serviceIn(folder string) *service {
	return &service{config: &config.Config{Socket: config.Socket{Path: filepath.Join(folder, "roced.sock")}}}
}

// TestContainerThatWritesToItsFolder: where a container has the folder of its socket to write to, nothing that it puts
// there has the service change another file, or keeps the socket from being made.
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
	other := fmt.Sprintf(".roced-%d", os.Getpid()) // the name that the socket had before its own
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

// TestOthersSocketsFolder: sockets are not made in a folder that is another's, or that leads elsewhere.
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

// TestSocketsAtOnce: who ends the socket of a container does not take away the folder of the next of that name.
func TestSocketsAtOnce(t *testing.T) {
	t.Parallel()
	s := serviceIn(t.TempDir())
	var err error
	if s.server, err = server.New(server.Config{PrivilegedGroup: -1, Listen: s.listenFor}); err != nil {
		t.Fatal(err)
	}
	defer s.server.Close()
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
