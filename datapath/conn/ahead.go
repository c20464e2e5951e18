package conn

import (
	"math"

	"github.com/roced/roced/datapath/wire"
)

// Ahead is room for packets that have arrived while others before them are missing, so that the peer need not send
// them again. All responders that an engine runs share it; what does not fit is dropped, and comes again.
type Ahead struct {
	frames [][]byte // by their numbers, which begin with 1
	free   []number // of those that hold no packet
	most   int
	packet wire.Packet // the one that is carried out
}

// number is that of a kept frame; 0: none.
type number uint16

// NewAhead makes room for so many packets, at most 65535. Memory is taken as they come.
func NewAhead(packets int) *Ahead { return &Ahead{most: min(packets, math.MaxUint16)} }

// maxAhead is how far ahead of the expected packet one may be, in packets: as many as a window holds. A power of two.
const maxAhead = maxWindow

// ahead are a responder's packets, each at the place of its PSN.
type ahead struct {
	places *[maxAhead]number // 1 KiB; nil until there was one
	count  int
}

// keep keeps a packet that is so far ahead of the expected one, if there is room, and says whether it does. Long packets
// are not kept: they would take much memory.
func (r *Responder) keep(p *wire.Packet, distance int) bool {
	if r.Ahead == nil || distance >= maxAhead || len(p.Payload()) > r.MTU.Bytes() {
		return false
	}
	if r.ahead.places == nil {
		r.ahead.places = new([maxAhead]number)
	}
	place := &r.ahead.places[p.BTH().PSN()%maxAhead]
	if *place != 0 { // it came twice, since those behind the expected one are given back
		return false
	}
	if *place = r.Ahead.copy(p.Frame()); *place == 0 {
		return false
	}
	r.ahead.count++
	return true
}

// copy keeps a copy of a frame, unless there is no room.
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

// takeKept carries out what was kept behind the packet that has been missing. It says whether one of them asks for
// an acknowledgement.
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
		wire.Parse(r.Ahead.frames[n-1], p) // as it was when it came
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

// passBy gives back what was kept at the PSNs from one to the expected one: of a READ they are its response's.
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

// Keeps is how many packets are kept.
func (r *Responder) Keeps() int { return r.ahead.count }

// Forget gives back what is kept.
func (r *Responder) Forget() {
	for psn := wire.PSN(0); r.ahead.count > 0; psn++ {
		r.giveBack(psn)
	}
}
