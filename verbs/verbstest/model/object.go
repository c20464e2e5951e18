// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Steps that create and destroy PDs, CQs and queue pairs, up to a few of each kind.
const (
	fewPDs, fewMRs, fewCQs, fewAHs, fewQPs = 3, 8, 6, 12, 7

	bigCQ = 256 // more than all requests that these queue pairs can have outstanding
)

func (s *side) createPD() {
	if len(s.pds) == fewPDs {
		return
	}
	pd, err := s.ctx.AllocPD()
	s.want("AllocPD", err, 0)
	s.pds = append(s.pds, &playedPD{PD: pd, model: &modelPD{}})
	s.note(s, "AllocPD")
}

// likelyPD returns the oldest PD most of the time, since objects of the same PD can be used together.
func (d dice) likelyPD() *playedPD {
	if len(d.pds) > 0 && !d.chance(5) {
		return d.pds[0]
	}
	return one(d.side, d.pds)
}

// closePD closes a PD twice. The second call must fail.
func (s *side) closePD() {
	pd := one(s, s.pds)
	if pd == nil || pd.model.users == 0 && len(s.pds) == 1 {
		return
	}
	s.note(s, "close PD with %d users", pd.model.users)
	if pd.model.users > 0 {
		s.want("close PD", pd.Close(), unix.EBUSY)
		return
	}
	s.want("close PD", pd.Close(), 0)
	s.wantIf("close PD again", pd.Close(), false)
	s.pds = remove(s.pds, pd)
}

func (s *side) createCQ() {
	n := 1 + s.random.IntN(8)
	if s.chance(3) {
		n = bigCQ
	}
	s.createCQOf(n)
}

func (s *side) createCQOf(n int) {
	if len(s.cqs) == fewCQs {
		return
	}
	cq, err := s.ctx.CreateCQ(n)
	s.want("create CQ", err, 0)
	if cq.Capacity() < n {
		s.differ("a CQ of %d entries has capacity %d", n, cq.Capacity())
	}
	s.cqs = append(s.cqs, &playedCQ{CQ: cq, model: &modelCQ{card: s.card, capacity: cq.Capacity()}, big: n == bigCQ})
	s.note(s, "create CQ of %d", n)
}

func (s *side) closeCQ() {
	if c := one(s, s.cqs); c != nil {
		s.closePlayedCQ(c)
	}
}

func (s *side) closePlayedCQ(c *playedCQ) {
	s.note(s, "close %s", c)
	switch {
	case c.closed:
		s.wantIf("close CQ again", c.Close(), false)
		s.cqs = remove(s.cqs, c)
	case c.model.users > 0:
		s.want("close CQ", c.Close(), unix.EBUSY)
	default:
		s.want("close CQ", c.Close(), 0)
		c.closed = true
		delete(s.card.events, modelEvent{kind: verbs.EventCQErr, cq: c.model})
	}
}

func (c *playedCQ) String() string {
	return fmt.Sprintf("CQ of %d with %d users, %d entries", c.model.capacity, c.model.users, len(c.model.entries))
}

// liveCQ returns a random CQ, or nil if it is closed.
func (d dice) liveCQ() *playedCQ {
	if c := one(d.side, d.cqs); c != nil && !c.closed {
		return c
	}
	return nil
}

