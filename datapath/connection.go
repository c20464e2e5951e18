// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Connection is the service of a connected queue pair (RC, UC, XRC): the peer, the path to it, and the requester and
// responder that execute requests (package conn). The control plane sets the exported fields in Do: those of the peer
// before RTR, the others at any time.
//
//	a packet   ──► receive ──► Requester.Receive, Responder.Receive ──► Memory, CompleteSend, Fail, …
//	a turn     ──► send ─────► send.go
//	a deadline ──► expire ───► Requester.Expire
//
// After each of these calls the engine schedules the turn and the deadline that the requester and responder need.
type Connection struct {
	conn.Attr
	PeerQPN  wire.QPN
	Peer     wire.GID // the only address from which packets are accepted
	Path     *Path
	Template wire.Template // without Ethernet addresses: those are in Path

	Requester conn.Requester
	Responder conn.Responder

	engine      *Engine
	qp          *QP
	target      *SRQ // of an XRC target: the SRQ that the current packet is for
	established bool // EventCommEst has been sent
	tooLong     bool // NoteTooLong has notified the program
	deadline    deadline
	flight      flight.Flow // limits its packets in flight
	congestion
}

// NoteTooLong notifies the program that the path's MTU has fallen below the connection's, with EventPathMigErr, once
// until the queue pair is reset. Longer packets are dropped (DropPathMTU). It runs in Do or in a round.
func (c *Connection) NoteTooLong() {
	if !c.tooLong {
		c.tooLong = true
		c.qp.NoteEvent(ib.EventPathMigErr)
	}
}

// NewConnection returns a connection with the given service: ServiceRC, ServiceUC or ServiceXRC.
func NewConnection(service wire.Service) *Connection {
	return &Connection{Attr: conn.Attr{Service: service}}
}

func (c *Connection) touch() uint32 { return uint32(c.PeerQPN) + uint32(c.Responder.ExpectedPSN) }

// open attaches the connection to a queue pair.
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

// enter prepares for a new state. QP.State is still the old one.
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

// halt stops the queue pair after a fault, without accessing its program's memory.
func (c *Connection) halt() {
	c.flight.End()
	c.engine.timers.stop(c)
}

// stop ends sending of new requests, and makes this connection's share of packets in flight available to others.
func (c *Connection) stop() {
	c.halt()
	c.flight.Admit(c.engine.round.now())
}

// close ends the connection of a queue pair that is removed.
func (c *Connection) close() {
	if !c.qp.Session.faulted {
		c.replyLast()
	}
	c.Responder.Forget()
	c.stop()
	c.engine.round.accepting.remove(c.qp)
}

// flush completes the receive request that an incomplete message has consumed.
func (c *Connection) flush() { c.Responder.Flush() }

// leaving implements QP.Leaving.
func (c *Connection) leaving() bool {
	if !c.Reliable() || c.qp.State != ib.QPStateRTS {
		return c.qp.Send.Waiting() > 0
	}
	return c.Requester.Leaving()
}

// drops maps each conn.Reason to a Drop.
var drops = [conn.Reasons]Drop{
	conn.Taken: DropNone, conn.QPState: DropQPState, conn.Duplicate: DropDuplicate, conn.OutOfSequence: DropOutOfSequence,
	conn.StrayAnswer: DropStrayAnswer, conn.InvalidRequest: DropInvalidRequest, conn.RemoteAccess: DropRemoteAccess,
	conn.NoReceive: DropNoReceive, conn.NoRoom: DropNoRoom, conn.Protection: DropProtection, conn.CQFull: DropCQFull,
	conn.XRCDomain: DropXRCDomain, conn.NotInvalidated: DropInvalidRequest,
}

// receive checks a packet in this order: state, service, P_Key, peer. The opcode selects the requester or the
// responder.
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
	answers := bth.Opcode().Means().Is(wire.MeansAnswer) // only of a reliable service
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

// wrongHalf returns the drop reason for a response to an XRC target or a request to an XRC initiator.
func wrongHalf(answers bool) Drop {
	if answers {
		return DropStrayAnswer
	}
	return DropInvalidRequest
}

// follow schedules the turn and the deadline that the requester needs.
func (c *Connection) follow() {
	if c.Requester.Turn() != conn.NoTurn {
		c.engine.round.turns.add(c.qp)
	}
	c.flight.Answered(c.engine.round.now(), c.Requester.InFlight())
	c.engine.timers.follow(c)
}

// Unanswered implements flight.Owner. It returns zeros for a queue pair without a local ACK timeout, which would not
// detect the loss of its packets, and for one that has failed, whose requester still holds their PSNs.
func (c *Connection) Unanswered() (sent, coming int) {
	if c.Timeout == 0 || !c.Requester.InFlight() || c.Requester.Begun() == 0 {
		return 0, 0
	}
	return c.Requester.Unanswered()
}

// Ready implements flight.Owner.
func (c *Connection) Ready() { c.engine.round.turns.add(c.qp) }
