// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"math"

	"github.com/roced/roced/datapath/wire"
)

// Ahead stores out-of-order packets, which arrived before a missing one, so that the peer need not retransmit them. All
// responders of an engine share it. Packets that do not fit are dropped, and the peer retransmits them.
type Ahead struct {
	frames [][]byte    // indexed by number - 1
	free   []number    // numbers of the unused frames
	most   int         // maximum number of frames
	packet wire.Packet // the packet that is being executed
}

// number identifies a kept frame; 0: none.
type number uint16

// NewAhead returns an Ahead for a number of packets, at most 65535. Its memory is allocated when packets arrive.
func NewAhead(packets int) *Ahead { return &Ahead{most: min(packets, math.MaxUint16)} }

// maxAhead is the maximum distance of a kept packet from the expected one, in packets. It is the maximum window, and a
// power of two.
const maxAhead = maxWindow

// ahead holds the kept packets of one responder, indexed by PSN.
type ahead struct {
	places *[maxAhead]number // 1 KiB; nil until the first packet is kept
	count  int
}

// keep stores a packet, if there is room, and reports whether it did. distance is that of its PSN from the expected
// one. Long packets are not kept, as they would use much memory.
func (r *Responder) keep(p *wire.Packet, distance int) bool {
	if r.Ahead == nil || distance >= maxAhead || len(p.Payload()) > r.MTU.Bytes() {
		return false
	}
	if r.ahead.places == nil {
		r.ahead.places = new([maxAhead]number)
	}
	place := &r.ahead.places[p.BTH().PSN()%maxAhead]
	if *place != 0 { // a duplicate, as the places of packets before the expected one are free
		return false
	}
	if *place = r.Ahead.copy(p.Frame()); *place == 0 {
		return false
	}
	r.ahead.count++
	return true
}

// copy stores a copy of a frame and returns its number; 0 if there is no room.
func (a *Ahead) copy(frame []byte) (n number) {
	last := len(a.free) - 1
	switch {
	case last >= 0:
		n, a.free = a.free[last], a.free[:last]
	case len(a.frames) == a.most:
		return 0
	default:
		a.frames = append(a.frames, nil)
		n = number(len(a.frames))
	}
	one := &a.frames[n-1]
	*one = append((*one)[:0], frame...)
	return n
}

// takeKept executes the kept packets that follow the missing packet, after that has arrived. It reports whether one of
// them requests an acknowledgement.
func (r *Responder) takeKept() (asks bool) {
	for r.ahead.count > 0 && !r.nakSent && r.state.Receives() {
		before := r.ExpectedPSN
		place := &r.ahead.places[before%maxAhead]
		if *place == 0 {
			r.nakSent = true
			r.refuse(wire.NAKSequence)
			return asks
		}
		n, p := *place, &r.Ahead.packet
		*place = 0
		r.ahead.count--
		wire.Parse(r.Ahead.frames[n-1], p) // cannot fail: it was parsed on arrival
		if p.BTH().PSN() == before {
			r.takeExpected(p)
			asks = asks || p.BTH().AckReq() && !p.BTH().Opcode().Means().Is(wire.MeansAnswered)
		}
		r.passBy(before)
		*p = wire.Packet{}
		r.Ahead.free = append(r.Ahead.free, n)
	}
	return asks
}

// passBy discards the kept packets from a PSN up to the expected one: a READ request also uses the PSNs of its
// response.
func (r *Responder) passBy(from wire.PSN) {
	for n := min(r.ExpectedPSN.Ahead(from), maxAhead); n > 0 && r.ahead.count > 0; n-- {
		r.giveBack(from)
		from = from.Plus(1)
	}
}

func (r *Responder) giveBack(psn wire.PSN) {
	if place := &r.ahead.places[psn%maxAhead]; *place != 0 {
		r.Ahead.free = append(r.Ahead.free, *place)
		*place = 0
		r.ahead.count--
	}
}

// Keeps returns the number of kept packets.
func (r *Responder) Keeps() int { return r.ahead.count }

// Forget discards the kept packets.
func (r *Responder) Forget() {
	for psn := wire.PSN(0); r.ahead.count > 0; psn++ {
		r.giveBack(psn)
	}
}
