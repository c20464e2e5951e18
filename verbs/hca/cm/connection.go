// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"container/list"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/timers"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

// Connection is one side of a connection, from its request until no packet of it is in flight.
//
//	Connect ─► REQ sent ──────── REP ─► REP received ── Confirm ─┐        Disconnect ─► DREQ sent ─ DREP ─┐
//	               │ REJ, no answer          │ Reject            ├─► established                          ├─► timewait ─► gone
//	REQ ─► REQ received ── Accept ─► REP sent ─ RTU, data ───────┘        DREQ ─► DREQ received ─ Disconnect ─┘
//
// Close ends it at any time, with the required message. A connection that its owner has closed remains until the peer
// has been notified, or has not responded.
type Connection struct {
	Terms
	Type         verbs.QPType // of the queue pairs, as requested
	Service      wire.ServiceID
	Source, Dest netip.AddrPort // the active and the passive side
	// Peer has the peer's parameters, from this side's view: ResponderResources is requested from this side,
	// InitiatorDepth is the limit of this side's requests.
	Peer  ib.ConnParam
	Owner any // of the events; set by the side that dequeues a connection from a listener

	manager       *Manager
	listener      *Listener // at which it waits, or has waited
	state         connectionState
	local, remote wire.CommID
	localQPN      wire.QPN
	requestTID    uint64 // of the REQ, and of its answers
	tid           uint64 // of a DREQ from here

	message  *[wire.MADLen]byte // repeated until it is answered
	retries  int                // remaining retries
	timeout  time.Duration      // of a try
	patience int                // retries of a message
	delayed  bool               // the peer has announced that its answer to this try takes longer
	timer    timers.Timer[func(now time.Time)]
	place    *list.Element // among those without an owner
}

// Terms has the parameters of the queue pairs of both sides.
type Terms struct {
	Path                               Path
	MTU                                wire.MTU
	RemoteQPN                          wire.QPN
	SQPSN, RQPSN                       wire.PSN // first PSN that this side sends, and that it receives
	AckTimeout                         uint8    // 4.096 µs × 2ⁿ
	RetryCount, RNRRetryCount          uint8
	ResponderResources, InitiatorDepth uint8 // outstanding READs and atomics that this side serves, and requests
}

type connectionState uint8

const (
	stateREQSent connectionState = iota
	stateREQReceived
	stateREPSent
	stateREPReceived
	stateEstablished
	stateDREQSent
	stateDREQReceived
	stateTimewait
	stateRejected // by this side, which rejects repeated messages again
	stateGone
)

// The times of a connection are the kernel's: a side responds within 4.096 µs × 2²⁰ (4 s), and a packet takes at most
// 2¹⁸ (1 s).
const (
	responseTimeout = 20
	packetLifetime  = 18
	ackDelay        = 15 // of a card, as Soft-RoCE's
	ackTimeout      = packetLifetime + 1
	mraTimeout      = 24 // time for a program's decision (69 s)
	maxCMRetries    = 15
)

// duration returns 4.096 µs × 2ⁿ. A time chosen by a peer is limited to between 67 ms and 69 s, so that no peer can
// make this side send without a pause, or wait for hours.
func duration(exponent uint8) time.Duration {
	return 4096 * time.Nanosecond << min(max(exponent, 14), mraTimeout)
}

// connections holds a manager's connections, by the names in messages.
type connections struct {
	byID    map[wire.CommID]*Connection // by this side's id
	byPeer  map[peerID]*Connection
	byQP    map[peerQP]*Connection
	orphans *list.List // those without an owner, in the order of losing it
}

// peerID and peerQP are the names of a connection at its peer.
type (
	peerID struct {
		peer wire.GID
		id   wire.CommID
	}
	peerQP struct {
		peer wire.GID
		qpn  wire.QPN
	}
)

func newConnections() connections {
	return connections{map[wire.CommID]*Connection{}, map[peerID]*Connection{}, map[peerQP]*Connection{}, list.New()}
}

// newConnection assigns a connection its numbers. The caller sets the rest.
func (m *Manager) newConnection(path Path) *Connection {
	c := &Connection{manager: m, tid: m.random(), patience: maxCMRetries}
	c.Path, c.AckTimeout = path, ackTimeout
	c.timer.Of = c.expire
	for c.local = wire.CommID(m.random()); m.connections.byID[c.local] != nil; {
		c.local = wire.CommID(m.random())
	}
	c.RQPSN = wire.PSN(m.random()) & wire.PSNMask
	m.connections.byID[c.local] = c
	return c
}

// knowsPeer adds the peer's names.
func (c *Connection) knowsPeer(id wire.CommID, qpn wire.QPN) {
	c.remote, c.RemoteQPN = id, qpn
	c.manager.connections.byPeer[peerID{c.Path.Remote, id}] = c
	c.manager.connections.byQP[peerQP{c.Path.Remote, qpn}] = c
}

