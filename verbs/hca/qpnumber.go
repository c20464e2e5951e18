package hca

import (
	"math/rand/v2"

	"github.com/roced/roced/datapath/wire"
)

// qpNumbers hands out queue pair numbers. The low bits are the place in the engine's table, so no
// two queue pairs share them. A number is used again as late as possible, and a card starts at a
// random one: so packets for a queue pair that was destroyed, in this process or an earlier one, do
// not reach another.
type qpNumbers struct{ last wire.QPN }

func newQPNumbers() qpNumbers { return qpNumbers{wire.QPN(rand.Uint32()) & wire.QPNMax} }

const numberPlaces = 1 << 16

func (s *qpNumbers) take(free func(wire.QPN) bool) wire.QPN {
	for {
		s.last = (s.last + 1) & wire.QPNMax
		place := s.last % numberPlaces
		if place > wire.QPNGSI && place != numberPlaces-1 && free(place) {
			return s.last
		}
	}
}
