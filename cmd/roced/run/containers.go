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

// The socket of a container lies in a folder of its own, which the container gets: so it finds the socket again when
// the service was started anew. Only root can pass the folder's parent: a container has the folder by a mount. The mount
// of a removed socket's folder does not lead to the next socket of that name, whose folder is another one.

// socketsFolder is where they are.
func (s *service) socketsFolder() string {
	return filepath.Join(filepath.Dir(s.config.Socket.Path), "sockets")
}

// listenFor makes the socket of a container. Whoever is in the container may connect.
func (s *service) listenFor(name string) (net.Listener, string, error) {
	folder := filepath.Join(s.socketsFolder(), name)
	if err := makeOwnFolder(s.socketsFolder()); err != nil {
		return nil, "", err
	}
	path := filepath.Join(folder, "roced.sock")
	if err := checkName("unixpacket", path); errors.Is(err, unix.EADDRINUSE) {
		return nil, "", err
	}
	if !s.restoring { // else its container has the folder
		if err := s.discard(folder); err != nil {
			return nil, "", err
		}
	}
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, "", err
	}
	if err := os.Chmod(folder, 0o755); err != nil { // whatever the umask
		return nil, "", err
	}
	// The container may have a writable mount of the folder, and put a link where the socket gets its permissions.
	l, err := listenUnixFrom(s.socketsFolder(), "unixpacket", config.Socket{Path: path, Mode: 0o666})
	if err != nil {
		return nil, "", errors.Join(err, s.discard(folder))
	}
	return &containerSocket{l, folder, s}, path, nil
}

// makeOwnFolder makes the folder of the sockets. One that somebody else could write to is refused: links in it would
// have the service change what is elsewhere.
func makeOwnFolder(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkOwnFolder(path)
}

// checkOwnFolder returns an error if another user could write to the folder of the sockets.
func checkOwnFolder(path string) error {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR || int(stat.Uid) != os.Geteuid() || stat.Mode&0o022 != 0 {
		return fmt.Errorf("%w: others can write to %s; remove it, or have the service's socket in a folder of its own (--socket)", unix.EACCES, path)
	}
	return nil
}

// containerSocket is a socket whose folder goes with it, except at the end of the service.
type containerSocket struct {
	*socket
	folder  string
	service *service
}

// Close implements net.Listener.
func (c *containerSocket) Close() error {
	err := c.socket.Close()
	if !errors.Is(err, net.ErrClosed) && !c.service.ending.Load() { // the folder of a closed one may be the next one's
		err = errors.Join(err, c.service.discard(c.folder))
	}
	return err
}

// addSockets makes the sockets again that an earlier service had. A socket that cannot be made, because of what its
// container has put in its place, is removed.
func (s *service) addSockets() {
	s.restoring = true
	defer func() { s.restoring = false }()
	folders, err := os.ReadDir(s.socketsFolder())
	if err != nil {
		return // there were none
	}
	if err := checkOwnFolder(s.socketsFolder()); err != nil {
		s.log.Warn("the sockets of containers are not there again", "error", err)
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
			s.log.Warn("the socket of a container is not there again; roced socket add makes it anew", "name", folder.Name(), "error", err)
		}
	}
}
