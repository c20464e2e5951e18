// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"golang.org/x/sys/unix"
)

// Steps with SRQs, and those that change CQs and address handles.

type playedSRQ struct {
	*verbs.SRQ
	model  *modelSRQ
	closed bool
}

func (q *playedSRQ) isClosed() bool { return q.closed }

func (q *playedSRQ) String() string {
	return fmt.Sprintf("SRQ with %d of %d receives, limit %d, %d users", len(q.model.recvs), q.model.maxWR, q.model.limit, q.model.users)
}

const fewSRQs = 3

func (s *side) createSRQ() {
	pd := s.dice().likelyPD()
	if pd == nil || len(s.srqs) == fewSRQs {
		return
	}
	attr := verbs.SRQInitAttr{MaxWR: uint32(s.random.IntN(9)), MaxSGE: uint32(s.random.IntN(4))}
	asked := attr
	srq, err := pd.CreateSRQ(&attr)
	s.wantIf("create SRQ", err, asked.MaxWR > 0)
	if err != nil {
		return
	}
	if attr.MaxWR < asked.MaxWR || attr.MaxSGE < asked.MaxSGE {
		s.differ("SRQ: requested %+v, granted %+v", asked, attr)
	}
	pd.model.users++
	s.srqs = append(s.srqs, &playedSRQ{SRQ: srq, model: &modelSRQ{card: s.card, pd: pd.model, maxWR: int(attr.MaxWR), maxSGE: int(attr.MaxSGE)}})
	s.note(s, "create SRQ, %+v", attr)
}

func (s *side) closeSRQ() {
	q := one(s, s.srqs)
	if q == nil {
		return
	}
	s.note(s, "close %s", q)
	switch {
	case q.closed:
		s.wantIf("close SRQ again", q.Close(), false)
		s.srqs = remove(s.srqs, q)
	case q.model.users > 0:
		s.want("close SRQ", q.Close(), unix.EBUSY)
	default:
		s.want("close SRQ", q.Close(), 0)
		q.closed = true
		q.model.pd.users--
		delete(s.card.events, modelEvent{kind: verbs.EventSRQLimitReached, srq: q.model})
	}
}

func (s *side) postSRQ() {
	q := one(s, s.srqs)
	if q == nil || !s.canReceive(q.model.pd) && !s.chance(rarely) {
		return
	}
	list, wrs := s.dice().recvRequests(q.model.pd, q.model.maxSGE)
	s.note(s, "post to %s: %+v", q, wrs)
	err := q.PostRecv(wrs)
	if q.closed {
		s.wantIf("post to an SRQ that is closed", err, false)
		return
	}
	bad, errno := q.model.postRecv(list)
	s.want("post to SRQ", err, errno)
	s.wantBad(err, bad)
}

// modifySRQ resizes an SRQ, sets its limit, or both.
func (s *side) modifySRQ() {
	q := one(s, s.srqs)
	if q == nil {
		return
	}
	attr, mask, size, limit := verbs.SRQAttr{MaxWR: uint32(s.random.IntN(10)), Limit: uint32(s.random.IntN(10))}, verbs.SRQAttrMask(0), -1, -1
	if s.chance(3) {
		mask, size = mask|verbs.SRQMaxWR, int(attr.MaxWR)
	}
	if !s.chance(3) {
		mask, limit = mask|verbs.SRQLimit, int(attr.Limit)
	}
	s.note(s, "modify %s to %+v with %d", q, attr, mask)
	err := q.Modify(&attr, mask)
	if size >= 0 && errnoOf(err) == unix.EBUSY {
		return // a Provider may limit the number of resizes
	}
	granted := int(attr.MaxWR)
	if err != nil {
		granted = roundedUp(size)
	}
	ok := !q.closed && q.model.mayModify(size, granted, limit)
	s.wantIf("modify SRQ", err, ok)
	if !ok {
		return
	}
	if size >= 0 {
		q.model.maxWR = granted
	}
	if limit >= 0 {
		q.model.limit = limit
		q.model.check()
	}
	s.querySRQ(q)
}

// roundedUp returns the power of two to which a Provider may round a size. Limits up to it may be valid.
func roundedUp(size int) (n int) {
	for n = 1; n < size; n *= 2 {
	}
	return n
}

func (s *side) querySRQ(q *playedSRQ) {
	attr, err := q.Query()
	s.wantIf("query SRQ", err, !q.closed)
	if m := q.model; !q.closed && attr != (verbs.SRQAttr{MaxWR: uint32(m.maxWR), MaxSGE: uint32(m.maxSGE), Limit: uint32(m.limit)}) {
		s.differ("query SRQ: %+v, the model has %s", attr, q)
	}
}

// resizeCQ keeps queued completions, and refuses a smaller size. A CQ that has overrun is not resized.
func (s *side) resizeCQ() {
	c := one(s, s.cqs)
	if c == nil || c.big {
		return
	}
	n := s.random.IntN(12)
	s.note(s, "resize %s to %d", c, n)
	err := c.Resize(n)
	switch m := c.model; {
	case c.closed, n == 0, n < len(m.entries):
		s.wantIf("resize CQ", err, false)
	case m.overrun:
		s.want("resize CQ", err, unix.EOVERFLOW)
	default:
		s.want("resize CQ", err, 0)
		m.capacity, m.kept = c.Capacity(), len(m.entries)
		if m.capacity < n {
			s.differ("a CQ resized to %d has capacity %d", n, m.capacity)
		}
	}
}

// peek compares the number of queued completions.
func (s *side) peek() {
	c := one(s, s.cqs)
	if c == nil {
		return
	}
	n := s.random.IntN(12)
	s.note(s, "peek %d of %s", n, c)
	got, err := kernel.PeekCQ(c.CQ, n)
	if c.closed {
		s.wantIf("peek at a closed CQ", err, false)
		return
	}
	count, errno := c.model.expect(n)
	s.want("peek", err, errno)
	if got != count {
		s.differ("peek of %d returned %d, the model has %d", n, got, count)
	}
}

// modifyAH changes the address of a handle, also for waiting requests.
func (s *side) modifyAH() {
	a := one(s, s.ahs)
	if a == nil {
		return
	}
	attr, source := s.dice().anyRoute()
	s.note(s, "modify %s to %v", a, attr.GRH.DGID)
	err := a.Modify(noTimeout, attr)
	s.wantIf("modify AH", err, !a.model.closed)
	if !a.model.closed {
		a.model.route, a.model.source = attr.GRH, source
	}
}
