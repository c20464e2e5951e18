package datapath

import (
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
)

// numbering gives packets their IPv4 identification, or leaves that to the link (see link.Link).
type numbering struct {
	id     uint16          // of the next packet
	solver *wire.Numbering // of identifications that the link does not see; nil if it does
}

func newNumbering(l link.Link) (n numbering) {
	if l.Numbers() {
		n.solver = new(wire.Numbering)
	}
	return n
}

// nextID is the identification of a packet to send.
func (n *numbering) nextID() uint16 {
	if n.solver != nil {
		return 0
	}
	n.id++
	return n.id - 1
}

// solve says whether a packet's ICRC is right for an identification that the link has not seen. If so, the packet
// has it from now on.
func (n *numbering) solve(p *wire.Packet) bool { return n.solver != nil && n.solver.Solve(p) }
