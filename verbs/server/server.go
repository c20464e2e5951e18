// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/admin"
	"github.com/roced/roced/verbs/server/memory"
	"github.com/roced/roced/verbs/server/peer"
)

// Config is the configuration of a server.
type Config struct {
	Devices []Source
	Limits  peer.Limits
	// PrivilegedGroup may use privileged Q_Keys, besides root; -1 for none. Group 0 is a group.
	PrivilegedGroup int
	// SubUIDs is a file that assigns further uids to users (subuid(5)), /etc/subuid for example; empty for none. What
	// these uids use is charged to their owner.
	SubUIDs string
	Log     *slog.Logger // nil for none
	// Listen makes the socket of a container (AddSocket); nil for none.
	Listen func(name string) (l net.Listener, path string, err error)
}

// Server gives clients sessions on devices. It owns the connections, not the devices.
type Server struct {
	group      int
	log        *slog.Logger
	limited    *peer.Log // for warnings that clients can cause
	users      *peer.Users
	containers *peer.Containers
	memory     *memory.Manager
	admin      *admin.Service
	devices    *devices

	mu          sync.Mutex
	connections map[*connection]struct{}
	listeners   []net.Listener
	closed      bool
	all         sync.WaitGroup // connections

	hurry chan struct{} // closed when Close has waited long enough for memory
}

// New makes a server. verbs.ErrInvalid if two devices have one name.
func New(c Config) (*Server, error) {
	s := &Server{
		group: c.PrivilegedGroup, log: c.Log, limited: new(peer.Log), users: peer.NewUsers(c.Limits, c.SubUIDs),
		connections: map[*connection]struct{}{}, hurry: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	own, err := peer.OwnNamespace()
	if err != nil {
		return nil, fmt.Errorf("%w: the network namespace: %w", verbs.ErrHost, err)
	}
	s.devices = &devices{namespace: own}
	s.containers = peer.NewContainers(c.Listen, s.serve, s.log)
	s.memory = memory.NewManager(s.users, s.log, s.limited)
	s.admin = admin.NewService(s.users, s.devices.view)
	if err := s.SetDevices(c.Devices...); err != nil {
		return nil, err
	}
	return s, nil
}

// SetDevices replaces the devices that clients can open, and notifies monitors. Existing sessions stay as they are:
// a session on a device that was removed ends when the device is closed.
func (s *Server) SetDevices(devices ...Source) error {
	added, removed, err := s.devices.set(devices)
	if err != nil || !s.admin.HasMonitors() {
		return err
	}
	for _, d := range removed {
		s.NoteDeviceEvent(d.Name(), verbs.EventDeviceFatal)
	}
	for _, d := range added {
		if source, describes := d.(provider.Doer); describes {
			if _, err := provider.Do(source, provider.QueryDevice, provider.None{}); err == nil {
				s.NoteDeviceOpened(d.Name())
			}
		}
	}
	return nil
}

// NoteDeviceEvent delivers an event of a device to monitors.
func (s *Server) NoteDeviceEvent(device string, event verbs.EventType) {
	s.admin.NoteDeviceEvent(device, event)
}

// NoteDeviceOpened reports to monitors that a device has a card.
func (s *Server) NoteDeviceOpened(device string) { s.admin.NoteDeviceOpened(device) }

// SetLimits changes the limits. What users have already stays, also above the new limits.
func (s *Server) SetLimits(limits peer.Limits) { s.users.SetLimits(limits) }

// Users returns the users that have connections, ordered by uid, without those of containers' sockets.
func (s *Server) Users() []peer.User { return s.users.List() }

// Refused returns the number of connections that were closed unread, since their users connect too often.
func (s *Server) Refused() uint64 { return s.users.Refused() }

// Clients returns the number of connections.
func (s *Server) Clients() int { return s.admin.Clients() }

// AddSocket makes the socket of a container, serves it until RemoveSocket or Close, and returns its path. If the name
// exists, AddSocket returns the existing path.
func (s *Server) AddSocket(name string) (path string, err error) { return s.containers.Add(name) }

// RemoveSocket closes the socket of a container, and ends the connections that came by it.
func (s *Server) RemoveSocket(name string) error {
	return s.containers.Remove(name, func(listener net.Listener) {
		s.removeListener(listener) // a connection that was accepted is ended below, or is not started
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.connections {
			if c.peer.Container == name {
				c.hangUp()
			}
		}
	})
}

// closePatience is how long Close waits for clients that block the release of their memory.
const closePatience = time.Second

// Close ends all connections, and frees what their sessions have. Clients get an event and errors. It
// does not close the devices. Closing again waits for the first Close, and does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	var err error
	if !s.closed {
		time.AfterFunc(closePatience, func() { close(s.hurry) })
	}
	s.closed = true
	for _, l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	s.listeners = nil
	for c := range s.connections {
		c.hangUp()
	}
	s.mu.Unlock()
	s.all.Wait()
	s.memory.Close(s.hurry)
	return err
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
