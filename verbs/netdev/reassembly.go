// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"time"

	"github.com/roced/roced/verbs/ud"
)

// reassembly joins pieces. A source's pieces arrive in order, or the packet is dropped. It stores the incomplete
// packets of a limited number of sources, so memory is bounded; an evicted source loses a packet.
type reassembly struct {
	begun map[origin]*partial
}

const (
	maxPartials = 64
	// pieceLife is the maximum time between two pieces.
	pieceLife = 2 * time.Second
)

// origin is the sender, and whether it sent to the group, since the two may be reordered.
type origin struct {
	from    ud.Addr
	inGroup bool
}

// partial is an incomplete packet.
type partial struct {
	data []byte
	next header // the expected piece
	at   time.Duration
}

// add adds a piece. It returns the packet with its last piece; the packet is valid until the next call.
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

// end drops all further pieces until a first one arrives.
func (p *partial) end() { p.next.piece = maxPieces + 1 }

// begin reserves memory for a packet, which replaces the source's last one.
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

// pushOut evicts the source that has been idle for the longest time.
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
