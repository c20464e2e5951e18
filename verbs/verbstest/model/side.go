// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// noTimeout is the context of calls that need no timeout.
var noTimeout = context.Background()

// open opens a side's context, joins the groups, and creates the model's card.
func (s *side) open() {
	var err error
	s.ctx, err = verbs.Open(rig.Judge(s, s.end.Provider))
	rig.Check(s, err)
	s.Cleanup(func() { rig.Check(s, s.ctx.Close()) })
	for _, group := range modelGroups {
		_, err := s.ctx.JoinMulticast(group, verbs.JoinFullMember)
		rig.Check(s, err)
	}
	port, err := s.ctx.QueryPort(1)
	rig.Check(s, err)
	s.world.mtu = port.ActiveMTU.Bytes()
	s.card = &modelCard{
		world: s.world, mac: s.end.MAC, own: map[verbs.GID]bool{}, qps: map[verbs.QPN]*modelQP{}, mrs: map[verbs.LKey]*modelMR{},
		groups: map[verbs.GID]*modelGroup{}, events: map[modelEvent]bool{}, drops: map[string]uint64{},
	}
	for _, own := range s.end.Addresses() {
		s.card.own[rig.GID(own)] = true
	}
}

// createObjects creates a first set of objects, so that short runs send and receive messages too.
func (s *side) createObjects() {
	s.readEvents()
	s.before = s.modelDrops()
	s.source.Seed(1, 2)
	for range 2 {
		s.createPD()
	}
	for range 4 {
		s.createMR()
	}
	s.createCQOf(bigCQ)
	for range 3 {
		s.createCQOf(1 + s.random.IntN(8))
		s.createQP()
	}
	for range 6 {
		s.createAH()
	}
}

// one returns a random object, rarely a closed one, or nil if there is none.
func one[T any](s *side, list []*T) (object *T) {
	if len(list) == 0 {
		return nil
	}
	for range 3 {
		object = list[s.random.IntN(len(list))]
		if closed, is := any(object).(interface{ isClosed() bool }); !is || !closed.isClosed() {
			return object
		}
	}
	return object
}

func (m *playedMR) isClosed() bool { return m.closed }
func (c *playedCQ) isClosed() bool { return c.closed }
func (a *playedAH) isClosed() bool { return a.model.closed }
func (q *playedQP) isClosed() bool { return q.closed }

// remove removes an object from a list.
func remove[T any](list []*T, object *T) []*T {
	return slices.DeleteFunc(list, func(other *T) bool { return other == object })
}

// chance returns true with a probability of 1/n.
func (p *player) chance(n int) bool { return p.random.IntN(n) == 0 }

func (s *side) device() *rig.Device { return &rig.Device{TB: s, End: s.end, Ctx: s.ctx} }

func (q *playedQP) String() string {
	return fmt.Sprintf("QP %v in %v", q.model.number, q.model.state)
}
