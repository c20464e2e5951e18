// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/cmd/roced/internal/loopback"
	"golang.org/x/sys/unix"
)

// socket is a unix socket created by the service. Close removes its name before it stops listening, so that a
// process that takes over the name does not lose it.
type socket struct {
	*net.UnixListener
	path string
	file fs.FileInfo // identity of the socket file
}

// listenUnix listens at the socket's path. The socket has its permissions from the start: it is bound under a
// temporary name and then renamed. This also replaces a socket left by a killed service. A socket that is in
// use and a file that is not a socket are errors. A missing directory is created only in a runtime directory,
// because elsewhere the path is probably a typo. Other users can enter it if they may use the socket.
func listenUnix(network string, c config.Socket) (*socket, error) {
	return listenUnixFrom(filepath.Dir(c.Path), network, c)
}

// listenUnixFrom is listenUnix with the directory of the temporary name.
func listenUnixFrom(folder, network string, c config.Socket) (*socket, error) {
	if err := checkName(network, c.Path); err != nil {
		return nil, err
	}
	group, err := groupID(c.Group)
	if err != nil {
		return nil, fmt.Errorf("socket.group: %w", err)
	}
	if err := makeDirectory(c); err != nil {
		return nil, notListening(c.Path, err)
	}
	s, err := bindUnix(network, c, group, folder)
	if err != nil {
		return nil, notListening(c.Path, withoutName(err))
	}
	return s, nil
}

// checkName returns an error if a path names anything except a socket that no process serves. It does not
// follow links.
func checkName(network, path string) error {
	there, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	if there.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%w: %s exists and is not a socket; use --socket to set another path", unix.EEXIST, path)
	}
	conn, err := net.Dial(network, path)
	if err == nil {
		conn.Close()
	}
	if err == nil || errors.Is(err, unix.EAGAIN) { // EAGAIN: the backlog is full
		return fmt.Errorf("%w: another service listens at %s; use --socket to set another path", unix.EADDRINUSE, path)
	}
	if errors.Is(err, unix.EPROTOTYPE) {
		return fmt.Errorf("%w: another program listens at %s; use --socket to set another path", unix.EADDRINUSE, path)
	}
	return nil
}

// notListening adds the remedy for unprivileged users to an error.
func notListening(path string, err error) error {
	if os.Geteuid() != 0 && (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS)) {
		return fmt.Errorf("listen at %s: %w; as an ordinary user set a path of your own, such as --socket %s", path, err, loopback.Socket())
	}
	return fmt.Errorf("listen at %s: %w", path, err)
}

// bindUnix creates the socket in a directory of the same file system. Permissions are set by name, so other
// users must not be able to rename files in that directory (not writable, or sticky).
func bindUnix(network string, c config.Socket, group int, folder string) (*socket, error) {
	temporary := filepath.Join(folder, fmt.Sprintf(".roced-%d", os.Getpid()))
	if length := max(len(temporary), len(c.Path)); length >= len(unix.RawSockaddrUnix{}.Path) {
		return nil, fmt.Errorf("%w: the path has %d bytes and the limit is %d; use --socket to set a shorter path", unix.ENAMETOOLONG, length, len(unix.RawSockaddrUnix{}.Path)-1)
	}
	listener, err := net.ListenUnix(network, &net.UnixAddr{Name: temporary, Net: network})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	file, err := os.Lstat(temporary)
	if err == nil {
		err = os.Chmod(temporary, c.Mode)
	}
	if err == nil && group >= 0 {
		err = os.Chown(temporary, -1, group)
	}
	if err == nil {
		err = os.Rename(temporary, c.Path)
	}
	if err != nil {
		_, _ = listener.Close(), os.Remove(temporary)
		return nil, err
	}
	return &socket{listener, c.Path, file}, nil
}

// withoutName removes the temporary name, which users do not know, from an error.
func withoutName(err error) error {
	var inCall *os.SyscallError // of bind
	var inPath *fs.PathError    // of chmod, chown
	var inLink *os.LinkError    // of rename
	switch {
	case errors.As(err, &inCall):
		return inCall
	case errors.As(err, &inPath):
		return fmt.Errorf("%s: %w", inPath.Op, inPath.Err)
	case errors.As(err, &inLink):
		return fmt.Errorf("%s: %w", inLink.Op, inLink.Err)
	}
	return err
}

// makeDirectory creates the directory of a socket. If the socket is for the service's user only, other users
// must not be able to replace it in an existing directory.
func makeDirectory(c config.Socket) error {
	dir := filepath.Dir(c.Path)
	private := c.Mode&0o077 == 0
	mode := fs.FileMode(0o755)
	if private {
		mode = 0o700
	}
	if err := makeMissing(dir, mode); err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	whole := dir
	if absolute, err := filepath.Abs(dir); err == nil {
		whole = absolute
	}
	switch {
	case private && int(stat.Uid) != os.Geteuid() && stat.Uid != 0:
		return fmt.Errorf("%w: %s belongs to another user, who could replace the socket; use --socket to set a path in a directory of your own", unix.EACCES, whole)
	case private && stat.Mode&0o022 != 0 && stat.Mode&unix.S_ISVTX == 0:
		return fmt.Errorf("%w: other users can write to %s and could replace the socket; run chmod go-w %[2]s, or use --socket to set a path in a directory of your own", unix.EACCES, whole)
	}
	return nil
}

// makeMissing creates a directory that does not exist. It returns ENOENT outside the runtime directories.
func makeMissing(dir string, mode fs.FileMode) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"/run", "/var/run", filepath.Clean(os.TempDir()), filepath.Clean(os.Getenv("XDG_RUNTIME_DIR"))}, filepath.Dir(whole)) {
		return fmt.Errorf("%w: directory %s not found; create it with mkdir, or use --socket to set another path", unix.ENOENT, whole)
	}
	if err := os.Mkdir(whole, mode); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil // created by another service meanwhile
}

// Addr returns the path that programs use.
func (s *socket) Addr() net.Addr {
	return &net.UnixAddr{Name: s.path, Net: s.UnixListener.Addr().Network()}
}

// Close removes the socket's name, if it still refers to this socket, and closes the socket.
func (s *socket) Close() error {
	var err error
	if now, failed := os.Lstat(s.path); failed == nil && os.SameFile(now, s.file) {
		err = os.Remove(s.path)
	}
	return errors.Join(err, s.UnixListener.Close())
}

// groupID returns the number of a group given by name or number; -1 for an empty name.
func groupID(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(n), nil
	}
	group, err := user.LookupGroup(name)
	if err != nil {
		return -1, fmt.Errorf("%w: unknown group %q", unix.ENOENT, name)
	}
	return strconv.Atoi(group.Gid)
}
