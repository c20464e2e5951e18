package conn

import (
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// How a requester sends: Next describes the packet that has its PSN, Fill gathers the payload and counts it, and
// Sent is told when it has left.

// Next describes the next packet of the requests. share is how many packets the queue pair may have on its way at
// most; see window.
func (r *Requester) Next(share uint32, p *Packet) Step {
	r.window.share = share
	if r.rnrWait || r.Reliable() && !r.one && (r.windowFull() || r.waitsForOne()) {
		return Idle
	}
	if r.current == r.works.count && !r.take() {
		return Idle
	}
	w := r.works.at(r.current)
	switch {
	case w.status != ring.WCSuccess:
		return r.failFirst()
	case w.packets == 0: // it is carried out here
		r.finish(r.runLocal(w))
		return Worked
	}
	p.work, p.place = w, uint32(r.PSN-w.first)&uint32(wire.PSNMask)
	if w.wantsAnswer() && r.PSN == r.newest {
		if r.tooMany(r.mostReads(), p.place) {
			return Idle
		}
		if p.place == w.answered { // nothing of it is outstanding
			if w.part = w.packets; w.Opcode == ring.WRRDMARead && r.Part > 0 {
				w.part = r.Part
			}
		}
	}
	r.describe(p, 1)
	return Ready
}

// tooMany says that the next request of a READ or an atomic, which asks for its answer from a place on, is more than the
// peer may keep: more than most, or more than READs and atomics were outstanding at once, or would be with this one.
func (p *progress) tooMany(most int, place uint32) bool {
	return p.reads >= most || p.reads >= max(1, p.atOnce) && (place > 0 || p.reads > p.works.asking(p.reads, p.newest))
}

// Lengthen makes a packet that Next has described a long one, as far as its message and the window have more, with a
// payload of at most so many bytes. The last packet of a WRITE with immediate data takes a receive, and the others need
// none: it leaves alone. What is sent again after a time-out stays short: the peer may have some of it.
func (r *Requester) Lengthen(p *Packet, longest int) {
	left := p.work.packets - p.place
	if p.work.Opcode == ring.WRRDMAWriteWithImm {
		left--
	}
	if most := r.together(min(left, r.windowRoom()), longest); most > 1 && !r.one && !r.Paced && !r.silent {
		r.describe(p, most)
	}
}

// describe describes the packet of a request that has the PSN, and stands for so many.
func (r *Requester) describe(p *Packet, many uint32) {
	w := p.work
	p.Packets, p.psns = many, many
	p.PSN, p.Opcode, p.AckReq = r.PSN, r.Service.Of(w.operation(p.place, p.Packets)), false
	p.Length = w.describe(uint32(r.MTU.Bytes()), &p.Transport, p.place)
	if w.Opcode == ring.WRRDMARead { // a request has the PSNs of its response
		p.psns = w.partLeft(p.place)
	}
	if r.Reliable() {
		last := p.place+p.psns == w.packets && !w.wantsAnswer()
		p.asks = last || r.Paced || r.one || r.asks(p.Packets)
		p.AckReq = p.asks && !w.wantsAnswer()
	}
}

// Fill gathers the payload of a packet that Next has described, and moves on past it. It does not return Ready
// if the packet cannot be sent: the request's memory was taken away, or the request changed, since it was checked.
// The time counts for a reliable connection that Begins.
func (r *Requester) Fill(now time.Time, p *Packet, payload []byte) Step {
	if status := r.gather(p.work, payload, int(p.place)*r.MTU.Bytes()); status != ring.WCSuccess {
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
	if p.work.Opcode == ring.WRRDMARead {
		if r.PSN.Ahead(r.afterRead) > 0 { // not one that is sent again alone: others behind it are not answered either
			r.afterRead = r.PSN
		}
		r.asked += uint64(p.psns)
	}
	if !r.Reliable() { // nobody acknowledges: nothing is on its way
		r.oldest, r.afterRead = r.PSN, r.PSN
		return
	}
	if r.unasked += p.Packets; p.asks {
		r.unasked = 0
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
		r.finish(ring.WCSuccess)
	}
}