// connectionOf returns the connection of a message, or nil if there is no such connection or the message is not from
// its peer.
func (m *Manager) connectionOf(path Path, ids wire.CommIDs) *Connection {
	c := m.connections.byID[ids.Remote]
	if c == nil || c.Path.Remote != path.Remote || c.Path.Local != path.Local || c.state != stateREQSent && c.remote != ids.Local {
		return nil
	}
	m.hand = c.Owner
	return c
}

// Agreed reports whether Terms are complete: both sides have named their queue pairs, and neither has ended the
// connection.
func (c *Connection) Agreed() bool {
	return c.state >= stateREQReceived && c.state <= stateEstablished
}

// sender and turnAway implement caller.
func (c *Connection) sender() wire.GID       { return c.Path.Remote }
func (c *Connection) turnAway(now time.Time) { c.reject(now, wire.RejectConsumer, nil) }

func (c *Connection) ids() wire.CommIDs { return wire.CommIDs{Local: c.local, Remote: c.remote} }

// send sends a message. Its path has no flow label, so it is the same for all connections with a peer.
func (c *Connection) send(write func(wire.MAD)) {
	path := c.Path
	path.FlowLabel = 0
	c.manager.send(path, write)
}

// keep sends a message, and keeps it for resend.
func (c *Connection) keep(write func(wire.MAD)) {
	c.message = new([wire.MADLen]byte)
	write(c.message[:])
	c.resend()
}

func (c *Connection) resend() { c.send(func(mad wire.MAD) { copy(mad, c.message[:]) }) }

// ask sends a message, and repeats it until answered, or until no retries remain.
func (c *Connection) ask(now time.Time, write func(wire.MAD)) {
	c.retries = c.patience
	c.manager.timers.Set(&c.timer, now.Add(c.timeout))
	c.keep(write)
}

// answered stops the repetition.
func (c *Connection) answered() {
	c.manager.timers.Stop(&c.timer)
	c.message = nil
}

// expire repeats a message, gives up, or ends the timewait.
func (c *Connection) expire(now time.Time) {
	c.manager.hand = c.Owner
	counters := &c.manager.counters
	switch {
	case c.state == stateTimewait:
		c.forget()
		c.tell(Event{Kind: EventTimewaitExit})
	case c.state == stateRejected:
		c.forget()
	case c.retries > 0:
		c.retries--
		c.delayed = false
		counters[Retries]++
		c.manager.timers.Set(&c.timer, now.Add(c.timeout))
		c.resend()
	default:
		counters[Timeouts]++
		c.giveUp(now)
	}
}

// giveUp handles a peer that does not respond.
func (c *Connection) giveUp(now time.Time) {
	if c.state == stateDREQSent {
		c.end(now, true)
		return
	}
	c.sendREJ(wire.AnsweredNone, wire.RejectTimeout, nil)
	c.forget()
	c.tell(Event{Kind: EventTimeout})
}

func (c *Connection) tell(e Event) {
	if e.Owner = c.Owner; e.Owner != nil {
		c.manager.tell(e)
	}
}

// Close ends the connection, and its events. It has no effect if the connection has ended.
func (c *Connection) Close(now time.Time) {
	switch c.state {
	case stateREQSent:
		c.sendREJ(wire.AnsweredNone, wire.RejectTimeout, nil)
		c.forget()
	case stateREQReceived, stateREPReceived, stateREPSent:
		c.reject(now, wire.RejectConsumer, nil)
	default:
		c.Disconnect(now)
	}
	c.abandon()
}

// abandon removes the connection from its owner. If there are too many without an owner, the oldest are forgotten.
func (c *Connection) abandon() {
	c.Owner = nil
	if c.state == stateGone || c.place != nil {
		return
	}
	orphans := c.manager.connections.orphans
	c.place = orphans.PushBack(c)
	if orphans.Len() > maxKept {
		orphans.Front().Value.(*Connection).forget()
	}
}

// forget removes the connection from the manager.
func (c *Connection) forget() {
	c.state = stateGone
	c.answered()
	c.forgetPeer()
	all := &c.manager.connections
	delete(all.byID, c.local)
	if key := (peerID{c.Path.Remote, c.remote}); all.byPeer[key] == c {
		delete(all.byPeer, key)
	}
	if c.place != nil {
		all.orphans.Remove(c.place)
		c.place = nil
	}
}

// forgetPeer allows the peer's queue pair to have another connection.
func (c *Connection) forgetPeer() {
	if key := (peerQP{c.Path.Remote, c.RemoteQPN}); c.manager.connections.byQP[key] == c {
		delete(c.manager.connections.byQP, key)
	}
}
