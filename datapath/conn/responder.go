// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Responder is the half of a connection that executes the peer's requests (IBA 9.7.4, 9.9.3).
//
//	PSN after the expected one    packets are missing: one NAK, and no other until the expected packet arrives;
//	                              the packet is kept until then if possible
//	PSN before the expected one   a duplicate: acknowledged or answered again, not executed again
//	the expected PSN              checked, executed, answered
type Responder struct {
	*Attr
	QP    QueuePair
	Ahead *Ahead // nil: out-of-order packets are dropped
	// Atomics is held during an atomic if other responders run concurrently; nil if they do not.
	Atomics *sync.Mutex

	ExpectedPSN wire.PSN // of the next request from the peer; set before RTR
	service
}

// service is the state of a responder between two resets.
type service struct {
	state     ib.QPState
	message   message // the current message, if it has several packets
	msn       uint32  // number of completed messages, modulo 2²⁴
	nakSent   bool    // a NAK has reported that the expected packet is missing or was not accepted
	responses responses
	ahead     ahead
	turn      Turn
	order     atomic.Uint32 // see keepOrder
}

// Enter prepares for a new state of the queue pair.
func (r *Responder) Enter(state ib.QPState) {
	if !state.Receives() {
		r.Forget()
	}
	if state == ib.QPStateReset {
		r.message, r.msn, r.nakSent, r.responses, r.turn = message{}, 0, false, responses{}, NoTurn
	}
	r.state = state
}

// Turn returns the requested turn and clears the request. A turn is requested if there are packets to send.
func (r *Responder) Turn() (t Turn) {
	t, r.turn = r.turn, NoTurn
	return t
}

// Receive handles a request packet of the peer.
func (r *Responder) Receive(p *wire.Packet) Reason {
	if !r.Reliable() {
		return r.receiveUC(p)
	}
	switch distance := p.BTH().PSN().Ahead(r.ExpectedPSN); {
	case distance > 0:
		if !r.nakSent {
			r.nakSent = true
			r.refuse(wire.NAKSequence)
		}
		if !r.keep(p, distance) {
			return OutOfSequence
		}
		return Taken
	case distance < 0:
		r.repeat(p)
		return Duplicate
	}
	from := r.ExpectedPSN
	reason, asks := r.takeExpected(p), p.BTH().AckReq() && !p.BTH().Opcode().Means().Is(wire.MeansAnswered)
	if r.ahead.count > 0 {
		r.passBy(from)
		asks = r.takeKept() || asks
	}
	if asks && !r.nakSent && r.state.Receives() {
		r.acknowledge()
	}
	return reason
}

// receiveUC handles a packet of an unreliable connection (IBA 9.8.2). If packets of a message are missing, the whole
// message is dropped, and its receive request is used for the next message.
func (r *Responder) receiveUC(packet *wire.Packet) Reason {
	bth := packet.BTH()
	gap := bth.PSN() != r.ExpectedPSN
	packets := r.packetsIn(packet)
	r.ExpectedPSN = bth.PSN().Plus(max(1, packets))
	first := bth.Opcode().Means().Is(wire.MeansStart)
	if gap || first {
		r.message.kind = 0
	}
	if !first && r.message.kind == 0 { // the beginning of its message is missing or was dropped
		return OutOfSequence
	}
	reason := r.takePart(packet, packets)
	if reason != Taken {
		r.message.kind = 0
	}
	return reason
}

// takeExpected executes the expected packet.
func (r *Responder) takeExpected(p *wire.Packet) Reason {
	packets, syndrome, reason := r.carryOut(p)
	switch {
	case syndrome.Kind() == wire.SyndromeRNR:
		r.nakSent = true
		r.refuse(syndrome)
	case syndrome.Kind() == wire.SyndromeNAK:
		r.refuse(syndrome)
		r.failPeer(syndrome)
	default:
		r.nakSent = false
		r.ExpectedPSN = r.ExpectedPSN.Plus(packets)
		if reason == NotInvalidated { // the queue pair has failed: acknowledge up to this request
			r.acknowledge()
			r.turn = TurnNow
		}
	}
	return reason
}

// carryOut executes the expected packet. It returns the number of PSNs that the packet uses, and the syndrome of the
// response; the zero syndrome is an ACK.
func (r *Responder) carryOut(p *wire.Packet) (packets uint32, s wire.Syndrome, reason Reason) {
	if r.xrc() && !r.QP.Target(p.SRQN()) {
		return 0, r.syndromeOf(XRCDomain), XRCDomain
	}
	switch kind := p.BTH().Opcode().Means().Kind(); {
	case kind == wire.MeansRead:
		return r.takeRead(p)
	case kind.Is(wire.MeansAtomic):
		s, reason = r.takeAtomic(p, kind)
		return 1, s, reason
	}
	packets = r.packetsIn(p)
	reason = r.takePart(p, packets)
	return packets, r.syndromeOf(reason), reason
}

