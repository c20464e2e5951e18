// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Sending by the responder. Receive (responder.go) records responses and requests a turn; Next and Fill then produce
// the packets.

// Owes reports whether a response, an ACK or a NAK is due.
func (r *Responder) Owes() bool { return r.responses.pending > 0 || r.responses.due }

// OwesData reports whether the next packet belongs to a response with data: to a READ or an atomic.
func (r *Responder) OwesData() bool { return r.responses.pending > 0 }

// Kept returns the number of kept responses.
func (r *Responder) Kept() int { return len(r.responses.kept) }

// Next describes the next packet: one of a response with data, or else an ACK or a NAK. longest is the maximum payload
// of a long packet, in bytes; 0: no long packets.
func (r *Responder) Next(longest int, p *Packet) Step {
	one := r.responses.first()
	p.response, p.Solicited, p.AckReq, p.Packets = one, false, false, 1
	switch {
	case one != nil:
		p.PSN, p.MSN, p.Original = one.psn.Plus(one.sent), one.msn, one.original
		r.describe(p, 1)
		if longest > 0 && p.Length == r.MTU.Bytes() {
			r.describe(p, r.together(one.packets-one.sent, longest))
		}
	case r.responses.due:
		p.Opcode, p.PSN, p.MSN, p.Syndrome = r.Service.Of(wire.OpAcknowledge), r.responses.psn, r.msn, r.responses.nak
		p.Length = 0
		if p.Syndrome == 0 {
			p.Syndrome = r.QP.Credits()
		}
	default:
		return Worked
	}
	return Ready
}

// describe describes the next packet of a response, which stands for many packets.
func (r *Responder) describe(p *Packet, many uint32) {
	one, mtu := p.response, uint32(r.MTU.Bytes())
	operation := one.next(many)
	p.Packets, p.Opcode, p.Length = many, r.Service.Of(operation), one.partLen(many*mtu, one.sent*mtu)
	if operation != wire.OpReadResponseMiddle { // the only one without an AETH
		p.Syndrome = r.QP.Credits()
	}
}

// Fill writes the payload of a packet that Next has described, and counts it as sent. If the key of a READ has been
// revoked, Fill refuses the rest of the response and returns RemoteAccess.
func (r *Responder) Fill(p *Packet, payload []byte) Reason {
	one := p.response
	if one == nil {
		r.responses.due, r.responses.nak = false, 0
		return Taken
	}
	for from := uint64(one.sent) * uint64(r.MTU.Bytes()); len(payload) > 0; {
		memory, ok := r.readable(one, from, uint32(len(payload)))
		if !ok {
			r.endReading(one)
			return RemoteAccess
		}
		n := readRemote(payload, memory)
		if n == 0 { // the region has signatures
			n, ok = len(payload), r.QP.MoveRemote(one.key, one.addr+from, payload, false)
		}
		if !ok {
			r.endReading(one)
			return RemoteAccess
		}
		payload, from = payload[n:], from+uint64(n)
	}
	if one.sent += p.Packets; one.sent == one.packets {
		one.whole = true
		r.responses.pending--
	}
	return Taken
}

// readable returns a part of the memory of a READ; ok is false if the access is no longer permitted.
func (r *Responder) readable(one *response, from uint64, length uint32) (memory []byte, ok bool) {
	if r.xrc() && !r.QP.Target(one.srqn) {
		return nil, false
	}
	return r.QP.Remote(one.key, one.addr+from, length, ib.AccessRemoteRead)
}

// endReading refuses the rest of a READ with a NAK and moves the queue pair to ERR. A repeated response only ends
// without a NAK: the peer may have received the first response, and the key may have been revoked for that reason.
func (r *Responder) endReading(one *response) {
	if one.whole {
		one.sent = one.packets
		r.responses.pending--
		return
	}
	r.responses = responses{due: true, nak: wire.NAKRemoteAccess, psn: one.psn.Plus(one.sent)}
	if r.state != ib.QPStateErr {
		r.QP.Note(ib.EventQPAccessErr)
		r.QP.Fail(ib.QPStateErr)
	}
}

// next returns the operation of the next packet, which stands for many packets.
func (r *response) next(many uint32) wire.Opcode {
	if r.kind != wire.MeansRead {
		return wire.OpAtomicAcknowledge
	}
	return readResponses.At(r.sent, many, r.packets)
}

// partLen returns the payload length of a packet that begins at offset and has at most most bytes.
func (r *response) partLen(most, offset uint32) int {
	if r.kind != wire.MeansRead {
		return 0
	}
	return int(min(r.length-offset, most))
}
