// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
)

// Alive checks that a station that shares its card with a hostile client still works.
func (w *World) Alive() {
	w.A.Helper()
	w.B.Receive(0)
	w.A.Post(w.A.Send(1, w.A.AH(w.B.End.IPv4), w.B.QP))
	w.A.Expect(OK(1))
	w.B.Expect(OK(0))
	w.NothingElse()
}

// Failed creates a queue pair that the card has moved from a state to ERR, by an overrun of its CQ.
func (w *World) Failed(from verbs.QPState) *verbs.QP {
	w.B.Helper()
	cq, qps := w.B.Overrunnable(1)
	qp := w.B.NewQPWith(verbs.QPInitAttr{SendCQ: w.B.CQ, RecvCQ: cq, Cap: DefaultCap()})
	ToInit(w.B, qp)
	To(w.B, qp, verbs.QPStateRTR)
	if from == verbs.QPStateSQD {
		ToRTS(w.B, qp, 0)
		To(w.B, qp, from)
	}
	w.Overrun(qps[0], cq, 1)
	w.Settle()
	return qp
}

// Messages sends n messages from a to a queue pair of b.
func (w *World) Messages(qp *verbs.QP, n int) {
	w.A.Helper()
	ah := w.A.AH(w.B.End.IPv4)
	for range n {
		w.A.Post(w.A.Send(1, ah, qp))
		w.A.Expect(OK(1))
	}
	Check(w.A, ah.Close())
}

// World is the environment of a test: a station at each end.
type World struct {
	Pair Pair
	A, B *Station
}

func NewWorld(t testing.TB, pair Pair) *World {
	t.Helper()
	w := &World{Pair: pair, A: NewStation(t, pair.A), B: NewStation(t, pair.B)}
	w.Settle() // so that earlier events do not disturb the test
	for _, s := range []*Station{w.A, w.B} {
		s.dropped, s.Unseen = s.Counters(), pair.FramesUnseen
	}
	return w
}

// Settle waits until all earlier messages have arrived, by a message in each direction.
func (w *World) Settle() {
	w.A.Helper()
	w.A.mark(w.B)
	w.B.mark(w.A)
}

// mark sends a message between two new queue pairs, and waits until it arrives.
func (s *Station) mark(peer *Station) {
	s.Helper()
	from, to := newMarker(s), newMarker(peer)
	ah := s.AH(peer.End.IPv4)
	Check(s, to.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{to.mr.SGE(0, 40)}}}))
	Check(s, from.qp.PostSend([]verbs.SendWR{s.Send(0, ah, to.qp)}))
	Same(s, s.WaitOn(from.cq, 1), OK(0))
	Same(s, peer.WaitOn(to.cq, 1), OK(0))
	Check(s, ah.Close())
	from.close()
	to.close()
}

type marker struct {
	*Station
	mr *verbs.MR
	cq *verbs.CQ
	qp *verbs.QP
}

func newMarker(s *Station) *marker {
	s.Helper()
	m := &marker{Station: s, cq: s.NewCQ(1)}
	var err error
	m.mr, err = s.PD.AllocMR(40, verbs.AccessLocalWrite)
	Check(s, err)
	m.qp = s.NewQPWith(verbs.QPInitAttr{SendCQ: m.cq, RecvCQ: m.cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1}})
	Check(s, m.qp.Activate(TestQKey))
	return m
}

func (m *marker) close() {
	m.Helper()
	for _, object := range []Closer{m.qp, m.cq, m.mr} {
		Check(m, object.Close())
	}
}

// NothingElse waits until all messages have arrived, and checks that no completion is queued.
func (w *World) NothingElse() {
	w.A.Helper()
	w.Settle()
	for _, s := range []*Station{w.A, w.B} {
		Same(s, Completions(s, s.CQ))
	}
}

// Counters returns the numbers of packets that the card has dropped, by reason, or nil if it has no counters.
func (d *Device) Counters() map[string]uint64 {
	d.Helper()
	all, err := d.Ctx.Counters()
	if errors.Is(err, verbs.ErrUnsupported) {
		return nil
	}
	Check(d, err)
	dropped := map[string]uint64{}
	for _, c := range all {
		if c.Lost && c.Place == "engine" && c.Value != 0 {
			dropped[strings.TrimPrefix(c.Name, "drop_")] = c.Value
		}
	}
	return dropped
}

// Drops returns the numbers of packets that the card has dropped since the test began, by reason.
func (d *Device) Drops() map[string]uint64 {
	now := d.Counters()
	for name, n := range d.dropped {
		if now[name] -= n; now[name] == 0 {
			delete(now, name)
		}
	}
	return now
}

// ExpectDrops checks the numbers of dropped packets, if the card has counters. Call Settle before.
func (d *Device) ExpectDrops(want map[string]uint64) {
	d.Helper()
	if got := d.Drops(); got != nil && !maps.Equal(got, want) {
		d.Errorf("drops %v, want %v", got, want)
	}
}
