// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"encoding/binary"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// The responses to a requester's READs and atomics. The peer sends them in the order of the requests.

// receiveResponse handles a response to a READ or an atomic, which stands for a number of packets (packetsIn).
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

// nextAnswer completes all requests that a response with this PSN acknowledges, and returns the oldest READ or atomic
// without a complete response. It returns nil if the PSN is not part of its response.
func (r *Requester) nextAnswer(now time.Time, psn wire.PSN) *work {
	for i := range r.works.count {
		if w := r.works.at(i); w.wantsAnswer() {
			if w.status != ib.WCSuccess || psn.Ahead(w.first) < 0 { // a request that cannot be executed has no PSN
				return nil
			}
			if r.acknowledge(now, w.first); r.works.count == 0 { // a completion overran the CQ
				return nil
			}
			return r.works.at(0)
		}
	}
	return nil
}

// atomicSize is the size of the operand of an atomic, in bytes.
const atomicSize = 8

// isAnswer reports whether a packet, which stands for a number of packets, is valid as the next part of the response.
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
