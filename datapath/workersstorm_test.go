// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
)

// TestStormOfSeveralWorkers is TestStorm with three concurrent connections between cards of three engines. All packets
// arrive at other engines than those of their queue pairs. Packets within one card come from other engines.
func TestStormOfSeveralWorkers(t *testing.T) {
	messages, seed := waittest.Wanted(t, stormVariable, waittest.Often(500))/5, rand.Uint64()
	for name, i := range map[string]link.Impairment{
		"nothing": {}, "loss and marks": {Loss: 0.01, Rate: 1e9, Mark: 50 * time.Microsecond},
		"all": {Loss: 0.01, Duplication: 0.02, Corruption: 0.01, Jitter: 10 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { stormOfWorkers(t, seed, messages, i) })
		})
	}
	t.Run("on one card", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { stormOnOneCard(t, seed, messages) })
	})
}

const stormWorkers = 3

// stormPair is a connection between two cards.
type stormPair struct {
	*pairOf
	of [2]*stormEnd
}

func stormOfWorkers(t *testing.T, seed uint64, messages int, i link.Impairment) {
	network := link.NewNetwork(seed)
	a, b := newCrew(t, network, 1, stormWorkers, crossed), newCrew(t, network, 2, stormWorkers, crossed)
	var pairs []*stormPair
	for n := range stormWorkers {
		pairs = append(pairs, newStormPair(t, seed+uint64(n), a, b, a.ends[n], b.ends[(stormWorkers-n)%stormWorkers], PathOpen))
	}
	network.Impair(i)
	stormOn(messages, pairs, a, b)
	t.Logf("%+v", network.Counters())
}

func stormOnOneCard(t *testing.T, seed uint64, messages int) {
	c := newCrew(t, link.NewNetwork(seed), 1, stormWorkers, straight)
	for n := range stormWorkers {
		c.addEnd(straight(stormWorkers + n))
	}
	var pairs []*stormPair
	for n := range stormWorkers {
		pairs = append(pairs, newStormPair(t, seed+uint64(n), c, c, c.ends[n], c.ends[stormWorkers+(n+1)%stormWorkers], PathLocal))
	}
	stormOn(messages, pairs, c)
}

// newStormPair connects ends that keep packets that arrive before a lost one, and implement congestion control.
func newStormPair(t *testing.T, seed uint64, from, to *crew, a, b *end, state PathState) *stormPair {
	from.meetIn(wire.ServiceRC, a, b, state)
	to.meetIn(wire.ServiceRC, b, a, state)
	for _, e := range []*end{a, b} {
		e.engine.Do(func() {
			e.c.Timeout = stormTimeout
			e.c.Template = e.c.Template.ECNCapable()
			e.modernise()
		})
	}
	return &stormPair{&pairOf{T: t, a: a, b: b}, [2]*stormEnd{newStormEnd(t, seed, a, b), newStormEnd(t, seed+1000, b, a)}}
}

// stormOn runs the engines in turns until all requests are done.
func stormOn(messages int, pairs []*stormPair, crews ...*crew) {
	for left := true; left; {
		left = false
		for _, p := range pairs {
			for _, s := range p.of {
				for s.posted < messages && s.posted < s.done+stormSlots {
					s.post()
				}
				left = left || s.done < messages
			}
		}
		moved := false
		for _, c := range crews {
			for _, e := range c.engines {
				some, _ := e.Round()
				moved = moved || some
			}
		}
		if !moved {
			time.Sleep(stormStep)
		}
		for _, p := range pairs {
			p.settle(p.of[0], p.of[1])
		}
	}
	for _, c := range crews {
		c.balanced()
	}
}
