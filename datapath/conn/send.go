// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"time"

	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Sending by the requester: Next describes the packet at PSN if it is within the limits, Fill gathers the payload and
// counts the packet, and Sent is called when it has left.

// Next describes the next packet of the requests. It returns Limited if the packet exceeds the limits; Packet.Responses
// distinguishes the kinds.
func (r *Requester) Next(l *flight.Limits, p *Packet) Step {
	r.window.limit(l)
	if r.rnrWait || r.Reliable() && !r.one && (r.window.full(r.Flying()) || r.waitsForOne()) {
		return Idle
	}
	if r.current == r.works.count && !r.take() {
		return Idle
	}
	w := r.works.at(r.current)
	switch {
	case w.status != ib.WCSuccess:
		return r.failFirst()
	case w.packets == 0: // it is executed here
		r.finish(r.runLocal(w))
		return Worked
	}
	place := uint32(r.PSN-w.first) & uint32(wire.PSNMask)
	p.work, p.place = w, place
	if w.wantsAnswer() && r.PSN == r.newest {
		if r.tooMany(r.mostReads(), place) {
			return Idle
		}
		if w.Opcode == ib.WRRDMARead {
			w.parts.divide(place, partOf(l, w.packets), w.answered)
		}
	}
	r.describe(p, 1)
	switch {
	case r.Reliable() && !p.within(l, r):
		return Limited
	case l.Longest > 0 && p.Length == r.MTU.Bytes():
		r.lengthen(p, l.Longest)
	}
	return Ready
}

// partOf returns the number of response packets that one request of a READ covers.
func partOf(l *flight.Limits, packets uint32) uint32 {
	if l.Part == 0 {
		return packets
	}
	return uint32(l.Part)
}

// within reports whether a packet is within the limits. A retransmitted READ request always is, unless the peer's
// response has timed out: all responses would come at once. A connection that gets no grant before its peer has
// responded may send one more packet if none in flight requests an acknowledgement, as its share may have become small
// in the middle of a message. That packet requests one.
func (p *Packet) within(l *flight.Limits, r *Requester) bool {
	if responses := p.Responses(); responses > 0 {
		return r.Asked()+responses <= l.Reads || r.newest.Ahead(p.PSN) > 0 && r.InFlight()
	}
	return r.one || l.Grant > 0 && !(l.Begun && p.begins(l.Grant)) || p.hurries(l.Few, r) ||
		l.Few == 0 && r.Flying() > 0 && r.window.mute(r.Flying())
}

// begins reports whether the packet is the first of a message of more than packets packets.
func (p *Packet) begins(packets int) bool { return p.place == 0 && int(p.work.packets) > packets }

// hurries reports whether a packet should not wait for packets of other connections: it is an atomic, or few packets
// are in flight and left.
func (p *Packet) hurries(few int, r *Requester) bool {
	left := int(p.work.packets - p.place)
	return few > 0 && (p.work.atomic() || r.Flying()+left <= few && r.current+1 == r.works.count && r.Queue.Behind(r.works.count) == 0)
}

// tooMany reports whether the next request packet of a READ or an atomic, for its response from a place on, exceeds the
// number that the peer may keep: more than most, or more than the READs and atomics that were outstanding at once,
// including this one.
func (p *progress) tooMany(most int, place uint32) bool {
	return p.reads >= most || p.reads >= max(1, p.atOnce) && (place > 0 || p.reads > p.works.asking(p.reads, p.newest))
}

// lengthen extends a packet that Next has described to a long one, as far as its message, the window and longest
// permit. The last packet of a WRITE with immediate data consumes a receive request, and the others need none: it is
// sent alone. Retransmissions after a timeout stay short: the peer may have some of the packets.
func (r *Requester) lengthen(p *Packet, longest int) {
	left := p.work.packets - p.place
	if p.work.Opcode == ib.WRRDMAWriteWithImm {
		left--
	}
	room := uint32(max(1, int(r.window.now())-r.Flying()))
	if most := r.together(min(left, room), longest); most > 1 && !r.one && !r.window.paced && !r.silent {
		r.describe(p, most)
	}
}

// describe describes the packet of a request at PSN, which stands for many packets.
func (r *Requester) describe(p *Packet, many uint32) {
	w := p.work
	p.Packets, p.psns = many, many
	p.PSN, p.Opcode, p.AckReq = r.PSN, r.Service.Of(w.operation(p.place, p.Packets)), false
	p.Length = w.describe(uint32(r.MTU.Bytes()), &p.Transport, p.place)
	if w.Opcode == ib.WRRDMARead { // a request has the PSNs of its response
		p.psns = w.partLeft(p.place)
	}
	if r.Reliable() {
		last := p.place+p.psns == w.packets && !w.wantsAnswer()
		p.asks = last || r.one || r.window.asks(p.Packets)
		p.AckReq = p.asks && !w.wantsAnswer()
	}
}

// Fill gathers the payload of a packet that Next has described, and advances PSN. It does not return Ready if the
// packet cannot be sent, because the memory was deregistered or the request changed after the check. now is used only
// for a reliable connection that Begins.
func (r *Requester) Fill(now time.Time, p *Packet, payload []byte) Step {
	if status := r.gather(p.work, payload, int(p.place)*r.MTU.Bytes()); status != ib.WCSuccess {
		p.work.status = status
		r.one, r.awaited = false, false
		r.cut(r.current + 1)
		return r.failFirst()
	}
	r.count(now, p)
	return Ready
}

// count advances the requester past a packet.
func (r *Requester) count(now time.Time, p *Packet) {
	if again := r.newest.Ahead(r.PSN); again > 0 {
		r.Counters.Retransmits += uint64(min(uint32(again), p.Packets))
	} else if p.work.wantsAnswer() {
		if p.place == 0 && r.atOnce < r.mostReads() {
			r.atOnce = max(r.atOnce, r.works.asking(r.reads, r.newest)+1)
		}
		r.reads++
	}
	if r.PSN = r.PSN.Plus(p.psns); r.PSN.Ahead(r.newest) > 0 {
		r.newest = r.PSN
	}
	if p.Packets > 1 {
		r.lastLong = r.PSN
	}
	if p.place+p.psns == p.work.packets {
		r.current++
	}
	if p.work.Opcode == ib.WRRDMARead {
		if r.PSN.Ahead(r.afterRead) > 0 { // not for a packet that is retransmitted alone: packets behind it are unanswered too
			r.afterRead = r.PSN
		}
		r.asked += uint64(p.psns)
	}
	if !r.Reliable() { // there are no acknowledgements, so no packets count as in flight
		r.oldest, r.afterRead = r.PSN, r.PSN
		return
	}
	if r.window.unasked += p.Packets; p.asks {
		r.window.unasked = 0
	}
	if r.Begins() {
		r.unsent = false
		if r.Mends {
			r.trip.begin(p.PSN, now)
		}
		r.startTimer(now)
	}
	if r.one {
		r.mended()
	}
}

// waitsForOne reports whether sending pauses until it is known whether the peer keeps packets ahead of a missing one.
func (r *Requester) waitsForOne() bool { return r.awaited && r.named && r.keeps == mayKeep }

// Sent is called when a filled packet of an unreliable connection has left: its request is completed.
func (r *Requester) Sent() {
	if r.works.count > 0 && r.current == r.works.count { // no request is left if the packet overran a CQ of its own card
		r.finish(ib.WCSuccess)
	}
}
