// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// SRQ is the engine's part of a shared receive queue. Any number of queue pairs consume its receive requests.
//
// A resize adds a new queue after the current one. At some later time the program switches to the new queue, and does
// not post to the old one again. The engine consumes the remaining requests of the old queue first. Requests are not
// copied.
type SRQ struct {
	// Queue is the current queue: QP.Recv of all queue pairs. A switch to another queue copies that queue's state into
	// *Queue, so that these pointers stay valid.
	Queue   *ring.RecvConsumer
	Session *Session
	PD      region.PD
	// For an XRC SRQ: its number, and the CQ and token for completions of the receive requests that XRC targets
	// consume.
	Number          wire.SRQN
	CQ              *CQ
	CompletionToken uint32
	// NoteLimit is called when the number of receive requests has fallen below the limit; see SetLimit. It runs under
	// the lease.
	NoteLimit func()

	newer   []*ring.RecvConsumer // the queues after Queue
	shifted int                  // number of switches to a newer queue since the last Trim
	limit   uint32               // 0: none
	dirty   bool                 // it is in the engine's takenFrom
}

// took records that a queue pair has consumed a receive request.
func (cs *completions) took(s *SRQ) {
	if !s.dirty {
		s.dirty = true
		cs.takenFrom = append(cs.takenFrom, s)
	}
	if s.limit != 0 {
		cs.checkLimit(s)
	}
}

// takeFrom consumes the next receive request of an SRQ; false if none is posted.
func (cs *completions) takeFrom(s *SRQ, r *ring.Recv) bool {
	if !s.Queue.Peek(r) && !s.peekNewer(r) {
		return false
	}
	s.Queue.Advance()
	cs.took(s)
	return true
}

// checkLimit disarms the limit if it is reached. The event is reported at the end of the round.
func (cs *completions) checkLimit(s *SRQ) {
	if s.Waiting() < s.limit {
		s.limit = 0
		cs.reached = append(cs.reached, s)
	}
}

// Waiting returns the number of posted receive requests that are not consumed yet. It runs in Do.
func (s *SRQ) Waiting() (n uint32) {
	n = s.Queue.Waiting()
	for _, q := range s.newer {
		n += q.Waiting()
	}
	return n
}

// peekNewer peeks at the next receive request when Queue is empty, and switches to a newer queue if needed. It returns
// false if no request is posted or s is nil.
func (s *SRQ) peekNewer(r *ring.Recv) bool {
	for s != nil && len(s.newer) > 0 {
		if !s.shift() {
			return false
		}
		if s.Queue.Peek(r) {
			return true
		}
	}
	return false
}

// shift switches to the next queue if Queue is empty and the program has begun to post to a newer one. It reads the
// newer queues before Queue: once they contain requests, the program adds none to Queue.
func (s *SRQ) shift() bool {
	later := uint32(0)
	for _, q := range s.newer {
		later += q.Waiting()
	}
	if later == 0 || s.Queue.Waiting() > 0 {
		return false
	}
	s.use(s.newer[0])
	s.newer = s.newer[1:]
	s.shifted++
	return true
}

// use switches to another queue.
func (s *SRQ) use(q *ring.RecvConsumer) {
	s.Queue.Publish()
	*s.Queue = *q
}

// publishSRQs makes the slots of the receive requests that the round has consumed available to the programs.
func (cs *completions) publishSRQs() {
	for len(cs.takenFrom) > 0 {
		s := pop(&cs.takenFrom)
		cs.engine.round.hand = s.Session
		s.Queue.Publish()
		s.dirty = false
	}
}

// noteSRQs reports reached limits, and queue pairs that consume no more receive requests.
func (cs *completions) noteSRQs() {
	for len(cs.reached) > 0 {
		s := pop(&cs.reached)
		cs.engine.round.hand = s.Session
		s.NoteLimit()
	}
	for len(cs.ended) > 0 {
		qp := pop(&cs.ended)
		cs.engine.round.hand = qp.Session
		qp.NoteLastWQE()
	}
}

// pop removes and returns the last element of a list. It is removed before it is used, so that an element that causes a
// fault is not processed again.
func pop[T any](list *[]*T) *T {
	last := len(*list) - 1
	one := (*list)[last]
	(*list)[last] = nil
	*list = (*list)[:last]
	return one
}

// SetLimit arms the SRQ limit: NoteLimit is called once, when fewer than limit receive requests remain, which may
// already be the case. 0 disarms it. It runs in Do.
func (s *SRQ) SetLimit(limit uint32) {
	s.limit = limit
	if limit != 0 {
		s.Session.engine.completions.checkLimit(s)
	}
}

// Limit returns the armed limit; 0 if it is not armed. It runs in Do.
func (s *SRQ) Limit() uint32 { return s.limit }

// Resize adds a queue after the existing ones; the program later switches to it. It runs in Do.
func (s *SRQ) Resize(q *ring.RecvConsumer) { s.newer = append(s.newer, q) }

// Trim discards the empty queues that a resize has replaced. It returns the indexes of the remaining queues among all
// queues that have existed since the last Trim; the oldest has index 0. It runs in Do, when the program posts to the
// last queue.
func (s *SRQ) Trim() (left []int) {
	all := append([]*ring.RecvConsumer{s.Queue}, s.newer...)
	var newer []*ring.RecvConsumer
	for place, q := range all {
		if place == len(all)-1 || q.Waiting() > 0 {
			left = append(left, s.shifted+place)
			newer = append(newer, q)
		}
	}
	if s.newer = newer[1:]; newer[0] != s.Queue {
		s.use(newer[0])
	}
	s.shifted = 0
	return left
}

// Domain is an XRC domain (IBA A14): the SRQs that the peers of its target queue pairs can address. The SRQs may belong
// to several sessions. The targets belong to the domain's own session, so that they outlive the programs' sessions.
type Domain struct{ srqs map[wire.SRQN]*SRQ }

// NewDomain returns a domain without SRQs.
func NewDomain() *Domain { return &Domain{map[wire.SRQN]*SRQ{}} }

// AddSRQ allows peers to address an SRQ. It runs in Do.
func (d *Domain) AddSRQ(s *SRQ) { d.srqs[s.Number] = s }

// RemoveSRQ ends AddSRQ. It runs in Do.
func (d *Domain) RemoveSRQ(s *SRQ) { delete(d.srqs, s.Number) }

// srq returns the SRQ with a number; nil if the domain has none, or is nil.
func (d *Domain) srq(number wire.SRQN) *SRQ {
	if d == nil {
		return nil
	}
	return d.srqs[number]
}
