package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// Source is a device that clients can open, such as a *hca.Card. If it is a provider.Doer, it answers queries without a
// session; while it has no card their error is verbs.ErrDeviceFatal.
type Source interface {
	Name() string
	NewSession(hca.SessionConfig) (*hca.Session, error)
}

// Limits are what a user may have at once, in all connections together, and what all users may. 0 is no
// limit but the card's.
type Limits struct {
	Connections int
	hca.Limits
	All quota.PoolLimits
	// Container is what the socket of a container may have, which counts as one user; nil is what a user may. All is
	// not used there.
	Container *Limits
}

// of are those of a user, or of a container's socket.
func (l *Limits) of(h holder) *Limits {
	if h.door != "" && l.Container != nil {
		return l.Container
	}
	return l
}

// Config is how a server works.
type Config struct {
	Devices []Source
	Limits  Limits
	// PrivilegedGroup may use privileged Q_Keys, besides root; -1 for none. Group 0 is a group.
	PrivilegedGroup int
	// SubUIDs is a file of whose further uids are (subuid(5)), /etc/subuid for example; empty for none. What
	// they have counts as their owner's.
	SubUIDs string
	Log     *slog.Logger // nil for none
	// Listen makes the socket of a container (AddSocket); nil for none.
	Listen func(name string) (l net.Listener, path string, err error)
}

// Server gives clients sessions on devices. It owns the connections, not the devices.
type Server struct {
	group      int
	log        *slog.Logger
	complaints complaints
	blocking   blocking
	owners     owners
	pool       *quota.Pool // of all users
	pace       pace
	monitors   monitors
	files      processFiles
	barred     barred // users that share no memory
	arenas     arenas
	shut       barred    // users that open no sessions
	namespace  Namespace // the service's own
	doors      doors

	mu          sync.Mutex
	devices     []Source
	limits      Limits
	accounts    map[holder]*account
	connections map[*connection]struct{}
	listeners   []net.Listener
	closed      bool
	last        uint64 // connection's number
	slots       slots
	all         sync.WaitGroup // connections

	hurry chan struct{} // closed when Close has waited long enough for memory
}

// New makes a server. verbs.ErrInvalid if two devices have one name.
func New(c Config) (*Server, error) {
	s := &Server{
		group: c.PrivilegedGroup, log: c.Log, limits: c.Limits,
		owners: owners{path: c.SubUIDs}, pool: quota.NewPool(c.Limits.All), monitors: newMonitors(),
		accounts: map[holder]*account{}, connections: map[*connection]struct{}{},
		doors: doors{make: c.Listen, open: map[string]door{}},
		hurry: make(chan struct{}),
	}
	s.doors.serve = s.serve
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.barred.why, s.shut.why = whyNoMemory, whyNoSessions
	s.files.all, s.files.holes.log = map[ownedFile]*processFile{}, s.log
	var err error
	if s.namespace, err = identifyNamespace("/proc/thread-self/ns/net"); err != nil {
		return nil, fmt.Errorf("%w: the network namespace: %w", verbs.ErrHost, err)
	}
	if err := s.SetDevices(c.Devices...); err != nil {
		return nil, err
	}
	return s, nil
}

// SetDevices replaces the devices that clients can open, and tells those who watch. Sessions that there are stay as they are:
// those on a device that is gone end when it is closed.
func (s *Server) SetDevices(devices ...Source) error {
	names := map[string]bool{}
	for _, d := range devices {
		if names[d.Name()] {
			return fmt.Errorf("%w: two devices are called %q", verbs.ErrInvalid, d.Name())
		}
		names[d.Name()] = true
	}
	s.mu.Lock()
	before := s.devices
	s.devices = slices.Clone(devices)
	s.mu.Unlock()
	if !s.monitors.any.Load() {
		return nil
	}
	for _, d := range before {
		if !slices.Contains(devices, d) {
			s.NoteDeviceEvent(d.Name(), verbs.EventDeviceFatal)
		}
	}
	for _, d := range devices {
		if source, describes := d.(provider.Doer); describes && !slices.Contains(before, d) {
			if _, err := provider.Do(source, provider.QueryDevice, provider.None{}); err == nil {
				s.NoteDeviceOpened(d.Name())
			}
		}
	}
	return nil
}

