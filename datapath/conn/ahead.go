package conn

import (
	"slices"

	"github.com/roced/roced/datapath/wire"
)

// Ahead is room for packets that have arrived while others before them are missing, so that the peer need not send
// them again. All responders that an engine runs share it; what does not fit is dropped, and comes again.
type Ahead struct {
	free   [][]byte
	more   int         // frames that may still be made
	packet wire.Packet // the one that is carried out
}

// NewAhead makes room for so many packets. Memory is taken as they come.
func NewAhead(packets int) *Ahead { return &Ahead{more: packets} }

// maxAhead is how far ahead of the expected packet one may be, in packets: as many as a window holds. A power of two.
const maxAhead = maxWindow

// ahead are a responder's packets, each at the place of its PSN.
type ahead struct {
	frames [][]byte // nil until there was one
	count  int
}

// keep keeps a packet that is so far ahead of the expected one, if there is room.
func (r *Responder) keep(p *wire.Packet, distance int) {
	if r.Ahead == nil || distance >= maxAhead {
		return
	}
	if r.ahead.frames == nil {
		r.ahead.frames = make([][]byte, maxAhead)
	}
	place := &r.ahead.frames[p.BTH().PSN()%maxAhead]
	if *place != nil { // it came twice, since those behind the expected one are given back
		return
	}
	if *place = r.Ahead.copy(p.Frame()); *place != nil {
		r.ahead.count++
	}
}

// copy is a copy of a frame; nil if there is no room.
func (a *Ahead) copy(frame []byte) []byte {
	last := len(a.free) - 1
	switch {
	case last >= 0:
		one := a.free[last]
		a.free = a.free[:last]
		return append(one[:0], frame...)
	case a.more == 0:
		return nil
	}
	a.more--
	return slices.Clone(frame)
}

// takeKept carries out what was kept behind the packet that has been missing. It says whether one of them asks for
// an acknowledgement.
func (r *Responder) takeKept() (asks bool) {
	for r.ahead.count > 0 && !r.nakSent && r.state.Receives() {
		before := r.ExpectedPSN
		place := &r.ahead.frames[before%maxAhead]
		if *place == nil {
			r.nakSent = true
			r.refuse(wire.NAKSequence)
			return asks
		}
		frame, p := *place, &r.Ahead.packet
		*place = nil
		r.ahead.count--
		wire.Parse(frame, p) // as it was when it came
		if p.BTH().PSN() == before {
			r.takeExpected(p)
			asks = asks || p.BTH().AckReq() && !p.BTH().Opcode().Means().Is(wire.MeansAnswered)
		}
		r.passBy(before)
		*p = wire.Packet{}
		r.Ahead.free = append(r.Ahead.free, frame)
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
	if place := &r.ahead.frames[psn%maxAhead]; *place != nil {
		r.Ahead.free = append(r.Ahead.free, *place)
		*place = nil
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
