// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// player executes steps with a pair of Providers and with the model.
type player struct {
	testing.TB
	source *rand.PCG
	random *rand.Rand
	pair   rig.Pair
	world  *modelWorld
	sides  [2]*side
	step   int
	log    []string
	seen   tallies
	ids    uint64 // of requests
	bytes  map[*modelMR][]byte
	conn   *connection
}

// side is a program with its objects of the Provider and of the model. Closed objects are kept for a while. Calls that
// use them must fail.
type side struct {
	*player
	name    string
	end     rig.End
	ctx     *verbs.Context
	card    *modelCard
	barrier *barrier
	before  map[string]uint64 // drop counters of the card at the start
	counted map[string]uint64 // drops that the tallies include
	xrc     *xrcConnection    // the XRC connection whose initiator is at this side

	pds  []*playedPD
	mrs  []*playedMR
	cqs  []*playedCQ
	ahs  []*playedAH
	srqs []*playedSRQ
	qps  []*playedQP
}

// The objects that a side has.
type (
	playedPD struct {
		*verbs.PD
		model *modelPD
	}
	playedMR struct {
		*verbs.MR
		model  *modelMR
		closed bool
	}
	playedCQ struct {
		*verbs.CQ
		model  *modelCQ
		big    bool // too large to be overrun
		closed bool
	}
	playedAH struct {
		*verbs.AH
		model *modelAH
	}
	playedQP struct {
		*verbs.QP
		model  *modelQP
		sends  *playedCQ
		recvs  *playedCQ
		closed bool
	}
)

func newPlayer(t testing.TB, pair rig.Pair, seen tallies) *player {
	p := &player{TB: t, pair: pair, source: rand.NewPCG(0, 0), world: &modelWorld{}, seen: seen, bytes: map[*modelMR][]byte{}}
	p.random = rand.New(p.source)
	for i, end := range []rig.End{pair.A, pair.B} {
		s := &side{player: p, name: string(rune('A' + i)), end: end, counted: map[string]uint64{}}
		s.open()
		p.sides[i] = s
		p.world.cards = append(p.world.cards, s.card)
	}
	a, b := p.sides[0], p.sides[1]
	a.barrier, b.barrier = newBarrier(a), newBarrier(b)
	a.barrier.connect(b)
	b.barrier.connect(a)
	p.conn = newConnection(p)
	a.xrc, b.xrc = newXRCConnection(a, b), newXRCConnection(b, a)
	for _, s := range p.sides {
		s.createObjects()
	}
	return p
}

// play executes a step, which is determined by the seed and its number.
func (p *player) play(seed uint64, step int) (found *difference) {
	p.source.Seed(seed, uint64(step))
	p.step = step
	defer func() {
		if diverged, is := recover().(divergence); is {
			found = &difference{step, string(diverged), p.log}
		}
	}()
	p.world.arrivals, p.world.overran = p.world.arrivals[:0], false
	p.world.wave++
	p.seen["step"]++
	s := p.sides[p.random.IntN(2)]
	p.pick()(s)
	return nil
}
