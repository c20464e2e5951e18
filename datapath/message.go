package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// message is the SEND or RDMA WRITE of the peer's that has begun and not ended.
type message struct {
	kind     wire.Meaning // MeansSend or MeansWrite; 0: there is none
	received uint32       // bytes that are in memory
	hasRecv  bool         // recv is taken, and not completed
	recv     ring.Recv

	addr   uint64 // of a WRITE, like the next two
	key    ring.RKey
	length uint32
}

// takePart carries out a packet of a SEND or a WRITE. What it checks comes before anything that it changes.
func (e *Engine) takePart(qp *QP, a *arrival) Drop {
	m, means := &qp.message, a.packet.BTH().Opcode().Means()
	kind, first, last := means.Kind(), means.Is(wire.MeansStart), means.Is(wire.MeansEnd)
	length := uint32(len(a.packet.Payload()))
	switch mtu := uint32(qp.MTU.Bytes()); {
	case !kind.Is(wire.MeansSend | wire.MeansWrite), first != (m.kind == 0), !first && kind != m.kind:
		return DropInvalidRequest
	case !last && length != mtu, last && length > mtu, last && !first && length == 0:
		return DropInvalidRequest
	case kind == wire.MeansWrite && qp.Access&ring.AccessRemoteWrite == 0:
		return DropInvalidRequest
	}
	begun := *m
	if first {
		m.begin(kind, &a.packet)
	}
	reason := e.store(qp, a, means, length)
	if reason == DropNoReceive {
		*m = begun
	}
	if reason != DropNone {
		return reason
	}
	m.received += length
	if !last {
		return DropNone
	}
	return e.endMessage(qp, a, means)
}

// begin notes what the first packet says.
func (m *message) begin(kind wire.Meaning, p *wire.Packet) {
	m.kind, m.received = kind, 0
	if kind == wire.MeansWrite {
		h := p.RETH()
		m.addr, m.key, m.length = h.Addr(), ring.RKey(h.RKey()), h.Length()
	}
}

// store writes a packet of the message in hand to memory.
func (e *Engine) store(qp *QP, a *arrival, means wire.Meaning, length uint32) Drop {
	m := &qp.message
	if means.Is(wire.MeansReceive) && !m.hasRecv && !e.takeRecv(qp) {
		return DropNoReceive
	}
	if means.Is(wire.MeansWrite) {
		return e.storeWrite(qp, a, means, length)
	}
	if recvRoom(&m.recv)-uint64(m.received) < uint64(length) {
		if qp.reliable() { // else the receive takes the next message
			e.failRecv(qp, a, ring.WCLocLenErr)
		}
		return DropNoRoom
	}
	pieces := a.pieces[:m.recv.SGECount]
	if !qp.Session.resolve(pieces, m.recv.SGEs[:m.recv.SGECount], qp.RecvPD, true) {
		e.failRecv(qp, a, ring.WCLocProtErr)
		return DropProtection
	}
	scatterAt(pieces, int(m.received), a.packet.Payload())
	return DropNone
}

// takeRecv takes a receive for the message in hand: the queue pair's own, or its SRQ's.
func (e *Engine) takeRecv(qp *QP) bool {
	m := &qp.message
	if !qp.Recv.Peek(&m.recv) && !qp.SRQ.peekNewer(&m.recv) {
		return false
	}
	qp.Recv.Advance()
	if qp.SRQ != nil {
		e.took(qp.SRQ)
	}
	m.hasRecv = true
	return true
}

// failRecv completes the message's receive with an error, which ends the queue pair.
func (e *Engine) failRecv(qp *QP, a *arrival, status ring.WCStatus) {
	e.completeTaken(qp, a, status)
	e.fail(qp, false)
}

// storeWrite writes a packet of a WRITE. The first one's key must be good for the whole message.
func (e *Engine) storeWrite(qp *QP, a *arrival, means wire.Meaning, length uint32) Drop {
	m := &qp.message
	if m.length > MaxMessage || m.length-m.received < length || means.Is(wire.MeansEnd) && m.length-m.received != length {
		return DropInvalidRequest
	}
	from, size := m.addr+uint64(m.received), length
	if means.Is(wire.MeansStart) {
		size = m.length
	}
	memory, ok := qp.remote(m.key, from, size, ring.AccessRemoteWrite)
	if !ok {
		return DropRemoteAccess
	}
	if length == 0 {
		return DropNone
	}
	if !means.Is(wire.MeansEnd) {
		writeRemote(memory, a.packet.Payload())
		return DropNone
	}
	// A program may poll for the last byte: the others are there before it.
	end := length - 1
	writeRemote(memory, a.packet.Payload()[:end])
	e.order.Add(1)
	writeRemote(memory[end:], a.packet.Payload()[end:])
	return DropNone
}

// scatterAt writes a payload into memory from an offset on.
func scatterAt(pieces [][]byte, offset int, payload []byte) {
	for _, piece := range pieces {
		if offset >= len(piece) {
			offset -= len(piece)
			continue
		}
		payload = payload[copy(piece[offset:], payload):]
		offset = 0
	}
}

// endMessage completes the message in hand.
func (e *Engine) endMessage(qp *QP, a *arrival, means wire.Meaning) Drop {
	m := &qp.message
	m.kind = 0
	if a.packet.Has(wire.HeaderIETH) && !qp.invalidate(ring.RKey(a.packet.InvalidateRKey())) {
		return DropInvalidRequest
	}
	qp.countMessage()
	if !means.Is(wire.MeansReceive) {
		return DropNone
	}
	m.hasRecv = false
	c := &a.cqe
	c.Set(m.recv.ID, ring.WCSuccess, ring.WCRecv, qp.Number, qp.CompletionToken)
	if means.Is(wire.MeansWrite) {
		c.Opcode = ring.WCRecvRDMAWithImm
	}
	c.ByteLen, c.SourceQP, c.Port = m.received, qp.PeerQPN, 1
	if a.packet.Has(wire.HeaderImm) {
		c.Flags |= ring.WCWithImm
		c.Imm = a.packet.Imm()
	}
	if a.packet.Has(wire.HeaderIETH) {
		c.Flags |= ring.WCWithInv
		c.Imm = a.packet.InvalidateRKey()
	}
	if !e.complete(qp.RecvCQ, c, a.packet.BTH().Solicited()) {
		return DropCQFull
	}
	return DropNone
}
