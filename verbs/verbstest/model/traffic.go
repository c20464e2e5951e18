// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/roced/roced/verbs"
)

// Steps that post and poll.

// maxList is the maximum number of requests in a list.
const maxList = 5

func (s *side) postSend() {
	q := s.dice().likely(verbs.QPStateRTS)
	if q == nil {
		return
	}
	n := 1
	if s.chance(3) {
		n += s.random.IntN(maxList)
	}
	list, wrs := make([]*modelSend, n), make([]verbs.SendWR, n)
	for i := range list {
		list[i], wrs[i] = s.dice().sendRequest(q)
	}
	s.note(s, "post to %s: %s", q, describe(wrs))
	err := q.PostSend(wrs)
	if q.closed {
		s.wantIf("post send to a closed queue", err, false)
		return
	}
	bad, errno := q.model.postSend(list)
	s.want("post send", err, errno)
	s.wantBad(err, bad)
	s.finishStep(q)
}

// likely returns a queue pair that is mostly in this state or a later one, except ERR.
func (d dice) likely(from verbs.QPState) (q *playedQP) {
	for range 4 {
		if q = one(d.side, d.qps); q != nil && !q.closed && q.model.state >= from && q.model.state != verbs.QPStateErr {
			return q
		}
	}
	return q
}

// wantBad compares the index of the refused request.
func (s *side) wantBad(err error, bad int) {
	if refused, is := err.(*verbs.BadWRError); is && refused.Index != bad || !is && bad >= 0 {
		s.differ("%v: the model has request %d", err, bad)
	}
}

func (s *side) postRecv() {
	q := s.dice().likely(verbs.QPStateInit)
	if q == nil || (q.model.srq != nil || !s.canReceive(q.model.pd)) && !s.chance(rarely) {
		return
	}
	list, wrs := s.dice().recvRequests(q.model.pd, int(q.model.cap.MaxRecvSGE))
	s.note(s, "post to %s: receives %+v", q, wrs)
	err := q.PostRecv(wrs)
	if q.closed {
		s.wantIf("post receive to a closed queue", err, false)
		return
	}
	bad, errno := q.model.postRecv(list)
	s.want("post receive", err, errno)
	s.wantBad(err, bad)
	if q.model.state == verbs.QPStateErr {
		s.finishStep(q)
	}
}

// recvRequests returns a list of receives.
func (d dice) recvRequests(pd *modelPD, most int) (list []*modelRecv, wrs []verbs.RecvWR) {
	for range 1 + d.random.IntN(maxList) {
		d.ids++
		sges := d.recvPieces(pd, most)
		list = append(list, &modelRecv{d.ids, sges})
		wrs = append(wrs, verbs.RecvWR{ID: d.ids, SGList: sges})
	}
	return list, wrs
}

// canReceive reports whether a PD has a region that is large enough for receives. Smaller receives would block the
// later ones.
func (s *side) canReceive(pd *modelPD) bool {
	return slices.ContainsFunc(s.mrs, func(m *playedMR) bool {
		return !m.closed && m.model.write && m.model.pd == pd && len(m.model.memory) > 300
	})
}

func (s *side) poll() {
	c := one(s, s.cqs)
	if c == nil {
		return
	}
	s.pollUpTo(c, s.random.IntN(12))
}

// pollUpTo polls up to n completions and compares them.
func (s *side) pollUpTo(c *playedCQ, n int) {
	s.note(s, "poll %d of %s", n, c)
	wcs := make([]verbs.WC, n)
	got, err := c.Poll(wcs)
	if c.closed {
		s.wantIf("poll a closed CQ", err, false)
		return
	}
	count, errno := c.model.expect(n)
	s.want("poll", err, errno)
	for i := range wcs[:got] {
		s.compareWC(c.model, &wcs[i])
	}
	if got != count {
		s.differ("poll of %d returned %d, the model has %d", n, got, count)
	}
}

func (s *side) compareWC(c *modelCQ, got *verbs.WC) {
	wc, ok := c.dequeue(got.ID)
	if !ok || !wc.same(got, s.world.mtu) {
		s.differ("completion %+v, the model has %+v as the first of %d", *got, wc.WC, len(c.entries))
	}
	kind := "recv "
	if wc.send {
		kind = "send "
	}
	s.seen[kind+statusNames[wc.Status]]++
}

func describe(wrs []verbs.SendWR) (text string) {
	for _, wr := range wrs {
		to := "nothing"
		if wr.AH != nil {
			attr, err := wr.AH.Query()
			to = attr.GRH.DGID.String()
			if err != nil {
				to = err.Error()
			}
		}
		text += fmt.Sprintf("[%d %v flags %v to %v %v %v, inline %d, %+v] ", wr.ID, wr.Opcode, wr.Flags, to, wr.RemoteQPN, wr.RemoteQKey, len(wr.InlineData), wr.SGList)
	}
	return text
}
