// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// player takes steps with a pair and with the model.
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
	talk   *talk
}

// side is a program: its objects of the Provider and of the model. Objects that have been closed
// are kept for a while, to be used again, which must be refused.
type side struct {
	*player
	name    string
	end     rig.End
	ctx     *verbs.Context
	card    *modelCard
	beacon  *beacon
	before  map[string]uint64 // drops of the card
	counted map[string]uint64 // drops in the tallies
	xrc     *xrcTalk          // of which it has the initiator

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
		big    bool // it never overruns
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
	a.beacon, b.beacon = newBeacon(a), newBeacon(b)
	a.beacon.aim(b)
	b.beacon.aim(a)
	p.talk = newTalk(p)
	a.xrc, b.xrc = newXRCTalk(a, b), newXRCTalk(b, a)
	for _, s := range p.sides {
		s.furnish()
	}
	return p
}

// play executes a step, which is determined by the seed and its number.
func (p *player) play(seed uint64, step int) (found *difference) {
	p.source.Seed(seed, uint64(step))
	p.step = step
	defer func() {
		if parted, is := recover().(parting); is {
			found = &difference{step, string(parted), p.log}
		}
	}()
	p.world.arrivals, p.world.overran = p.world.arrivals[:0], false
	p.world.wave++
	p.seen["step"]++
	s := p.sides[p.random.IntN(2)]
	p.pick()(s)
	return nil
}
