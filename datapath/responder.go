package datapath

import (
	"encoding/binary"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// responder is the half of a connection that carries out the peer's requests (IBA 9.7.4, 9.9.3).
//
//	PSN ahead of the expected one   something was lost: one NAK, then silence until the expected one comes
//	PSN behind it                   a duplicate: acknowledged or answered again, not carried out again
//	the expected one                checked, carried out, answered
type responder struct {
	message message // in hand, of several packets
	msn     uint32  // messages completed
	told    bool    // the peer has been told that the expected packet is missing, or was not taken
	replies replies
}

// receiveRequest takes a packet of the peer's requests to a reliable connection.
func (e *Engine) receiveRequest(qp *QP, a *arrival) Drop {
	c := qp.Connection
	switch distance := ahead(a.packet.BTH().PSN(), c.ExpectedPSN); {
	case distance > 0:
		if !c.told {
			c.told = true
			e.refuse(qp, wire.NAKSequence)
		}
		return DropOutOfSequence
	case distance < 0:
		e.repeat(qp, a)
		return DropDuplicate
	}
	packets, syndrome, reason := e.carryOut(qp, a)
	switch {
	case syndrome.Kind() == wire.SyndromeRNR:
		c.told = true
		e.refuse(qp, syndrome)
	case syndrome.Kind() == wire.SyndromeNAK:
		e.refuse(qp, syndrome)
		e.failPeer(qp, a, syndrome)
	default:
		c.told = false
		c.ExpectedPSN = plus(c.ExpectedPSN, packets)
		if h := a.packet.BTH(); h.AckReq() && !h.Opcode().Means().Is(wire.MeansAnswered) {
			e.acceptTo(qp)
		}
	}
	return reason
}

// carryOut carries out the packet in hand, which is the expected one. It returns how many PSNs it has, and
// how the peer is to be told: by an ACK if that is the zero syndrome.
func (e *Engine) carryOut(qp *QP, a *arrival) (packets uint32, s wire.Syndrome, reason Drop) {
	switch kind := a.packet.BTH().Opcode().Means().Kind(); {
	case kind == wire.MeansRead:
		return e.takeRead(qp, a)
	case kind.Is(wire.MeansAtomic):
		s, reason = e.takeAtomic(qp, a, kind)
		return 1, s, reason
	}
	reason = e.takePart(qp, a)
	return 1, qp.syndromeOf(reason), reason
}

// syndromeOf is what a peer is told of a packet that was not taken.
func (qp *QP) syndromeOf(reason Drop) wire.Syndrome {
	switch reason {
	case DropNone:
		return wire.SyndromeACK
	case DropNoReceive:
		return wire.SyndromeRNR | wire.Syndrome(qp.MinRNRTimer&0x1F)
	case DropRemoteAccess:
		return wire.NAKRemoteAccess
	case DropProtection, DropCQFull:
		return wire.NAKRemoteOperational
	}
	return wire.NAKInvalidRequest
}

// failPeer ends a queue pair whose peer asked for what may not be. A receive that it had begun to use
// completes with that; else an event tells (IBA 9.9.3, table 60).
func (e *Engine) failPeer(qp *QP, a *arrival, s wire.Syndrome) {
	if qp.State == ring.QPStateErr { // by a completion that was an overrun, or by the receive's own error
		return
	}
	status, event := ring.WCRemInvReqErr, ring.EventQPReqErr
	if s == wire.NAKRemoteAccess {
		status, event = ring.WCRemAccessErr, ring.EventQPAccessErr
	}
	if qp.message.hasRecv {
		e.completeTaken(qp, a, status)
	} else {
		qp.NoteEvent(event)
	}
	e.fail(qp, false)
}

// takeRead notes a READ, whose response is sent packet by packet.
func (e *Engine) takeRead(qp *QP, a *arrival) (packets uint32, s wire.Syndrome, reason Drop) {
	c, h := qp.Connection, a.packet.RETH()
	r := reply{psn: c.ExpectedPSN, addr: h.Addr(), key: ring.RKey(h.RKey()), length: h.Length(), packets: packetsOf(h.Length(), c.MTU), kind: wire.MeansRead}
	switch {
	case c.message.kind != 0, c.Access&ring.AccessRemoteRead == 0, h.Length() > MaxMessage:
		return 0, wire.NAKInvalidRequest, DropInvalidRequest
	case !c.replies.add(&r, c.MaxDestRDAtomic):
		return 0, wire.NAKInvalidRequest, DropInvalidRequest
	}
	if _, ok := qp.remote(r.key, r.addr, r.length, ring.AccessRemoteRead); !ok {
		c.replies.takeBack()
		return 0, wire.NAKRemoteAccess, DropRemoteAccess
	}
	c.countMessage()
	c.replies.newest(0).msn = c.msn
	e.turns.add(qp)
	return r.packets, wire.SyndromeACK, DropNone
}

// takeAtomic carries out an atomic, and notes its response. It is atomic to all that the card does.
func (e *Engine) takeAtomic(qp *QP, a *arrival, kind wire.Meaning) (wire.Syndrome, Drop) {
	c, h := qp.Connection, a.packet.AtomicETH()
	r := reply{psn: c.ExpectedPSN, packets: 1, kind: kind}
	switch {
	case c.message.kind != 0, c.Access&ring.AccessRemoteAtomic == 0, h.Addr()%atomicSize != 0:
		return wire.NAKInvalidRequest, DropInvalidRequest
	case !c.replies.add(&r, c.MaxDestRDAtomic):
		return wire.NAKInvalidRequest, DropInvalidRequest
	}
	memory, ok := qp.remote(ring.RKey(h.RKey()), h.Addr(), atomicSize, ring.AccessRemoteAtomic)
	if !ok {
		c.replies.takeBack()
		return wire.NAKRemoteAccess, DropRemoteAccess
	}
	var number [atomicSize]byte
	readRemote(number[:], memory)
	original := binary.NativeEndian.Uint64(number[:])
	binary.NativeEndian.PutUint64(number[:], h.SwapAdd())
	switch {
	case kind == wire.MeansFetchAdd:
		binary.NativeEndian.PutUint64(number[:], original+h.SwapAdd())
		writeRemote(memory, number[:])
	case original == h.Compare():
		writeRemote(memory, number[:])
	}
	c.countMessage()
	done := c.replies.newest(0)
	done.original, done.msn = original, c.msn
	e.turns.add(qp)
	return wire.SyndromeACK, DropNone
}

func (c *Connection) countMessage() { c.msn = (c.msn + 1) & uint32(wire.PSNMask) }
