// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// message is the peer's current SEND or RDMA WRITE.
type message struct {
	extent
	hasRecv bool // recv is consumed, and not completed
	recv    ring.Recv
}

// extent is the type of a message and its received part.
type extent struct {
	kind     wire.Meaning // MeansSend or MeansWrite; 0: there is no message
	received uint32       // number of bytes that have been written to memory
	srqn     wire.SRQN    // XRC: the destination SRQ
	addr     uint64       // WRITE: the fields of the RETH, as the next two
	key      ib.RKey
	length   uint32
}

// takePart executes a packet of a SEND or a WRITE, which stands for a number of packets (packetsIn). It makes all
// checks before it changes any state.
func (r *Responder) takePart(packet *wire.Packet, packets uint32) Reason {
	m, means := &r.message, packet.BTH().Opcode().Means()
	kind, first, last := means.Kind(), means.Is(wire.MeansStart), means.Is(wire.MeansEnd)
	length := uint32(len(packet.Payload()))
	switch mtu := uint32(r.MTU.Bytes()); {
	case packets == 0:
		return InvalidRequest
	case !kind.Is(wire.MeansSend | wire.MeansWrite), first != (m.kind == 0), !first && kind != m.kind:
		return InvalidRequest
	case !last && length != packets*mtu, last && !first && length == 0:
		return InvalidRequest
	case r.xrc() && !first && packet.SRQN() != m.srqn:
		return InvalidRequest
	case kind == wire.MeansWrite && r.Access&ib.AccessRemoteWrite == 0:
		return InvalidRequest
	}
	begun := m.extent
	if first {
		m.begin(kind, packet)
	}
	reason := r.store(packet, means, length)
	if reason == NoReceive {
		m.extent = begun
	}
	if reason != Taken {
		return reason
	}
	m.received += length
	if !last {
		return Taken
	}
	return r.endMessage(packet, means)
}

// begin records the header fields of the first packet.
func (m *message) begin(kind wire.Meaning, p *wire.Packet) {
	m.kind, m.received = kind, 0
	if p.Has(wire.HeaderXRCETH) {
		m.srqn = p.SRQN()
	}
	if kind == wire.MeansWrite {
		h := p.RETH()
		m.addr, m.key, m.length = h.Addr(), ib.RKey(h.RKey()), h.Length()
	}
}

// store writes a packet of the current message to memory. The first packet that needs a receive request consumes it.
func (r *Responder) store(packet *wire.Packet, means wire.Meaning, length uint32) Reason {
	m := &r.message
	if means.Is(wire.MeansReceive) && !m.hasRecv {
		if m.hasRecv = r.QP.TakeRecv(&m.recv); !m.hasRecv {
			return NoReceive
		}
	}
	if means.Is(wire.MeansWrite) {
		return r.storeWrite(packet, means, length)
	}
	payload, room, mtu := packet.Payload(), m.recv.List().Length()-uint64(m.received), uint64(r.MTU.Bytes())
	fits := room >= uint64(length)
	if !fits { // of a long packet, store as many packets as fit
		payload = payload[:room/mtu*mtu]
	}
	if (fits || len(payload) > 0) && !r.QP.WriteRecv(m.recv.List(), int(m.received), payload) {
		r.failRecv(ib.WCLocProtErr)
		return Protection
	}
	if !fits {
		if r.Reliable() { // otherwise the receive request is used for the next message
			r.failRecv(ib.WCLocLenErr)
		}
		return NoRoom
	}
	return Taken
}

// failRecv completes the message's receive request with an error, which ends the queue pair.
func (r *Responder) failRecv(status ib.WCStatus) {
	r.completeTaken(status)
	r.QP.Fail(ib.QPStateErr)
}

// storeWrite writes a packet of a WRITE. The first packet's key must be valid for the whole message.
func (r *Responder) storeWrite(packet *wire.Packet, means wire.Meaning, length uint32) Reason {
	m := &r.message
	if m.length > ring.MaxMessage || m.length-m.received < length || means.Is(wire.MeansEnd) && m.length-m.received != length {
		return InvalidRequest
	}
	from, size := m.addr+uint64(m.received), length
	if means.Is(wire.MeansStart) {
		size = m.length
	}
	memory, ok := r.QP.Remote(m.key, from, size, ib.AccessRemoteWrite)
	if !ok {
		return RemoteAccess
	}
	if length == 0 {
		return Taken
	}
	payload := packet.Payload()
	for len(memory) < len(payload) { // the memory consists of pieces
		n := len(memory)
		if n == 0 { // the region has signatures
			return r.moveWrite(from, payload)
		}
		writeRemote(memory, payload[:n])
		payload, from, length = payload[n:], from+uint64(n), length-uint32(n)
		if memory, ok = r.QP.Remote(m.key, from, length, ib.AccessRemoteWrite); !ok {
			return RemoteAccess
		}
	}
	if !means.Is(wire.MeansEnd) {
		writeRemote(memory, payload)
		return Taken
	}
	r.writeEnd(memory[:length], payload)
	return Taken
}

// writeEnd writes the last packet of a WRITE. A program may poll the last byte and then write to the memory itself.
// Therefore the last byte is stored after all others and exactly once; copy could store some bytes twice. The store
// pairs with the program's load: rs_can_send in verbs/c/cm/rsring.c for a stream, find in rsiomap.c for its mappings.
func (r *Responder) writeEnd(memory, payload []byte) {
	before := len(memory) - tailSize(memory)
	writeRemote(memory, payload[:before])
	r.keepOrder()
	writeTail(memory[before:], payload[before:])
}

// keepOrder is a memory barrier: all stores before it become visible before those after it. It consists of an atomic
// store and a load, as an atomic add is not such a barrier on arm64 without LSE.
func (r *Responder) keepOrder() {
	r.order.Store(0)
	r.order.Load()
}

// moveWrite writes to memory with signatures.
func (r *Responder) moveWrite(from uint64, payload []byte) Reason {
	if !r.QP.MoveRemote(r.message.key, from, payload, true) {
		return RemoteAccess
	}
	return Taken
}

// endMessage completes the current message.
func (r *Responder) endMessage(packet *wire.Packet, means wire.Meaning) Reason {
	m := &r.message
	m.kind = 0
	if packet.Has(wire.HeaderIETH) && !r.QP.Invalidate(ib.RKey(packet.InvalidateRKey()), true) {
		r.failRecv(ib.WCRemInvReqErr)
		return NotInvalidated
	}
	r.countMessage()
	if !means.Is(wire.MeansReceive) {
		return Taken
	}
	m.hasRecv = false
	c := Completion{ID: m.recv.ID, Status: ib.WCSuccess, Opcode: ib.WCRecv, ByteLen: m.received, Solicited: packet.BTH().Solicited()}
	if means.Is(wire.MeansWrite) {
		c.Opcode = ib.WCRecvRDMAWithImm
	}
	if packet.Has(wire.HeaderImm) {
		c.Flags |= ib.WCWithImm
		c.Imm = packet.Imm()
	}
	if packet.Has(wire.HeaderIETH) {
		c.Flags |= ib.WCWithInv
		c.Imm = packet.InvalidateRKey()
	}
	if !r.QP.CompleteRecv(c) {
		return CQFull
	}
	return Taken
}
