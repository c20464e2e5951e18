package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// message is the SEND or RDMA WRITE of the peer's that has begun and not ended.
type message struct {
	kind     messageKind
	received uint32 // bytes that are in memory
	hasRecv  bool   // recv is taken, and not completed
	recv     ring.Recv

	addr   uint64 // of a WRITE, like the next two
	key    ring.RKey
	length uint32
}

// messageKind is what a message does.
type messageKind uint8

const (
	messageNone messageKind = iota
	messageSend
	messageWrite
)

// part says what an operation is in its message.
type part struct {
	kind        messageKind
	first, last bool
	usesRecv    bool // it takes a receive, or completes one
}

// parts are the operations of SENDs and WRITEs.
var parts = [32]part{
	wire.OpSendFirst: {messageSend, true, false, true}, wire.OpSendMiddle: {messageSend, false, false, true},
	wire.OpSendLast: {messageSend, false, true, true}, wire.OpSendLastImmediate: {messageSend, false, true, true}, wire.OpSendLastInvalidate: {messageSend, false, true, true},
	wire.OpSendOnly: {messageSend, true, true, true}, wire.OpSendOnlyImmediate: {messageSend, true, true, true}, wire.OpSendOnlyInvalidate: {messageSend, true, true, true},
	wire.OpWriteFirst: {messageWrite, true, false, false}, wire.OpWriteMiddle: {messageWrite, false, false, false},
	wire.OpWriteLast: {messageWrite, false, true, false}, wire.OpWriteLastImmediate: {messageWrite, false, true, true},
	wire.OpWriteOnly: {messageWrite, true, true, false}, wire.OpWriteOnlyImmediate: {messageWrite, true, true, true},
}

// takePart carries out a packet of a SEND or a WRITE. What it checks comes before anything that it changes.
func (e *Engine) takePart(qp *QP, a *arrival) Drop {
	m, p := &qp.message, parts[a.packet.BTH().Opcode().Operation()]
	length := uint32(len(a.packet.Payload()))
	switch mtu := uint32(qp.MTU.Bytes()); {
	case p.kind == messageNone, p.first != (m.kind == messageNone), !p.first && p.kind != m.kind:
		return DropInvalidRequest
	case !p.last && length != mtu, p.last && length > mtu, p.last && !p.first && length == 0:
		return DropInvalidRequest
	case p.kind == messageWrite && qp.Access&ring.AccessRemoteWrite == 0:
		return DropInvalidRequest
	}
	begun := *m
	if p.first {
		m.begin(p.kind, &a.packet)
	}
	reason := e.store(qp, a, p, length)
	if reason == DropNoReceive {
		*m = begun
	}
	if reason != DropNone {
		return reason
	}
	m.received += length
	if !p.last {
		return DropNone
	}
	return e.endMessage(qp, a, p)
}

// begin notes what the first packet says.
func (m *message) begin(kind messageKind, p *wire.Packet) {
	m.kind, m.received = kind, 0
	if kind == messageWrite {
		h := p.RETH()
		m.addr, m.key, m.length = h.Addr(), ring.RKey(h.RKey()), h.Length()
	}
}

// store writes a packet of the message in hand to memory.
func (e *Engine) store(qp *QP, a *arrival, p part, length uint32) Drop {
	m := &qp.message
	if p.usesRecv && !m.hasRecv && !e.takeRecv(qp) {
		return DropNoReceive
	}
	if p.kind == messageWrite {
		return e.storeWrite(qp, a, p, length)
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
func (e *Engine) storeWrite(qp *QP, a *arrival, p part, length uint32) Drop {
	m := &qp.message
	if m.length > MaxMessage || m.length-m.received < length || p.last && m.length-m.received != length {
		return DropInvalidRequest
	}
	from, size := m.addr+uint64(m.received), length
	if p.first {
		size = m.length
	}
	memory, ok := qp.remote(m.key, from, size, ring.AccessRemoteWrite)
	if !ok {
		return DropRemoteAccess
	}
	if length == 0 {
		return DropNone
	}
	if !p.last {
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
func (e *Engine) endMessage(qp *QP, a *arrival, p part) Drop {
	m := &qp.message
	m.kind = messageNone
	if a.packet.Has(wire.HeaderIETH) && !qp.invalidate(ring.RKey(a.packet.InvalidateRKey())) {
		return DropInvalidRequest
	}
	qp.countMessage()
	if !p.usesRecv {
		return DropNone
	}
	m.hasRecv = false
	c := &a.cqe
	c.Set(m.recv.ID, ring.WCSuccess, ring.WCRecv, qp.Number, qp.CompletionToken)
	if p.kind == messageWrite {
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
