package run

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/roced/roced/cmd/roced/internal/config"
)

// The socket of a container lies in a folder of its own, which the container gets: so it finds the socket again when
// the service was started anew. The folder's parent lets nobody pass but root: who is to have the socket has the
// folder by a mount.

// socketsFolder is where they are.
func (s *service) socketsFolder() string {
	return filepath.Join(filepath.Dir(s.config.Socket.Path), "sockets")
}

// listenFor makes the socket of a container. Whoever is in the container may connect.
func (s *service) listenFor(name string) (net.Listener, string, error) {
	folder := filepath.Join(s.socketsFolder(), name)
	if err := os.MkdirAll(s.socketsFolder(), 0o700); err != nil {
		return nil, "", err
	}
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, "", err
	}
	if err := os.Chmod(folder, 0o755); err != nil { // whatever the umask
		return nil, "", err
	}
	path := filepath.Join(folder, "roced.sock")
	l, err := listenUnix("unixpacket", config.Socket{Path: path, Mode: 0o666})
	if err != nil {
		return nil, "", err
	}
	return &containerSocket{l, folder, s}, path, nil
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
	if !c.service.ending.Load() {
		_ = os.Remove(c.folder)
	}
	return err
}

// addSockets makes those again that there were.
func (s *service) addSockets() {
	folders, err := os.ReadDir(s.socketsFolder())
	if err != nil {
		return // there were none
	}
	for _, folder := range folders {
		if _, err := s.server.AddSocket(folder.Name()); err != nil {
			s.log.Warn("the socket of a container is not there again", "name", folder.Name(), "error", err)
		}
	}
}
