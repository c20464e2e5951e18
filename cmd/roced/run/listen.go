package run

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/roced/roced/cmd/roced/internal/config"
	"golang.org/x/sys/unix"
)

// socket is a unix socket of the service's own.
type socket struct {
	*net.UnixListener
	path string
}

// listenUnix listens at the socket's path, with its permissions from the first moment: it is bound
// under another name, and then renamed. That also replaces a socket that a killed service has left;
// one that somebody serves is an error. A directory that is missing is made, and others may enter it if they may use the socket.
func listenUnix(network string, c config.Socket) (*socket, error) {
	if conn, err := net.Dial(network, c.Path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("%w: another service listens at %s; --socket gives this one another path", unix.EADDRINUSE, c.Path)
	} else if errors.Is(err, unix.EPROTOTYPE) {
		return nil, fmt.Errorf("%w: a service of another kind listens at %s", unix.EADDRINUSE, c.Path)
	}
	group, err := groupID(c.Group)
	if err != nil {
		return nil, fmt.Errorf("socket.group: %w", err)
	}
	if err := makeDirectory(c); err != nil {
		return nil, fmt.Errorf("listen at %s: %w", c.Path, err)
	}
	temporary := filepath.Join(filepath.Dir(c.Path), fmt.Sprintf(".roced-%d", os.Getpid()))
	listener, err := net.ListenUnix(network, &net.UnixAddr{Name: temporary, Net: network})
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", c.Path, err)
	}
	listener.SetUnlinkOnClose(false)
	err = os.Chmod(temporary, c.Mode)
	if group >= 0 {
		err = errors.Join(err, os.Chown(temporary, -1, group))
	}
	if err == nil {
		err = os.Rename(temporary, c.Path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen at %s: %w", c.Path, err), listener.Close(), os.Remove(temporary))
	}
	return &socket{listener, c.Path}, nil
}

// makeDirectory makes the directory of a socket. If the socket is for the own user alone, others must not
// be able to replace it in a directory that is there.
func makeDirectory(c config.Socket) error {
	dir := filepath.Dir(c.Path)
	private := c.Mode&0o077 == 0
	mode := fs.FileMode(0o755)
	if private {
		mode = 0o700
	}
	if err := os.Mkdir(dir, mode); !errors.Is(err, fs.ErrExist) {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	others := int(stat.Uid) != os.Geteuid() && stat.Uid != 0
	if private && (others || stat.Mode&0o022 != 0 && stat.Mode&unix.S_ISVTX == 0) {
		return fmt.Errorf("%w: others can write to %s; --socket names a path elsewhere", unix.EACCES, dir)
	}
	return nil
}

// Addr is the path by which programs know the socket.
func (s *socket) Addr() net.Addr {
	return &net.UnixAddr{Name: s.path, Net: s.UnixListener.Addr().Network()}
}

// remove takes the socket's name away. Its listener has been closed.
func (s *socket) remove() error {
	if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// groupID is the number of a group, by name or number; -1 for an empty name.
func groupID(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(n), nil
	}
	group, err := user.LookupGroup(name)
	if err != nil {
		return -1, fmt.Errorf("%w: there is no group %q", unix.ENOENT, name)
	}
	return strconv.Atoi(group.Gid)
}