// syndromeOf returns the syndrome of the response to a packet. An invalid SRQ number causes the NAK for invalid
// requests, like an invalid field (IBA 9.7.5.2.4), as A14 defines no separate NAK. A SEND whose key cannot be
// invalidated is acknowledged (class J): only the completion of its receive request reports the error.
func (r *Responder) syndromeOf(reason Reason) wire.Syndrome {
	switch reason {
	case Taken, NotInvalidated:
		return wire.SyndromeACK
	case NoReceive:
		return wire.SyndromeRNR | wire.Syndrome(r.MinRNRTimer&0x1F)
	case RemoteAccess:
		return wire.NAKRemoteAccess
	case Protection, CQFull:
		return wire.NAKRemoteOperational
	}
	return wire.NAKInvalidRequest
}

// acknowledge schedules an ACK for all requests before the expected packet. A scheduled NAK has priority.
func (r *Responder) acknowledge() {
	one := &r.responses
	if one.due && one.nak != 0 {
		return
	}
	if !one.due && r.turn == NoTurn {
		r.turn = TurnLater
	}
	one.due, one.psn = true, r.ExpectedPSN.Plus(uint32(wire.PSNMask)) // the PSN before ExpectedPSN
}

// refuse schedules a NAK for the expected packet.
func (r *Responder) refuse(s wire.Syndrome) {
	one := &r.responses
	one.due, one.nak, one.psn = true, s, r.ExpectedPSN
	r.turn = TurnNow
}

// repeat responds to a duplicate again. The memory of a READ is read again; a duplicate may request only the end of it.
// An atomic is not executed again, but its response is repeated.
func (r *Responder) repeat(p *wire.Packet) {
	kind := p.BTH().Opcode().Means().Kind()
	if !kind.Is(wire.MeansAnswered) {
		r.acknowledge()
		return
	}
	one := r.responses.find(p.BTH().PSN())
	if one == nil || one.kind != kind {
		return
	}
	place := uint32(p.BTH().PSN()-one.psn) & uint32(wire.PSNMask)
	if kind == wire.MeansRead {
		skipped := place * uint32(r.MTU.Bytes())
		if h := p.RETH(); h.Addr() != one.addr+uint64(skipped) || ib.RKey(h.RKey()) != one.key || h.Length() != one.length-skipped ||
			r.xrc() && p.SRQN() != one.srqn {
			return
		}
	}
	if one.sent == one.packets {
		r.responses.pending++
	}
	one.sent = min(one.sent, place)
	r.turn = TurnNow
}

// failPeer moves the queue pair to ERR after an invalid request of its peer. If the message has consumed a receive
// request, that completes with an error; otherwise an event reports the error (IBA 9.9.3, table 60).
func (r *Responder) failPeer(s wire.Syndrome) {
	if r.state == ib.QPStateErr { // after a CQ overrun, or an error of the receive request
		return
	}
	status, event := ib.WCRemInvReqErr, ib.EventQPReqErr
	if s == wire.NAKRemoteAccess {
		status, event = ib.WCLocAccessErr, ib.EventQPAccessErr // status of a WRITE with immediate data (IBA 11.6.2)
	}
	if r.message.hasRecv {
		r.completeTaken(status)
	} else {
		r.QP.Note(event)
	}
	r.QP.Fail(ib.QPStateErr)
}

// Flush completes the receive request that an incomplete message has consumed, if any, with WR_FLUSH_ERR. It is called
// before the other receive requests are flushed.
func (r *Responder) Flush() {
	if r.message.hasRecv {
		r.completeTaken(ib.WCWRFlushErr)
	}
}

// completeTaken completes, with an error, the receive request that a message has consumed.
func (r *Responder) completeTaken(status ib.WCStatus) {
	r.message.hasRecv = false
	if r.xrc() && !r.QP.Target(r.message.srqn) { // the SRQ was destroyed, with its receive requests
		return
	}
	r.QP.CompleteRecv(Completion{ID: r.message.recv.ID, Status: status, Opcode: ib.WCRecv, Solicited: true})
}

func (r *Responder) countMessage() { r.msn = (r.msn + 1) & uint32(wire.PSNMask) }
