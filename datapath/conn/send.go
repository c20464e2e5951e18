package conn

import (
	"time"

	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// How a requester sends: Next describes the packet that has its PSN and is within the limits, Fill gathers the payload and
// counts it, and Sent is told when it has left.

// Next describes the next packet of the requests. It returns Limited if the packet is more than the limits allow:
// Packet.Responses says of which kind it is.
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
	case w.packets == 0: // it is carried out here
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

// partOf is how many packets of a READ's response one request is for.
func partOf(l *flight.Limits, packets uint32) uint32 {
	if l.Part == 0 {
		return packets
	}
	return uint32(l.Part)
}

// within reports whether a packet is within the limits. What was asked for before is asked for again, unless the peer is
// late: all would come at once. A connection that gets no grant before its peer has answered may send one more packet if
// none in flight requests an acknowledgement, since its share became small in the middle of a message. That one does.
func (p *Packet) within(l *flight.Limits, r *Requester) bool {
	if responses := p.Responses(); responses > 0 {
		return r.Asked()+responses <= l.Reads || r.newest.Ahead(p.PSN) > 0 && r.InFlight()
	}
	return r.one || l.Grant > 0 && !(l.Begun && p.begins(l.Grant)) || p.hurries(l.Few, r) ||
		l.Few == 0 && r.Flying() > 0 && r.window.mute(r.Flying())
}

// begins reports whether the packet is the first one of a message of more than a number of packets.
func (p *Packet) begins(packets int) bool { return p.place == 0 && int(p.work.packets) > packets }

// hurries reports whether a packet should not wait for packets of others: it is an atomic, or few packets are in flight and
// left.
func (p *Packet) hurries(few int, r *Requester) bool {
	left := int(p.work.packets - p.place)
	return few > 0 && (p.work.atomic() || r.Flying()+left <= few && r.current+1 == r.works.count && r.Queue.Behind(r.works.count) == 0)
}

// tooMany says that the next request of a READ or an atomic, which asks for its answer from a place on, is more than the
// peer may keep: more than most, or more than READs and atomics were outstanding at once, or would be with this one.
func (p *progress) tooMany(most int, place uint32) bool {
	return p.reads >= most || p.reads >= max(1, p.atOnce) && (place > 0 || p.reads > p.works.asking(p.reads, p.newest))
}

// lengthen makes a packet that Next has described a long one, as far as its message and the window have more, with a
// payload of at most so many bytes. The last packet of a WRITE with immediate data takes a receive, and the others need
// none: it leaves alone. What is sent again after a time-out stays short: the peer may have some of it.
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

// describe describes the packet of a request that has the PSN, and stands for so many.
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

// Fill gathers the payload of a packet that Next has described, and moves on past it. It does not return Ready
// if the packet cannot be sent: the request's memory was taken away, or the request changed, since it was checked.
// The time counts for a reliable connection that Begins.
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

// count moves the requester on past a packet.
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
		if r.PSN.Ahead(r.afterRead) > 0 { // not one that is sent again alone: others behind it are not answered either
			r.afterRead = r.PSN
		}
		r.asked += uint64(p.psns)
	}
	if !r.Reliable() { // nobody acknowledges: nothing is on its way
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

// waitsForOne says that nothing else is sent until it is known whether the peer keeps what is ahead.
func (r *Requester) waitsForOne() bool { return r.awaited && r.named && r.keeps == mayKeep }

// Begins says that with the next packet the wait for an answer begins.
func (r *Requester) Begins() bool { return r.unsent || r.deadline.IsZero() }

// Sent is called when a packet of an unreliable connection that was filled has left: its request is completed.
func (r *Requester) Sent() {
	if r.works.count > 0 && r.current == r.works.count { // none: its own packet overran a CQ
		r.finish(ib.WCSuccess)
	}
}
