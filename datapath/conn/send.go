// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"time"

	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Sending by the requester: Next describes the packet at PSN if it is within the limits, Fill gathers the payload and
// advances PSN, and Sent is called after the packet has been sent.

// Next describes the next packet of the requests. It returns Limited if the packet exceeds the limits: the limit on
// READ responses if Packet.Responses is not 0, otherwise the limit on packets.
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
	case w.packets == 0: // a local request
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

// within reports whether a packet is within the limits.
//
// A retransmitted READ request is always within them, unless the local ACK timeout has expired: the responses to all
// timed-out READs would arrive at the same time.
//
// A connection that gets no grant before its peer has responded may send one more packet if no packet in flight
// requests an acknowledgement, as its share may have become small in the middle of a message. That packet requests one.
func (p *Packet) within(l *flight.Limits, r *Requester) bool {
	if responses := p.Responses(); responses > 0 {
		return r.Asked()+responses <= l.Reads || r.newest.Ahead(p.PSN) > 0 && r.InFlight()
	}
	return r.one || l.Grant > 0 && !(l.Begun && p.begins(l.Grant)) || p.hurries(l.Few, r) ||
		l.Few == 0 && r.Flying() > 0 && r.window.mute(r.Flying())
}

// begins reports whether the packet is the first of a message with more than the given number of packets.
func (p *Packet) begins(packets int) bool { return p.place == 0 && int(p.work.packets) > packets }

// hurries reports whether a packet is exempt from waiting for other connections: it is an atomic, or the packets in
// flight and the remaining packets of all requests are together at most few.
func (p *Packet) hurries(few int, r *Requester) bool {
	left := int(p.work.packets - p.place)
	return few > 0 && (p.work.atomic() || r.Flying()+left <= few && r.current+1 == r.works.count && r.Queue.Behind(r.works.count) == 0)
}

// tooMany reports whether one more request packet of a READ or an atomic, for its response from place on, may exceed
// the number of requests that the peer keeps. The limit is most, and, once READs are requested in parts, the number of
// READs and atomics that have been outstanding at the same time.
func (p *progress) tooMany(most int, place uint32) bool {
	return p.reads >= most || p.reads >= max(1, p.atOnce) && (place > 0 || p.reads > p.works.asking(p.reads, p.newest))
}

// lengthen extends a packet that Next has described to a long packet, as far as its message, the window and longest
// permit. The last packet of a WRITE with immediate data is sent alone, as only this packet consumes a receive request.
// Retransmissions after a timeout are not extended, as the peer may have received some of the packets.
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

// describe describes the packet at PSN, which stands for many packets.
func (r *Requester) describe(p *Packet, many uint32) {
	w := p.work
	p.Packets, p.psns = many, many
	p.PSN, p.Opcode, p.AckReq = r.PSN, r.Service.Of(w.operation(p.place, p.Packets)), false
	p.Length = w.describe(uint32(r.MTU.Bytes()), &p.Transport, p.place)
	if w.Opcode == ib.WRRDMARead { // the request packet uses the PSNs of its response
		p.psns = w.partLeft(p.place)
	}
	if r.Reliable() {
		last := p.place+p.psns == w.packets && !w.wantsAnswer()
		p.asks = last || r.one || r.window.asks(p.Packets)
		p.AckReq = p.asks && !w.wantsAnswer()
	}
}

// Fill gathers the payload of a packet that Next has described, and advances PSN. It returns Ready, unless the packet
// cannot be sent because the memory was deregistered, or the program changed the request, after the check. now is used
// only if the connection is reliable and Begins returns true.
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
		// A packet that is retransmitted alone does not move afterRead: later packets are not acknowledged either.
		if r.PSN.Ahead(r.afterRead) > 0 {
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

// waitsForOne reports whether sending pauses until the requester knows whether the peer keeps out-of-order packets.
func (r *Requester) waitsForOne() bool { return r.awaited && r.named && r.keeps == mayKeep }

// Sent completes the request of an unreliable connection whose last packet has been sent. It is called after each
// filled packet.
func (r *Requester) Sent() {
	if r.works.count > 0 && r.current == r.works.count { // none is left if a looped-back packet overran its CQ
		r.finish(ib.WCSuccess)
	}
}
