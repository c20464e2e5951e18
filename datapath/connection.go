package datapath

import (
	"time"

	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// Connection is what a connected queue pair (RC, UC, XRC) has: its peer, the way to it, and the two halves of the
// machine that carries out requests (package conn). The control plane sets the exported fields in Do: those of
// the peer before RTR, the others at any time.
//
//	a packet ──► receive ──► Requester.Receive, Responder.Receive ──► Memory, CompleteSend, Fail, …
//	a turn   ──► send ─────► Next: headers ──► a frame ──► Fill: payload ──► seal ──► dispatch
//	a time   ──► expire ───► Requester.Expire
//
// After each of them the engine does what the halves ask for: a turn, a time.
type Connection struct {
	conn.Attr
	PeerQPN  wire.QPN
	Peer     wire.GID // whose packets are taken
	Path     *Path
	Template wire.Template // without Ethernet addresses: those are in Path

	Requester conn.Requester
	Responder conn.Responder

	engine      *Engine
	qp          *QP
	target      *SRQ // of an XRC target, that the packet in hand is for
	established bool // EventCommEst has been sent
	tooLong     bool // its path carries less than its path MTU, and the program was told
	deadline    deadline
	grants      [kinds]grant
	heard       heard
	congestion
}

// NoteTooLong tells the program, once until the queue pair is reset, that the path does not carry the connection's
// packets any more: its MTU has fallen. Nothing else follows but what follows when packets are lost. It runs in Do.
func (c *Connection) NoteTooLong() {
	if !c.tooLong {
		c.tooLong = true
		c.qp.NoteEvent(ring.EventPathMigErr)
	}
}

// NewConnection makes a connection of a service: ServiceRC, ServiceUC or ServiceXRC.
func NewConnection(service wire.Service) *Connection {
	return &Connection{Attr: conn.Attr{Service: service}}
}

func (c *Connection) touch() uint32 { return uint32(c.PeerQPN) + uint32(c.Responder.ExpectedPSN) }

// open makes the connection the queue pair's.
func (c *Connection) open(e *Engine, qp *QP) {
	c.engine, c.qp = e, qp
	c.Long = e.memory != nil
	r := &c.Requester
	r.Attr, r.QP, r.Counters = &c.Attr, c, &e.counters.Counters
	r.Queue, r.SigAll, r.MaxInline, r.MaxSendSGE = qp.Send, qp.SigAll, qp.MaxInline, qp.MaxSendSGE
	r.Mends = e.ahead != nil
	c.Responder.Attr, c.Responder.QP, c.Responder.Ahead = &c.Attr, c, e.ahead
	if e.others != nil {
		c.Responder.Atomics = &e.others.shared.atomics
	}
}

func (c *Connection) psn() *wire.PSN { return &c.Requester.PSN }

// enter begins what a state is for. The state in the queue pair is still the old one.
func (c *Connection) enter(state ring.QPState) {
	switch state {
	case ring.QPStateReset:
		if !c.qp.Session.faulted {
			c.replyLast()
		}
		c.established, c.tooLong, c.heard = false, false, heard{}
		c.congestion = congestion{}
		c.stop()
	case ring.QPStateErr, ring.QPStateSQE:
		c.stop()
	}
	c.Requester.Enter(state)
	c.Responder.Enter(state)
}

// halt is for a fault: the queue pair stops, and nothing of its program's is touched.
func (c *Connection) halt() {
	c.endGrant()
	c.engine.timers.stop(c)
}

// stop is for a queue pair that sends nothing new. Others may have what it had.
func (c *Connection) stop() {
	c.halt()
	c.admitOthers()
}

// close is for a queue pair that is removed.
func (c *Connection) close() {
	if !c.qp.Session.faulted {
		c.replyLast()
	}
	c.Responder.Forget()
	c.stop()
	c.engine.accepting.remove(c.qp)
}

// flush completes the receive that a message has taken.
func (c *Connection) flush() { c.Responder.Flush() }

// leaving: see Engine.Leaving.
func (c *Connection) leaving() bool {
	if !c.Reliable() || c.qp.State != ring.QPStateRTS {
		return c.qp.Send.Waiting() > 0
	}
	return c.Requester.Leaving()
}

// drops are the conn.Reasons as drops.
var drops = [conn.Reasons]Drop{
	conn.Taken: DropNone, conn.QPState: DropQPState, conn.Duplicate: DropDuplicate, conn.OutOfSequence: DropOutOfSequence,
	conn.StrayAnswer: DropStrayAnswer, conn.InvalidRequest: DropInvalidRequest, conn.RemoteAccess: DropRemoteAccess,
	conn.NoReceive: DropNoReceive, conn.NoRoom: DropNoRoom, conn.Protection: DropProtection, conn.CQFull: DropCQFull,
	conn.XRCDomain: DropXRCDomain, conn.NotInvalidated: DropInvalidRequest,
}

// receive checks a packet in this order: state, service, P_Key, peer. What it is decides which half takes it.
func (c *Connection) receive(a *arrival) Drop {
	qp, bth := c.qp, a.packet.BTH()
	switch {
	case !qp.State.Receives():
		return DropQPState
	case bth.Opcode() == wire.OpcodeCNP:
		return c.receiveCNP(a)
	case bth.Opcode().Service() != c.Service:
		return DropUnsupported
	case !qp.PKey.Matches(bth.PKey()):
		return DropPKey
	case !c.isPeer(a):
		return DropNotPeer
	}
	if a.marked {
		c.noteMarked()
	}
	answers := bth.Opcode().Means().Is(wire.MeansAnswer) // of a reliable service only
	if c.Service == wire.ServiceXRC && answers == (qp.Domain != nil) {
		return wrongHalf(answers)
	}
	if qp.State == ring.QPStateRTR && !c.established {
		c.established = true
		qp.NoteEvent(ring.EventCommEst)
	}
	if answers {
		reason := c.Requester.Receive(c.engine.now(), &a.packet)
		if reason == conn.Taken {
			c.heard.note(&c.qp.Session.grants)
		}
		c.follow()
		return drops[reason]
	}
	reason := c.Responder.Receive(&a.packet)
	switch c.Responder.Turn() {
	case conn.TurnNow:
		c.engine.turns.add(qp)
	case conn.TurnLater:
		c.engine.accepting.add(qp)
	}
	return drops[reason]
}

// wrongHalf is for a packet that an XRC queue pair has no half for: an answer to a target, or a request to an initiator.
func wrongHalf(answers bool) Drop {
	if answers {
		return DropStrayAnswer
	}
	return DropInvalidRequest
}

// follow does what the requester asks for: a turn, and a time.
func (c *Connection) follow() {
	if c.Requester.Turn() != conn.NoTurn {
		c.engine.turns.add(c.qp)
	}
	c.followGrant()
	c.engine.timers.follow(c)
}

// send sends packets, answers first.
func (c *Connection) send(d *departure) (moved, done bool) {
	e, qp := c.engine, c.qp
	defer qp.Send.Publish()
	defer c.recount()
	share := c.share()
	for sent := 0; sent < sendTurn; {
		if e.budget <= 0 || e.looping.pending() {
			return moved, false
		}
		d.packet.Packets = 1
		switch c.sendPacket(d, share) {
		case sentNone:
			return moved, true
		case sentLater:
			return moved, false
		case sentFlushed:
			some, done := e.flush(qp)
			return some || moved, done
		}
		sent, e.budget = sent+int(d.packet.Packets), e.budget-int(d.packet.Packets)
		moved = true
	}
	return true, false
}

// sending is what came of the next packet of a queue pair.
type sending uint8

const (
	sentOne     sending = iota
	sentNone            // there is none now
	sentLater           // the link has no free frame
	sentFlushed         // what is posted is to be flushed
)

// sendPacket sends an answer, or a packet of a request as far as the connection's share allows.
func (c *Connection) sendPacket(d *departure, share share) sending {
	switch state := c.qp.State; {
	case c.congested && c.yields(d):
		return c.yielded
	case c.Responder.Owes():
		return c.reply(d)
	case state == ring.QPStateErr || state == ring.QPStateSQE:
		return sentFlushed
	case state == ring.QPStateRTS || state == ring.QPStateSQD:
		return c.sendRequest(d, share)
	}
	return sentNone
}

// sendRequest sends the next packet of the requests.
func (c *Connection) sendRequest(d *departure, share share) sending {
	p := &d.packet
	switch c.next(share, p) {
	case conn.Idle:
		c.returnGrant(sends, reads)
		return sentNone
	case conn.Worked:
		return sentOne
	}
	if !c.admits(share, p) {
		return sentNone
	}
	if longest := c.longest(p); longest > 0 {
		c.Requester.Lengthen(p, longest)
	}
	frame := c.frame(d, p.Length)
	if frame == nil {
		return sentLater
	}
	var now time.Time
	begins := c.Reliable() && c.Requester.Begins()
	if begins {
		now = c.engine.now()
	}
	switch c.Requester.Fill(now, p, c.payload(frame, p)) {
	case conn.Idle:
		c.returnGrant(sends, reads)
		return sentNone
	case conn.Worked:
		return sentOne
	}
	if begins {
		c.engine.timers.follow(c)
	}
	c.spend(p)
	c.seal(d, frame)
	if !c.Reliable() {
		c.Requester.Sent()
	}
	return sentOne
}

// reply sends the next packet of what there is to tell the peer.
func (c *Connection) reply(d *departure) sending {
	p := &d.packet
	if c.Responder.Next(p) != conn.Ready {
		return sentOne
	}
	if longest := c.longest(p); longest > 0 {
		c.Responder.Lengthen(p, longest)
	}
	frame := c.frame(d, p.Length)
	if frame == nil {
		return sentLater
	}
	if reason := c.Responder.Fill(p, c.payload(frame, p)); reason != conn.Taken {
		c.engine.counters.Drops[drops[reason]]++
		return sentOne
	}
	c.seal(d, frame)
	return sentOne
}

// replyLast sends what a queue pair that ends has to tell: its program may have ended it because of a message
// that is not acknowledged yet.
func (c *Connection) replyLast() {
	e, sent := c.engine, 0
	for sent < sendTurn && c.Responder.Owes() && c.reply(&e.tx) == sentOne {
		sent += int(e.tx.packet.Packets)
	}
	if sent > 0 {
		e.flushLink()
	}
}

// frame gives a frame for a packet along the connection's path, with a payload of a length; nil if the link has none that
// is free.
func (c *Connection) frame(d *departure, length int) []byte {
	e := c.engine
	switch {
	case c.Path.state == PathOpen && !e.down:
		if length > c.MTU.Bytes() {
			return e.memory.ReserveLong()
		}
		return e.link.Reserve()
	case e.others != nil && c.Path.state == PathLocal && e.others.full(c.PeerQPN):
		return nil
	}
	return d.frame
}

// longest is the length of the longest payload that a packet may have if it is made a long one, in bytes; 0: it stays as
// it is.
func (c *Connection) longest(p *conn.Packet) int {
	if e := c.engine; c.Long && p.Length == c.MTU.Bytes() && c.Path.state == PathOpen && !e.down && !c.congested && e.carries(c.Path, c.MTU.Bytes()) {
		return e.memory.Longest()
	}
	return 0
}

// payload is where in a frame a packet's payload is.
func (c *Connection) payload(frame []byte, p *conn.Packet) []byte {
	return frame[c.Template.PayloadOffsetOf(p.Opcode):][:p.Length]
}

// seal writes headers and ICRC of the packet in hand around its payload, and sends it.
func (c *Connection) seal(d *departure, frame []byte) {
	e, h, length := c.engine, &d.packet.Transport, d.packet.Length
	h.DestQP, h.SourceQP, h.PKey, h.ID = c.PeerQPN, c.qp.Number, c.qp.PKey, e.nextID()
	n := c.Template.SealTransport(frame, h, length)
	if c.congested && length > 0 {
		c.flow.Sent(e.congestion, e.now(), n)
	}
	copy(frame, c.Path.ethernet[:])
	e.counters.Sent += uint64(h.Packets)
	e.counters.SentBytes += uint64(length)
	if c.qp.tally != nil {
		c.qp.tally.sent(uint64(h.Packets), length)
	}
	e.launch(c.qp, d, c.Path, nil, frame, n, min(length, c.MTU.Bytes())) // a path's MTU is that of one
}
