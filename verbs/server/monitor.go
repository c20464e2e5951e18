package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// maxEvents is how many events are kept for a monitor that does not ask.
const maxEvents = 4096

// monitors are those who want to hear what happens. While there are none, nothing is kept, and nobody
// looks after sessions.
type monitors struct {
	any     atomic.Bool
	noticed chan struct{} // of capacity 1: the card has marked an object of some session

	mu  sync.Mutex
	all map[*monitor]struct{}
}

// monitor is one of them: what it has not read.
type monitor struct {
	peer   peer
	ready  chan struct{} // of capacity 1
	events []proto.Event // under monitors.mu
	lost   uint64
}

func newMonitors() monitors {
	return monitors{noticed: make(chan struct{}, 1), all: map[*monitor]struct{}{}}
}

// join begins to keep events for a peer.
func (l *monitors) join(p peer) *monitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &monitor{peer: p, ready: make(chan struct{}, 1)}
	l.all[m] = struct{}{}
	l.any.Store(true)
	return m
}

func (l *monitors) leave(m *monitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, m)
	l.any.Store(len(l.all) > 0)
}

// put tells all who may hear it of an event, of a client by a container's socket if there is a door. It does not wait.
func (l *monitors) put(e proto.Event, door string) {
	if !l.any.Load() {
		return
	}
	e.Time = uint64(time.Now().UnixNano())
	l.mu.Lock()
	defer l.mu.Unlock()
	for m := range l.all {
		if e.Client != 0 && !m.peer.seesAll() && (door != "" || m.peer.uid != e.UID) {
			continue
		}
		if len(m.events) == maxEvents {
			m.lost++
			continue
		}
		m.events = append(m.events, e)
		wake(m.ready)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take gives the oldest events of a monitor.
func (l *monitors) take(m *monitor) (g proto.Events) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(m.events), proto.MaxEvents)
	g.Events, m.events = m.events[:n:n], m.events[n:]
	g.Lost, m.lost = m.lost, 0
	if len(m.events) > 0 {
		wake(m.ready)
	}
	return g
}

// note is called by the card, which must not wait, when it has marked an object.
func (l *monitors) note() {
	if l.any.Load() {
		wake(l.noticed)
	}
}

// nextEvents waits for the next events. While it waits it has sessions say what the card has marked.
func (c *connection) nextEvents(ctx context.Context, m *monitor) (proto.Events, error) {
	l := &c.server.monitors
	for {
		if g := l.take(m); len(g.Events) > 0 || g.Lost > 0 {
			return g, nil
		}
		select {
		case <-m.ready:
		case <-l.noticed:
			c.server.reportNoticed()
		case <-ctx.Done():
			return proto.Events{}, ctx.Err()
		}
	}
}

// reportNoticed has all sessions report what the card has marked, to their programs and to monitors.
func (s *Server) reportNoticed() {
	s.mu.Lock()
	var sessions []*hca.Session
	for c := range s.connections {
		if session, _ := c.use(); session != nil {
			sessions = append(sessions, session)
		}
	}
	s.mu.Unlock()
	for _, session := range sessions {
		session.ReportNoticed()
	}
}

// monitor is the command of who wants to hear what happens. It waits in a goroutine of its own.
func monitorEvents(c *connection, m proto.Message) error {
	if _, err := proto.NextEvents.DecodeRequest(m.Body); err != nil {
		return err
	}
	if err := c.socket.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if c.peer.confined {
		return c.fail(m, fmt.Errorf("%w: programs in other network namespaces hear no events of the service", verbs.ErrPermission))
	}
	if c.monitor == nil {
		c.server.reportNoticed() // what was before is no news
		c.monitor = c.server.monitors.join(c.peer)
	}
	w, err := c.startWaiting(m.ID)
	if err != nil {
		return c.fail(m, err)
	}
	m.Body = nil // it is the next message's
	c.background.Go(func() {
		grant, err := c.nextEvents(w, c.monitor)
		c.endWaiting(m.ID)
		if answer(c, proto.NextEvents.Untyped, m, &grant, err) != nil {
			c.hangUp()
		}
	})
	return nil
}

// event is one about a client.
func (c *connection) event(kind proto.EventKind, device string) proto.Event {
	p := c.peer
	return proto.Event{Kind: kind, Client: c.number, PID: uint32(p.pid), UID: p.uid, Device: device, Command: c.command}
}

// tell tells monitors of a client that has come or gone.
func (c *connection) tell(kind proto.EventKind) {
	if c.server.monitors.any.Load() {
		_, device := c.use()
		c.server.monitors.put(c.event(kind, device), c.peer.door)
	}
}

// observe makes the function by which a session tells of its objects.
func (c *connection) observe(device string) func(hca.ObjectEvent) {
	return func(o hca.ObjectEvent) {
		if !c.server.monitors.any.Load() {
			return
		}
		kind := proto.ObjectEvent
		if o.Moved {
			kind = proto.QPFailed
		}
		e := c.event(kind, device)
		e.Type, e.State, e.Number = o.Type, o.State, o.Number
		if o.Kind != hca.ObjectQP {
			e.Number = uint32(hca.Distinct(c.slot, provider.Handle(o.Number)))
		}
		for number, is := range objectKinds {
			if is == o.Kind {
				e.Object = number
			}
		}
		c.server.monitors.put(e, c.peer.door)
	}
}

// NoteDeviceEvent tells monitors of an event of a device.
func (s *Server) NoteDeviceEvent(device string, event verbs.EventType) {
	s.monitors.put(proto.Event{Kind: proto.DeviceEvent, Device: device, Type: event}, "")
}

// NoteDeviceOpened tells monitors that a device has a card.
func (s *Server) NoteDeviceOpened(device string) {
	s.monitors.put(proto.Event{Kind: proto.DeviceOpened, Device: device}, "")
}