func (s *side) createQP() {
	pd, sends, recvs := s.dice().likelyPD(), s.dice().liveCQ(), s.dice().liveCQ()
	if pd == nil || sends == nil || recvs == nil || len(s.qps) == fewQPs {
		return
	}
	if !sends.big && !recvs.big {
		recvs = sends // so that the overrun of one CQ does not cause that of another
	}
	small := func(n int) uint32 { return uint32(s.random.IntN(n + 1)) }
	init := &verbs.QPInitAttr{
		Type: verbs.QPTypeUD, SendCQ: sends.CQ, RecvCQ: recvs.CQ, SQSigAll: s.chance(4), BlockSelfMcastLB: s.chance(3),
		Cap: verbs.QPCap{MaxSendWR: small(8), MaxRecvWR: small(8), MaxSendSGE: small(4), MaxRecvSGE: small(4), MaxInlineData: small(64)},
	}
	var srq *modelSRQ
	if shared := one(s, s.srqs); shared != nil && !shared.closed && s.chance(2) {
		init.SRQ, srq = shared.SRQ, shared.model
	}
	qp, err := pd.CreateQP(init)
	if sends.model.overrun || recvs.model.overrun {
		s.want("create QP on a CQ that was overrun", err, unix.EOVERFLOW)
		return
	}
	s.want("create QP", err, 0)
	_, granted, err := qp.Query()
	s.want("query QP", err, 0)
	if srq != nil {
		init.Cap.MaxRecvWR, init.Cap.MaxRecvSGE = 0, 0 // ignored with an SRQ
	}
	if !covers(granted.Cap, init.Cap) || s.card.qps[qp.Number()] != nil || qp.Number() < 2 {
		s.differ("create QP: requested %+v, granted number %v and %+v", init.Cap, qp.Number(), granted.Cap)
	}
	model := newModelQP(s.card, pd.model, modelQP{
		number: qp.Number(), sendCQ: sends.model, recvCQ: recvs.model, srq: srq, cap: granted.Cap, sigAll: init.SQSigAll, block: init.BlockSelfMcastLB,
	})
	s.qps = append(s.qps, &playedQP{QP: qp, model: model, sends: sends, recvs: recvs})
	s.note(s, "create QP %v, %+v; sends to %s, receives to %s", qp.Number(), granted.Cap, sends, recvs)
}

// covers reports whether the granted capacities are at least the requested ones.
func covers(granted, asked verbs.QPCap) bool {
	return granted.MaxSendWR >= asked.MaxSendWR && granted.MaxRecvWR >= asked.MaxRecvWR &&
		granted.MaxSendSGE >= asked.MaxSendSGE && granted.MaxRecvSGE >= asked.MaxRecvSGE && granted.MaxInlineData >= asked.MaxInlineData
}

// refuseQP creates queue pairs with invalid attributes.
func (s *side) refuseQP() {
	pd, cq := one(s, s.pds), s.dice().liveCQ()
	if pd == nil || cq == nil {
		return
	}
	s.note(s, "create QP, bad")
	refuse := func(what string, want unix.Errno, spoil func(a *verbs.QPInitAttr)) {
		init := &verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq.CQ, RecvCQ: cq.CQ}
		spoil(init)
		_, err := pd.CreateQP(init)
		s.want(what, err, want)
	}
	refuse("QP without a CQ", unix.EINVAL, func(a *verbs.QPInitAttr) { a.RecvCQ = nil })
	refuse("QP of an unknown type", unix.EINVAL, func(a *verbs.QPInitAttr) { a.Type = 77 })
	refuse("QP of raw packets", unix.EOPNOTSUPP, func(a *verbs.QPInitAttr) { a.Type = verbs.QPTypeRawPacket })
	refuse("XRC target of a PD", unix.EINVAL, func(a *verbs.QPInitAttr) { a.Type = verbs.QPTypeXRCRecv })
	refuse("QP too large", unix.EINVAL, func(a *verbs.QPInitAttr) { a.Cap.MaxSendWR = 1 << 30 })
	refuse("QP with too many SGEs", unix.EINVAL, func(a *verbs.QPInitAttr) { a.Cap.MaxRecvSGE = 1 << 28 })
}

// closeOverrun closes overrun CQs and their queue pairs, which can no longer be used.
func (s *side) closeOverrun() {
	for _, q := range slices.Clone(s.qps) {
		if q.closed || !q.model.overrun() {
			continue
		}
		for mgid, group := range s.card.groups {
			if group.has(q.model) {
				s.wantIf("detach", q.DetachMcast(mgid, group.mlid), q.model.detach(mgid, group.mlid))
			}
		}
		s.closePlayedQP(q)
	}
	for _, c := range slices.Clone(s.cqs) {
		if c.model.overrun {
			s.closePlayedCQ(c)
		}
	}
}

func (s *side) closeQP() {
	if q := one(s, s.qps); q != nil {
		s.closePlayedQP(q)
	}
}

func (s *side) closePlayedQP(q *playedQP) {
	s.note(s, "close %s, closed %t, in %d groups", q, q.closed, q.model.groups)
	switch err := q.Close(); {
	case q.closed:
		s.wantIf("close QP again", err, false)
		s.qps = remove(s.qps, q)
	case !q.model.close():
		s.want("close QP", err, unix.EBUSY)
	default:
		s.want("close QP", err, 0)
		q.closed = true
	}
}
