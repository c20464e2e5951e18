package hca

import (
	"math/rand/v2"

	"github.com/roced/roced/datapath/wire"
)

// qpNumbers hands out queue pair numbers. Low bits pick the place in the
// engine's table, so two live ones never share them; a number is used
// again as late as can be, so that packets for a dead queue pair find none. A device starts at
// random, so that they do not find one of the next process either.
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
