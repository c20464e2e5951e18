package datapath

import (
	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Connection is what a connected queue pair (RC, UC, XRC) has: its peer, the way to it, and the two halves of the
// machine that carries out requests (package conn). The control plane sets the exported fields in Do: those of
// the peer before RTR, the others at any time.
//
//	a packet ──► receive ──► Requester.Receive, Responder.Receive ──► Memory, CompleteSend, Fail, …
//	a turn   ──► send ─────► send.go
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
	flight      flight.Flow // what it may have in flight
	congestion
}

// NoteTooLong tells the program, once until the queue pair is reset, that the path does not carry the connection's
// packets any more: its MTU has fallen. Nothing else follows but what follows when packets are lost. It runs in Do.
func (c *Connection) NoteTooLong() {
	if !c.tooLong {
		c.tooLong = true
		c.qp.NoteEvent(ib.EventPathMigErr)
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
	c.flight.Open(&e.flights, &qp.Session.flights, c)
	c.Long = e.memory != nil
	r := &c.Requester
	r.Attr, r.QP, r.Counters = &c.Attr, c, &e.counters.Counters
	r.Queue, r.SigAll, r.MaxInline, r.MaxSendSGE = qp.Send, qp.SigAll, qp.MaxInline, qp.MaxSendSGE
	r.Mends = e.ahead != nil
	c.Responder.Attr, c.Responder.QP, c.Responder.Ahead = &c.Attr, c, e.ahead
	c.Responder.Atomics = e.peers.atomics
}

func (c *Connection) psn() *wire.PSN { return &c.Requester.PSN }

// enter begins what a state is for. The state in the queue pair is still the old one.
func (c *Connection) enter(state ib.QPState) {
	switch state {
	case ib.QPStateReset:
		if !c.qp.Session.faulted {
			c.replyLast()
		}
		c.established, c.tooLong = false, false
		c.congestion = congestion{}
		c.flight.Reset()
		c.stop()
	case ib.QPStateErr, ib.QPStateSQE:
		c.stop()
	}
	c.Requester.Enter(state)
	c.Responder.Enter(state)
}

// halt is for a fault: the queue pair stops, and nothing of its program's is touched.
func (c *Connection) halt() {
	c.flight.End()
	c.engine.timers.stop(c)
}

// stop is for a queue pair that sends nothing new. Others may have what it had.
func (c *Connection) stop() {
	c.halt()
	c.flight.Admit(c.engine.round.now())
}

// close is for a queue pair that is removed.
func (c *Connection) close() {
	if !c.qp.Session.faulted {
		c.replyLast()
	}
	c.Responder.Forget()
	c.stop()
	c.engine.round.accepting.remove(c.qp)
}

// flush completes the receive that a message has taken.
func (c *Connection) flush() { c.Responder.Flush() }

// leaving: see QP.Leaving.
func (c *Connection) leaving() bool {
	if !c.Reliable() || c.qp.State != ib.QPStateRTS {
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
	if qp.State == ib.QPStateRTR && !c.established {
		c.established = true
		qp.NoteEvent(ib.EventCommEst)
	}
	if answers {
		reason := c.Requester.Receive(c.engine.round.now(), &a.packet)
		if reason == conn.Taken {
			c.flight.Heard()
		}
		c.follow()
		return drops[reason]
	}
	reason := c.Responder.Receive(&a.packet)
	switch c.Responder.Turn() {
	case conn.TurnNow:
		c.engine.round.turns.add(qp)
	case conn.TurnLater:
		c.engine.round.accepting.add(qp)
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
		c.engine.round.turns.add(c.qp)
	}
	c.flight.Answered(c.engine.round.now(), c.Requester.InFlight())
	c.engine.timers.follow(c)
}

// Unanswered implements flight.Owner: of a queue pair without a time-out nothing would show that its packets are lost, and
// one that has failed still has their PSNs.
func (c *Connection) Unanswered() (sent, coming int) {
	if c.Timeout == 0 || !c.Requester.InFlight() || c.Requester.Begun() == 0 {
		return 0, 0
	}
	return c.Requester.Unanswered()
}

// Ready implements flight.Owner.
func (c *Connection) Ready() { c.engine.round.turns.add(c.qp) }
