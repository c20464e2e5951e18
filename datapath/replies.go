package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// replies are what the responder still has to tell its peer. Responses to READs and atomics come first, in
// the order of their requests; then one ACK or NAK, which stands for all requests before it. The last
// responses are kept, as many as the peer may have outstanding, to be sent again.
type replies struct {
	kept    []reply       // a ring of them
	next    int           // the place of the next one, which is that of the oldest
	pending int           // responses that are not wholly sent
	due     bool          // an ACK or a NAK is to be sent
	nak     wire.Syndrome // zero: an ACK
	psn     wire.PSN      // of it
}

// reply is a response: to a READ, or to an atomic.
type reply struct {
	kind     wire.Meaning // of the request
	psn      wire.PSN     // of the first packet
	packets  uint32
	sent     uint32 // packets
	whole    bool   // all were sent, maybe before some are repeated
	msn      uint32
	key      ring.RKey // of a READ, like the next two
	addr     uint64
	length   uint32
	original uint64 // of an atomic
}

// add notes a response. It returns false if the peer has more requests outstanding than it may have.
func (r *replies) add(one *reply, most uint8) bool {
	r.keep(int(most))
	if len(r.kept) == 0 {
		return false
	}
	oldest := &r.kept[r.next]
	if oldest.sent < oldest.packets {
		if !oldest.whole {
			return false
		}
		r.pending-- // it is repeated for a late duplicate: the peer has gone on
	}
	*oldest = *one
	r.next = (r.next + 1) % len(r.kept)
	r.pending++
	return true
}

// keep makes room for the newest responses: for as many as the peer may have outstanding, and for all that
// were never wholly sent. The number may change in SQD, while the peer waits for them.
func (r *replies) keep(most int) {
	if len(r.kept) == most {
		return
	}
	owed := 0
	for i := range r.kept {
		if one := &r.kept[i]; !one.whole && one.packets > 0 {
			owed++
		}
	}
	if most = max(most, owed); len(r.kept) == most {
		return
	}
	old := *r
	r.kept, r.next, r.pending = make([]reply, most), 0, 0
	for i := range min(most, len(old.kept)) {
		one := old.newest(i)
		r.kept[most-1-i] = *one
		if one.sent < one.packets {
			r.pending++
		}
	}
}

// takeBack forgets the newest.
func (r *replies) takeBack() {
	newest := r.newest(0)
	*newest = reply{}
	r.next = (r.next + len(r.kept) - 1) % len(r.kept)
	r.pending--
}

// newest is the response that so many are newer than.
func (r *replies) newest(than int) *reply {
	return &r.kept[(r.next+len(r.kept)-1-than)%len(r.kept)]
}

// first is the oldest response that is not wholly sent; nil if there is none.
func (r *replies) first() *reply {
	if r.pending == 0 {
		return nil
	}
	n := len(r.kept)
	for i := range n {
		if one := &r.kept[(r.next+i)%n]; one.sent < one.packets {
			return one
		}
	}
	r.pending = 0
	return nil
}

// find is the response that has the PSN; nil if it is not kept.
func (r *replies) find(psn wire.PSN) *reply {
	for i := range r.kept {
		if one := r.newest(i); one.packets > 0 && uint32(psn-one.psn)&uint32(wire.PSNMask) < one.packets {
			return one
		}
	}
	return nil
}

// acceptTo has all requests before the expected one acknowledged, in the next round: a program that answers
// a message at once has its answer and the acknowledgement leave together.
func (e *Engine) acceptTo(qp *QP) {
	r := &qp.replies
	if r.due && r.nak != 0 {
		return
	}
	if !r.due {
		e.accepting = append(e.accepting, qp)
	}
	r.due, r.psn = true, plus(qp.ExpectedPSN, uint32(wire.PSNMask)) // the one before
}

// acceptLater gives the queue pairs a turn that have something to acknowledge.
func (e *Engine) acceptLater() {
	for _, qp := range e.accepting {
		e.turns.add(qp)
	}
	clear(e.accepting)
	e.accepting = e.accepting[:0]
}

// replyLast sends what a queue pair that ends has to tell: its program may have ended it because of a message
// that is not acknowledged yet.
func (e *Engine) replyLast(qp *QP) {
	r, sent := &qp.replies, 0
	for sent < sendTurn && (r.due || r.pending > 0) && e.reply(qp, &e.tx) == sentOne {
		sent++
	}
	if sent > 0 {
		e.flushLink()
	}
}

