// SPDX-License-Identifier: Apache-2.0

package conn

// parts divides the response to a READ into parts. Each part is requested by a separate packet. Places and sizes are in
// packets of the response. The size of the parts may change while parts are outstanding; it then applies to new parts.
//
//	   old.begin        old.size           begin     size
//	──────┴──────────┬──────────┬────────────┴───┬───┬───┬──►
type parts struct {
	division
	old division // of the parts before begin
}

// division is a sequence of parts of the same size that begins at a place.
type division struct{ begin, size uint32 }

// left returns the number of packets from a place to the end of its part.
func (d *division) left(place uint32) uint32 { return d.size - (place-d.begin)%d.size }

// count returns the number of parts that have packets between two places.
func (d *division) count(from, to uint32) int {
	if from >= to {
		return 0
	}
	return int((to-d.begin+d.size-1)/d.size - (from-d.begin)/d.size)
}

// whole returns a division into a single part with a number of packets.
func whole(packets uint32) parts { return parts{division: division{size: packets}} }

// divide sets the size of the parts from place on. It has no effect until the parts before the last change of size are
// answered, as only two sizes are stored.
func (p *parts) divide(place, size, answered uint32) {
	if size == p.size || answered < p.begin {
		return
	}
	p.old = p.division
	p.division = division{begin: place, size: size}
}

// left returns the number of packets from a place to the end of its part.
func (p *parts) left(place uint32) uint32 {
	if place < p.begin {
		return min(p.begin-place, p.old.left(place))
	}
	return p.division.left(place)
}

// count returns the number of parts that have packets between two places.
func (p *parts) count(from, to uint32) int {
	n := p.division.count(max(from, p.begin), to)
	if from < p.begin {
		n += p.old.count(from, min(to, p.begin))
	}
	return n
}

// ends reports whether a part ends at a place.
func (p *parts) ends(place uint32) bool {
	switch {
	case place == p.begin:
		return true
	case place < p.begin:
		return (place-p.old.begin)%p.old.size == 0
	}
	return (place-p.begin)%p.size == 0
}
