package conn

import (
	"encoding/binary"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// The responses to a requester's READs and atomics, which come in order.

// receiveResponse takes a response to a READ or an atomic, which stands for so many packets (packetsIn).
func (r *Requester) receiveResponse(now time.Time, psn wire.PSN, p *wire.Packet, packets uint32) Reason {
	w := r.nextAnswer(now, psn)
	if w == nil {
		return StrayAnswer
	}
	if psn != w.missing() {
		r.lost(now, w.missing(), false)
		return OutOfSequence
	}
	mtu := uint32(r.MTU.Bytes())
	if !w.isAnswer(p, packets, mtu) {
		r.fail(ib.WCBadRespErr)
		return InvalidRequest
	}
	data := p.Payload()
	var original [atomicSize]byte
	if w.atomic() {
		binary.NativeEndian.PutUint64(original[:], p.Original())
		data = original[:]
	}
	if status := r.spread(w, int(w.answered*mtu), data); status != ib.WCSuccess {
		r.fail(status)
		return Protection
	}
	switch w.answered += packets; {
	case w.answered == w.packets:
		r.reads--
		r.finish(ib.WCSuccess)
	case w.parts.ends(w.answered):
		r.reads--
	}
	from := r.oldest
	r.move(psn.Plus(packets))
	r.moved(now, from)
	r.answered(now, psn.Plus(packets))
	return Taken
}

// nextAnswer is the oldest READ or atomic that is not answered, after all that its answer acknowledges;
// nil if the PSN is not one of its.
func (r *Requester) nextAnswer(now time.Time, psn wire.PSN) *work {
	for i := range r.works.count {
		if w := r.works.at(i); w.wantsAnswer() {
			if w.status != ib.WCSuccess || psn.Ahead(w.first) < 0 { // one that cannot be carried out has no PSN
				return nil
			}
			if r.acknowledge(now, w.first); r.works.count == 0 { // a completion was an overrun
				return nil
			}
			return r.works.at(0)
		}
	}
	return nil
}

// atomicSize is the size of what atomics work on, in bytes.
const atomicSize = 8

// isAnswer reports whether a packet, which stands for so many, can be the part of the response that is missing first.
func (w *work) isAnswer(p *wire.Packet, packets, mtu uint32) bool {
	if packets == 0 {
		return false
	}
	means, length := p.BTH().Opcode().Means(), uint32(len(p.Payload()))
	if answersAtomic := means.Is(wire.MeansAtomicAcknowledge); w.atomic() || answersAtomic {
		return w.atomic() && answersAtomic
	}
	left := w.partLeft(w.answered)
	return packets <= left && means.Is(wire.MeansEnd) == (packets == left) && length == min(w.length-w.answered*mtu, packets*mtu)
}
