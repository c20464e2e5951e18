// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/roced/roced/cmd/roced/internal/config"
	"golang.org/x/sys/unix"
)

// The socket of a container is in a directory of its own, which is mounted into the container. The container
// therefore finds the new socket after a restart of the service. Other users cannot traverse the parent of that
// directory. When a socket is removed, the next one of that name gets a new directory, so old mounts do not lead to it.

// socketsFolder returns the parent of these directories.
func (s *service) socketsFolder() string {
	return filepath.Join(filepath.Dir(s.config.Socket.Path), "sockets")
}

// listenFor creates the socket of a container. Every process in the container can connect.
func (s *service) listenFor(name string) (net.Listener, string, error) {
	folder := filepath.Join(s.socketsFolder(), name)
	if err := makeOwnFolder(s.socketsFolder()); err != nil {
		return nil, "", err
	}
	path := filepath.Join(folder, "roced.sock")
	if err := checkName("unixpacket", path); errors.Is(err, unix.EADDRINUSE) {
		return nil, "", err
	}
	if !s.restoring { // otherwise the container has mounted the directory
		if err := s.discard(folder); err != nil {
			return nil, "", err
		}
	}
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, "", err
	}
	if err := os.Chmod(folder, 0o755); err != nil { // independent of the umask
		return nil, "", err
	}
	// The container may have mounted the directory writable, and could place a link where the socket gets its
	// permissions.
	l, err := listenUnixFrom(s.socketsFolder(), "unixpacket", config.Socket{Path: path, Mode: 0o666})
	if err != nil {
		return nil, "", errors.Join(err, s.discard(folder))
	}
	return &containerSocket{l, folder, s}, path, nil
}

// makeOwnFolder creates the parent directory. A directory that other users can write to is rejected, because
// links in it could make the service change other files.
func makeOwnFolder(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkOwnFolder(path)
}

// checkOwnFolder returns an error if another user can write to the parent directory.
func checkOwnFolder(path string) error {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR || int(stat.Uid) != os.Geteuid() || stat.Mode&0o022 != 0 {
		return fmt.Errorf("%w: other users can write to %s; remove it, or use a private directory for the service's socket (--socket)", unix.EACCES, path)
	}
	return nil
}

// containerSocket is a socket whose directory is removed with it, except when the service ends.
type containerSocket struct {
	*socket
	folder  string
	service *service
}

// Close implements net.Listener.
func (c *containerSocket) Close() error {
	err := c.socket.Close()
	if !errors.Is(err, net.ErrClosed) && !c.service.ending.Load() { // the directory of a closed socket may belong to the next one
		err = errors.Join(err, c.service.discard(c.folder))
	}
	return err
}

// addSockets restores the sockets of an earlier service. A socket that cannot be restored because of files
// that its container created is removed.
func (s *service) addSockets() {
	s.restoring = true
	defer func() { s.restoring = false }()
	folders, err := os.ReadDir(s.socketsFolder())
	if err != nil {
		return // no earlier sockets
	}
	if err := checkOwnFolder(s.socketsFolder()); err != nil {
		s.log.Warn("cannot restore the sockets of containers", "error", err)
		return
	}
	for _, folder := range folders {
		path := filepath.Join(s.socketsFolder(), folder.Name())
		switch {
		case !folder.IsDir(): // a service was killed while it made a socket
			_ = os.Remove(path)
			continue
		case isHidden(folder.Name()):
			s.removeHidden(path)
			continue
		}
		if _, err := s.server.AddSocket(folder.Name()); err != nil {
			s.log.Warn("cannot restore the socket of a container; create it again with roced socket add", "name", folder.Name(), "error", err)
		}
	}
}
