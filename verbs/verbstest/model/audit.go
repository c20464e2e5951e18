// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"context"
	"errors"
	"maps"

	"github.com/roced/roced/verbs"
)

// Steps that compare the state of the Provider's objects with the model.

// write changes a part of a region's memory.
func (s *side) write() {
	m := one(s, s.mrs)
	if m == nil || m.closed {
		return
	}
	from := s.random.IntN(len(m.model.memory))
	n := min(s.random.IntN(300), len(m.model.memory)-from)
	s.note(s, "write %d bytes at %d of MR %#x", n, from, m.model.lkey)
	s.fill(m, from, n)
}

// readEvents compares the unread events.
func (s *side) readEvents() {
	s.note(s, "read events")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	got := map[modelEvent]bool{}
	for {
		event, err := s.ctx.GetAsyncEvent(ended)
		if errors.Is(err, context.Canceled) {
			break
		}
		s.want("read events", err, 0)
		if e := s.eventOf(event); e != (modelEvent{}) {
			got[e] = true
		}
	}
	if !maps.Equal(got, s.card.events) {
		s.differ("events %v, the model has %v", got, s.card.events)
	}
	for e := range got {
		s.seen["event "+e.kind.String()]++
	}
	clear(s.card.events)
}

// eventOf converts an event of an object to the model's. The model has no port events.
func (s *side) eventOf(event verbs.AsyncEvent) (e modelEvent) {
	for _, c := range s.cqs {
		if c.CQ == event.CQ {
			return modelEvent{kind: event.Type, cq: c.model}
		}
	}
	for _, q := range s.srqs {
		if q.SRQ == event.SRQ {
			return modelEvent{kind: event.Type, srq: q.model}
		}
	}
	for _, q := range s.qps {
		if q.QP == event.QP {
			return modelEvent{kind: event.Type, qp: q.model}
		}
	}
	if connEnd := s.conn.endOf(s); connEnd.qp == event.QP {
		return modelEvent{kind: event.Type, qp: connEnd.stub}
	}
	for _, other := range s.sides {
		if other.xrc.at == s && event.QP != nil {
			if stub := other.xrc.stubOf(event.QP); stub != nil {
				return modelEvent{kind: event.Type, qp: stub}
			}
		}
	}
	return e
}

// audit compares all memory, all queue pairs, and the drop counters.
func (s *side) audit() {
	s.note(s, "audit")
	for _, m := range s.mrs {
		if !m.closed && !bytes.Equal(m.Bytes(), m.model.memory) {
			s.differ("the memory of MR %#x differs", m.model.lkey)
		}
	}
	for _, q := range s.qps {
		s.compareQP(q)
	}
	for _, q := range s.srqs {
		s.querySRQ(q)
	}
	s.compareDrops()
}

// modelDropNames contains the drop reasons that the model counts. The others depend on the network.
var modelDropNames = []string{"qp_state", "qkey", "no_receive", "no_room", "protection", "cq_full", "self_loopback"}

// modelDrops returns the card's drop counters of these reasons, or nil if the card has no counters.
func (s *side) modelDrops() map[string]uint64 {
	all := s.device().Counters()
	if all == nil {
		return nil
	}
	drops := map[string]uint64{}
	for _, name := range modelDropNames {
		drops[name] = all[name]
	}
	return drops
}

func (s *side) compareDrops() {
	for name, n := range s.modelDrops() {
		if got, want := n-s.before[name], s.card.drops[name]; got != want {
			s.differ("%d packets dropped for %s, the model has %d", got, name, want)
		}
	}
	for name, n := range s.card.drops {
		s.seen["drop "+name] += int(n - s.counted[name])
		s.counted[name] = n
	}
}
