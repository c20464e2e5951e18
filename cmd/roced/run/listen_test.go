// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

func TestListenReplacesAnUnusedSocket(t *testing.T) {
	c := config.Socket{Path: filepath.Join(t.TempDir(), "s"), Mode: 0o600, Group: strconv.Itoa(os.Getgid())}
	first, err := listenUnix("unixpacket", c)
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"unixpacket", "unix"} {
		if _, err := listenUnix(network, c); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%s: a second service at the same path: %v", network, err)
		}
	}
	first.UnixListener.Close() // as a kill does: the name stays
	second, err := listenUnix("unixpacket", c)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unixpacket", c.Path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	first.Close() // the name now belongs to the second socket
	if conn, err = net.Dial("unixpacket", c.Path); err != nil {
		t.Fatalf("the second socket was removed: %v", err)
	}
	conn.Close()
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(filepath.Dir(c.Path)); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}

// TestListenBesideABusyService: a service with a full backlog keeps its socket.
func TestListenBesideABusyService(t *testing.T) {
	if _, err := listenUnix("unixpacket", config.Socket{Path: waittest.FullSocket(t), Mode: 0o600}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("%v, want %v", err, unix.EADDRINUSE)
	}
}

func TestListenFails(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct {
		c    config.Socket
		want error
		text string
	}{
		{config.Socket{Path: filepath.Join(dir, "none", "none", "s")}, fs.ErrNotExist, "listen at"},
		{config.Socket{Path: filepath.Join(dir, "none", "s")}, fs.ErrNotExist, "directory " + dir + "/none not found; create it"},
		{config.Socket{Path: filepath.Join(dir, strings.Repeat("long", 40))}, unix.ENAMETOOLONG, "use --socket to set a shorter path"},
		{config.Socket{Path: dir}, fs.ErrExist, dir + " exists and is not a socket"},
		{config.Socket{Path: filepath.Join(dir, "s"), Group: "no-such-group"}, unix.ENOENT, `unknown group "no-such-group"`},
	} {
		_, err := listenUnix("unixpacket", row.c)
		if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.text) || strings.Contains(err.Error(), ".roced-") {
			t.Errorf("%+v: %v", row.c, err)
		}
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

// TestDirectoryOfASocket: the directory is created with the socket's permissions, and another user's directory is
// rejected for a socket of one user only.
func TestDirectoryOfASocket(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	for mode, want := range map[fs.FileMode]fs.FileMode{0o600: 0o700, 0o660: 0o755} {
		c := config.Socket{Path: filepath.Join(dir, mode.String(), "s"), Mode: mode}
		s, err := listenUnix("unixpacket", c)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if info, err := os.Stat(filepath.Dir(c.Path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%v: %v, %v", mode, info.Mode(), err)
		}
	}
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o777), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix("unixpacket", config.Socket{Path: filepath.Join(open, "s"), Mode: 0o600}); !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "chmod go-w "+open) {
		t.Errorf("a socket where others can replace it: %v", err)
	}
}

// TestListenKeepsOtherFiles: a file, a link or a pipe at the socket's path is kept.
func TestListenKeepsOtherFiles(t *testing.T) {
	folder := t.TempDir()
	for name, make := range map[string]func(path string) error{
		"file": func(path string) error { return os.WriteFile(path, []byte("precious"), 0o600) },
		"link": func(path string) error { return os.Symlink("/nonexistent", path) },
		"pipe": func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(folder, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := listenUnix("unixpacket", config.Socket{Path: path, Mode: 0o600}); !errors.Is(err, unix.EEXIST) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: it was replaced: %v", name, err)
		}
	}
}
