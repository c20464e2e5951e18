package netdev

import (
	"time"

	"github.com/roced/roced/verbs/ud"
)

// reassembly puts pieces together. A source's pieces come in order, or the packet is dropped. It keeps the begun
// packets of few sources: one that is pushed out loses a packet, and no memory is filled.
type reassembly struct {
	begun map[origin]*partial
}

const (
	maxPartials = 64
	// pieceLife is how long pieces wait for the next.
	pieceLife = 2 * time.Second
)

// origin is who sends, and whether to the group: the two may overtake one another.
type origin struct {
	from    ud.Addr
	inGroup bool
}

// partial is a packet of which pieces are missing.
type partial struct {
	data []byte
	next header // the piece that has to come
	at   time.Duration
}

// add takes a piece. It gives the packet with its last one; the packet is good until the next call.
func (r *reassembly) add(now time.Duration, from origin, h header, payload []byte) ([]byte, drop) {
	p := r.begun[from]
	if h.piece == 0 {
		p = r.begin(now, from, p)
		p.next = h
	}
	if p == nil || p.next.piece != h.piece || p.next.packet != h.packet || p.next.protocol != h.protocol ||
		now-p.at > pieceLife {
		return nil, dropPiece
	}
	p.at = now
	p.data = append(p.data, payload...)
	p.next.piece++
	if len(p.data) > longestPacket || h.more && p.next.piece >= maxPieces {
		p.end()
		return nil, dropTooLong
	}
	if h.more {
		return nil, dropNone
	}
	p.end()
	return p.data, dropNone
}

// end has all further pieces dropped until a first one comes.
func (p *partial) end() { p.next.piece = maxPieces + 1 }

// begin makes room for a packet, in the place of the source's last one.
func (r *reassembly) begin(now time.Duration, from origin, p *partial) *partial {
	if p == nil {
		if len(r.begun) >= maxPartials {
			r.pushOut()
		}
		p = &partial{}
		r.begun[from] = p
	}
	p.data, p.at = p.data[:0], now
	return p
}

// pushOut forgets the source that has sent nothing for the longest time.
func (r *reassembly) pushOut() {
	var oldest origin
	var p *partial
	for from, other := range r.begun {
		if p == nil || other.at < p.at {
			oldest, p = from, other
		}
	}
	delete(r.begun, oldest)
}