// SetLimits changes the limits. What users have already stays, also beyond them.
func (s *Server) SetLimits(limits Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = limits
	s.pool.SetLimits(limits.All)
	for of, a := range s.accounts {
		a.quota.SetLimits(limits.of(of).Limits)
	}
}

// retryAccept is how long Serve waits when a connection cannot be accepted, because there are no
// descriptors left for example.
const retryAccept = 100 * time.Millisecond

// Serve accepts connections until Close, which closes the listener. It is a *net.UnixListener of
// "unixpacket". Several can be served at once.
func (s *Server) Serve(listener net.Listener) error { return s.serve(listener, "") }

func (s *Server) serve(listener net.Listener, door string) error {
	if err := s.addListener(listener); err != nil {
		return err
	}
	for {
		accepted, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			s.removeListener(listener)
			return nil
		case err != nil:
			s.complain(s.log, nobody, "cannot accept connections", err)
			time.Sleep(retryAccept)
			continue
		}
		socket, is := accepted.(*net.UnixConn)
		if !is {
			_ = accepted.Close()
			return fmt.Errorf("%w: clients connect over a unix socket of type unixpacket, not over %s", verbs.ErrInvalid, listener.Addr().Network())
		}
		s.accept(socket, listener, door)
	}
}

func (s *Server) addListener(listener net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = listener.Close()
		return fmt.Errorf("serve: %w", verbs.ErrClosed)
	}
	refuseRightsOf(listener)
	s.listeners = append(s.listeners, listener)
	return nil
}

func (s *Server) removeListener(listener net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = slices.DeleteFunc(s.listeners, func(l net.Listener) bool { return l == listener })
}

// accept starts a connection, if its user may have another one.
func (s *Server) accept(socket *net.UnixConn, listener net.Listener, door string) {
	peer, err := peerOf(socket)
	if err != nil {
		s.complain(s.log, nobody, "cannot accept a connection", err)
		s.dismiss(socket, holder{owner: noUID}, nil)
		return
	}
	now := time.Now()
	peer.owner, peer.door = s.owners.of(peer.uid, now), door
	if !s.pace.may(peer.party(), now) {
		s.complain(s.log, peer.party(), "connections of a user are closed unread", tooOften(peer.holder()))
		s.dismiss(socket, peer.holder(), nil)
		return
	}
	account, err := s.enter(peer.holder())
	if err != nil {
		s.complain(s.log, peer.party(), "connections of a user are refused", err)
		s.dismiss(socket, peer.holder(), err)
		return
	}
	s.start(newConnection(s, socket, peer, account), listener)
}

// refuse tells a client why it is not served. It waits for nothing.
func refuse(socket *net.UnixConn, cause error) {
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) bool { // a hello that nobody has read would reset the connection
			_, _, _ = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_DONTWAIT)
			return true
		})
	}
	_ = proto.NewConn(socket, false).Send(proto.EncodeFailure(proto.Failure, proto.Hello.Number, 0, cause))
}

// start starts a connection, unless the server has been closed, or the listener that it came by removed: the next one of
// that name is another container's.
func (s *Server) start(c *connection, listener net.Listener) {
	s.mu.Lock()
	if !slices.Contains(s.listeners, listener) {
		s.mu.Unlock()
		c.end()
		return
	}
	defer s.mu.Unlock()
	s.last++
	c.number, c.slot = s.last, s.slots.acquire()
	s.connections[c] = struct{}{}
	s.all.Go(func() {
		c.run()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.connections, c)
		s.slots.release(c.slot)
	})
}

// closePatience is how long Close waits for clients that hold on to their memory.
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
	left := make(chan struct{})
	go func() {
		s.files.leaving.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-s.hurry:
	}
	s.files.holes.close()
	return err
}

// deviceOf finds a device by its name. An empty name is the only device.
func deviceOf(devices []Source, name string) (Source, error) {
	if name == "" && len(devices) == 1 {
		return devices[0], nil
	}
	for _, d := range devices {
		if d.Name() == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("%w: no device %q; there are %q", verbs.ErrInvalid, name, namesOf(devices))
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Server) sources() []Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.devices)
}

func namesOf(devices []Source) (names []string) {
	for _, d := range devices {
		names = append(names, d.Name())
	}
	return names
}
