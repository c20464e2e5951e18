package server

import (
	"fmt"
	"hash/fnv"
	"net"
	"regexp"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// doors are the sockets of containers. All who come by one count as one user, whatever their uids, since programs in
// containers are mostly root; they see nothing of others, and have no privileges.
type doors struct {
	make  func(name string) (l net.Listener, path string, err error)
	serve func(l net.Listener, door string) error

	mu   sync.Mutex // comes before the server's
	open map[string]door
}

type door struct {
	net.Listener
	path string
}

// mostDoors is how many there may be.
const mostDoors = 4096

// doorName is what a folder may be called.
var doorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// AddSocket makes the socket of a container, and serves it until RemoveSocket or Close. One that is there already is
// the same.
func (s *Server) AddSocket(name string) (path string, err error) {
	if !doorName.MatchString(name) {
		return "", fmt.Errorf("%w: socket %q: a name has at most 63 letters, digits, and . _ -, and begins with a letter or digit", verbs.ErrInvalid, name)
	}
	d := &s.doors
	if d.make == nil {
		return "", fmt.Errorf("%w: this service makes no sockets for containers", verbs.ErrUnsupported)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if there, is := d.open[name]; is {
		return there.path, nil
	}
	if len(d.open) >= mostDoors {
		return "", fmt.Errorf("%w: %d sockets of containers; remove some", verbs.ErrLimit, len(d.open))
	}
	listener, path, err := d.make(name)
	if err != nil {
		return "", fmt.Errorf("%w: socket %s: %w", verbs.ErrHost, name, err)
	}
	d.open[name] = door{listener, path}
	go func() {
		if err := d.serve(listener, name); err != nil {
			s.log.Warn("the socket of a container is not served", "name", name, "error", err)
		}
	}()
	return path, nil
}

// RemoveSocket ends the socket of a container, and the connections that came by it. Meanwhile nobody makes another of
// that name, whose folder would go with this one's.
func (s *Server) RemoveSocket(name string) error {
	s.doors.mu.Lock()
	defer s.doors.mu.Unlock()
	listener, is := s.doors.open[name]
	if !is {
		return fmt.Errorf("%w: there is no socket %q", verbs.ErrInvalid, name)
	}
	delete(s.doors.open, name)
	err := listener.Close()
	s.removeListener(listener.Listener) // what it has accepted is here below, or is not started
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		if c.peer.door == name {
			c.hangUp()
		}
	}
	return err
}

func (c *connection) mayManage() error {
	if !c.peer.seesAll() {
		return fmt.Errorf("%w: sockets of containers are made by root and the service's user", verbs.ErrPermission)
	}
	return nil
}

func (c *connection) addSocket(r proto.Socket) (proto.Socket, error) {
	if err := c.mayManage(); err != nil {
		return r, err
	}
	path, err := c.server.AddSocket(r.Name)
	return proto.Socket{Name: r.Name, Path: path}, err
}

func (c *connection) removeSocket(r proto.Socket) (none proto.None, err error) {
	if err := c.mayManage(); err != nil {
		return none, err
	}
	return none, c.server.RemoveSocket(r.Name)
}

// party is of whom connections and complaints are counted together: a user, or those who come by a container's socket,
// whose number is below all numbers of users, and below nobody's.
func (p *peer) party() int64 {
	if p.door == "" {
		return int64(p.owner)
	}
	h := fnv.New32()
	_, _ = h.Write([]byte(p.door))
	return -2 - int64(h.Sum32())
}
