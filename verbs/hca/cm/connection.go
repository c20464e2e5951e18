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

// Connection is one side of a connection, from its request until no packet of it is on its way any more.
//
//	Connect ─► REQ sent ──────── REP ─► REP received ── Confirm ─┐        Disconnect ─► DREQ sent ─ DREP ─┐
//	               │ REJ, no answer          │ Reject            ├─► established                          ├─► timewait ─► gone
//	REQ ─► REQ received ── Accept ─► REP sent ─ RTU, data ───────┘        DREQ ─► DREQ received ─ Disconnect ─┘
//
// Close ends it at any time, with the message that this takes. A connection whose owner has closed it
// stays until the peer has been told, or has not answered.
type Connection struct {
	Terms
	Type         verbs.QPType // of the queue pairs, as asked for
	Service      wire.ServiceID
	Source, Dest netip.AddrPort // who asked, and who was asked
	// Peer is what the peer says of its queue pair, seen from here: ResponderResources is what is asked of
	// this side, InitiatorDepth what this side may ask for.
	Peer  ib.ConnParam
	Owner any // of the events; who takes a connection from a listener sets it

	manager       *Manager
	listener      *Listener // at which it waits, or has waited
	state         connectionState
	local, remote wire.CommID
	localQPN      wire.QPN
	requestTID    uint64 // of the REQ, and of what answers it
	tid           uint64 // of a DREQ from here

	message  *[wire.MADLen]byte // that is repeated until it is answered
	retries  int                // that are left
	timeout  time.Duration      // of a try
	patience int                // retries of a message
	delayed  bool               // the peer has said that the answer to this try takes longer
	timer    timers.Timer[func(now time.Time)]
	place    *list.Element // among those without an owner
}

// Terms are what the queue pairs of both sides are set to.
type Terms struct {
	Path                               Path
	MTU                                wire.MTU
	RemoteQPN                          wire.QPN
	SQPSN, RQPSN                       wire.PSN // the first of what this side sends, and of what it receives
	AckTimeout                         uint8    // 4.096 µs × 2ⁿ
	RetryCount, RNRRetryCount          uint8
	ResponderResources, InitiatorDepth uint8 // READs and atomics at once: that this side serves, and asks for
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
	stateRejected // by this side, which rejects again if it is asked again
	stateGone
)

// The times of a connection are the kernel's: within 4.096 µs × 2²⁰ (4 s) a side answers, and a packet
// takes 2¹⁸ (1 s) at most.
const (
	responseTimeout = 20
	packetLifetime  = 18
	ackDelay        = 15 // of a card, as Soft-RoCE's
	ackTimeout      = packetLifetime + 1
	mraTimeout      = 24 // within which a program decides (69 s)
	maxCMRetries    = 15
)

// duration is 4.096 µs × 2ⁿ. What a peer may choose is between 67 ms and 69 s: nobody has this side send
// without a pause, or wait for hours.
func duration(exponent uint8) time.Duration {
	return 4096 * time.Nanosecond << min(max(exponent, 14), mraTimeout)
}

// connections are a manager's, as messages name them.
type connections struct {
	byID    map[wire.CommID]*Connection // by this side's id
	byPeer  map[peerID]*Connection
	byQP    map[peerQP]*Connection
	orphans *list.List // those without an owner, in the order in which they lost it
}

// peerID and peerQP name a connection as its peer does.
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

// newConnection gives a connection its numbers. The caller sets the rest.
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

// knowsPeer enters the peer's names.
func (c *Connection) knowsPeer(id wire.CommID, qpn wire.QPN) {
	c.remote, c.RemoteQPN = id, qpn
	c.manager.connections.byPeer[peerID{c.Path.Remote, id}] = c
	c.manager.connections.byQP[peerQP{c.Path.Remote, qpn}] = c
}

// connectionOf finds the connection that a message is about; nil if there is none, or it is not from its
// peer.
func (m *Manager) connectionOf(path Path, ids wire.CommIDs) *Connection {
	c := m.connections.byID[ids.Remote]
	if c == nil || c.Path.Remote != path.Remote || c.Path.Local != path.Local || c.state != stateREQSent && c.remote != ids.Local {
		return nil
	}
	m.hand = c.Owner
	return c
}

// Agreed says whether Terms are complete: both sides have named their queue pairs, and none has ended it.
func (c *Connection) Agreed() bool {
	return c.state >= stateREQReceived && c.state <= stateEstablished
}

// sender and turnAway implement caller.
func (c *Connection) sender() wire.GID       { return c.Path.Remote }
func (c *Connection) turnAway(now time.Time) { c.reject(now, wire.RejectConsumer, nil) }

func (c *Connection) ids() wire.CommIDs { return wire.CommIDs{Local: c.local, Remote: c.remote} }

// send sends a message. Its path has no flow label, so that it is the same for all connections with a peer.
func (c *Connection) send(write func(wire.MAD)) {
	path := c.Path
	path.FlowLabel = 0
	c.manager.send(path, write)
}

// keep sends a message, which resend sends again.
func (c *Connection) keep(write func(wire.MAD)) {
	c.message = new([wire.MADLen]byte)
	write(c.message[:])
	c.resend()
}

func (c *Connection) resend() { c.send(func(mad wire.MAD) { copy(mad, c.message[:]) }) }

// ask sends a message, and repeats it until answered, or until the retries are used up.
func (c *Connection) ask(now time.Time, write func(wire.MAD)) {
	c.retries = c.patience
	c.manager.timers.Set(&c.timer, now.Add(c.timeout))
	c.keep(write)
}

// answered ends the repetition.
func (c *Connection) answered() {
	c.manager.timers.Stop(&c.timer)
	c.message = nil
}

// expire repeats a message, or gives up, or ends the timewait.
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

// giveUp is for a peer that does not answer.
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

// Close ends the connection, and its events. Nothing happens if it has ended.
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

// abandon takes the connection from its owner. Of those that are left without, the oldest are forgotten
// when there are many.
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

// forgetPeer lets the peer's queue pair have another connection.
func (c *Connection) forgetPeer() {
	if key := (peerQP{c.Path.Remote, c.RemoteQPN}); c.manager.connections.byQP[key] == c {
		delete(c.manager.connections.byQP, key)
	}
}