// refuse has the peer told why the expected packet was not taken.
func (e *Engine) refuse(qp *QP, s wire.Syndrome) {
	r := &qp.replies
	r.due, r.nak, r.psn = true, s, qp.ExpectedPSN
	e.turns.add(qp)
}

// repeat answers a duplicate again. A READ is read again, maybe only its end; an atomic is not carried out
// again, but answered as before.
func (e *Engine) repeat(qp *QP, a *arrival) {
	r, p := &qp.replies, &a.packet
	kind := p.BTH().Opcode().Means().Kind()
	if !kind.Is(wire.MeansAnswered) {
		e.acceptTo(qp)
		return
	}
	one := r.find(p.BTH().PSN())
	if one == nil || one.kind != kind {
		return
	}
	place := uint32(p.BTH().PSN()-one.psn) & uint32(wire.PSNMask)
	if kind == wire.MeansRead {
		skipped := place * uint32(qp.MTU.Bytes())
		if h := p.RETH(); h.Addr() != one.addr+uint64(skipped) || ring.RKey(h.RKey()) != one.key || h.Length() != one.length-skipped {
			return
		}
	}
	if one.sent == one.packets {
		r.pending++
	}
	one.sent = min(one.sent, place)
	e.turns.add(qp)
}

// reply sends the next packet of what there is to tell.
func (e *Engine) reply(qp *QP, d *departure) sending {
	c := qp.Connection
	frame := e.frameTo(c, d)
	if frame == nil {
		return sentLater
	}
	one := c.replies.first()
	if one == nil {
		e.sendACK(qp, d, frame)
		return sentOne
	}
	h := &d.transport
	*h = wire.Transport{PSN: plus(one.psn, one.sent), Opcode: wire.ServiceRC.Of(one.response()), Syndrome: qp.credits(), MSN: one.msn, Original: one.original}
	length := 0
	if one.kind == wire.MeansRead {
		var ok bool
		if length, ok = qp.readPart(one, frame[c.Template.PayloadOffsetOf(h.Opcode):]); !ok {
			e.endReading(qp, one)
			return sentOne
		}
	}
	if one.sent++; one.sent == one.packets {
		one.whole = true
		c.replies.pending--
	}
	e.sealConnected(qp, d, frame, length)
	return sentOne
}

// response is the operation of the next packet.
func (r *reply) response() wire.Opcode {
	if r.kind != wire.MeansRead {
		return wire.OpAtomicAcknowledge
	}
	return readResponses.At(r.sent, r.packets)
}

// readPart copies the next part of a READ, if its key is still good.
func (qp *QP) readPart(r *reply, to []byte) (length int, ok bool) {
	mtu := uint32(qp.MTU.Bytes())
	from, size := r.sent*mtu, min(r.length-r.sent*mtu, mtu)
	memory, ok := qp.remote(r.key, r.addr+uint64(from), size, ring.AccessRemoteRead)
	return readRemote(to[:size], memory), ok
}

// endReading refuses the rest of a READ whose key was revoked while it was answered.
func (e *Engine) endReading(qp *QP, r *reply) {
	e.counters.Drops[DropRemoteAccess]++
	missing := plus(r.psn, r.sent)
	qp.replies = replies{due: true, nak: wire.NAKRemoteAccess, psn: missing}
	if qp.State != ring.QPStateErr {
		qp.NoteEvent(ring.EventQPAccessErr)
		e.fail(qp, false)
	}
}

// sendACK sends the ACK or the NAK that is due.
func (e *Engine) sendACK(qp *QP, d *departure, frame []byte) {
	r, h := &qp.replies, &d.transport
	if !r.due {
		return
	}
	*h = wire.Transport{PSN: r.psn, Opcode: wire.ServiceRC.Of(wire.OpAcknowledge), Syndrome: qp.credits(), MSN: qp.msn}
	if r.nak != 0 {
		h.Syndrome = r.nak
	}
	r.due, r.nak = false, 0
	e.sealConnected(qp, d, frame, 0)
}

// credits is the ACK that says how many receives are posted. Those of an SRQ are not the peer's alone.
func (qp *QP) credits() wire.Syndrome {
	if qp.SRQ != nil {
		return wire.AckUncounted
	}
	return wire.AckCredits(qp.Recv.Waiting())
}
