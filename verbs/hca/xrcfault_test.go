// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roced/roced/verbs"
)

// xrcOf creates an SRQ in a domain, with a receive.
func (s *station) xrcOf(domain *verbs.XRCD) (*verbs.SRQ, *verbs.CQ) {
	s.Helper()
	cq, err := s.ctx.CreateCQ(8)
	check(s, err)
	srq, err := s.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 4, Type: verbs.SRQTypeXRC, XRCD: domain, CQ: cq})
	check(s, err)
	check(s, srq.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{s.piece(1, slotLen)}}}))
	return srq, cq
}

// connectXRC creates an initiator at the station that is connected to a target at another station.
func (s *station) connectXRC(target *verbs.QP, own, other string) *verbs.QP {
	s.Helper()
	qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCSend, SendCQ: s.cq, Cap: defaultCap()})
	check(s, err)
	attr := verbs.QPAttr{Port: 1, Timeout: 8, RetryCnt: 7, RNRRetry: 7, MinRNRTimer: 1, MaxRDAtomic: 1, MaxDestRDAtomic: 1, PathMTU: verbs.MTU1024}
	there := attr
	attr.DestQPN, attr.AHAttr = target.Number(), verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: gid(other)}}
	there.DestQPN, there.AHAttr = qp.Number(), verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: gid(own)}}
	check(s, target.Connect(&there))
	check(s, qp.Connect(&attr))
	return qp
}

// When memory of an SRQ has been removed, only the SRQ's session ends. Sessions that share its domain and the card
// continue, although the peer keeps sending there.
func TestXRCMemoryThatIsNotThere(t *testing.T) {
	w := newWirePair(t, WithoutInline())
	file, err := os.Create(filepath.Join(t.TempDir(), "domain"))
	check(t, err)
	defer file.Close()
	memory := &brokenMemory{TB: t}
	broken := w.a.another(SessionConfig{Memory: memory})
	domain, err := w.a.ctx.OpenXRCD(&verbs.XRCDInitAttr{File: file, OFlags: os.O_CREATE})
	check(t, err)
	theirs, err := broken.ctx.OpenXRCD(&verbs.XRCDInitAttr{File: file})
	check(t, err)
	well, cq := w.a.xrcOf(domain)
	lost, _ := broken.xrcOf(theirs)
	target, err := domain.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCRecv})
	check(t, err)
	qp := w.b.connectXRC(target, "10.0.0.2", "10.0.0.1")
	_, err = theirs.OpenQP(&verbs.QPOpenAttr{Number: target.Number()})
	check(t, err)
	memory.takeAway(1) // all memory except the doorbell
	for range 200 {    // more than the engine handles in a row
		check(t, qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, RemoteSRQN: lost.Number()}}))
		w.b.wait(1)
		for _, end := range []*verbs.QP{target, qp} {
			check(t, end.Modify(&verbs.QPAttr{State: verbs.QPStateReset}, verbs.QPAttrState))
		}
		check(t, qp.Close())
		qp = w.b.connectXRC(target, "10.0.0.2", "10.0.0.1")
	}
	broken.expectEvents(deviceFatal)
	check(t, qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, RemoteSRQN: well.Number(), Flags: verbs.SendSignaled}}))
	var wcs [1]verbs.WC
	_, err = cq.Wait(guard(t), wcs[:])
	check(t, err)
	if wcs[0].Status != verbs.WCSuccess {
		t.Errorf("%+v", wcs[0])
	}
	check(t, broken.session().Close())
}

// A panic in the work of a target stops the targets of its domain: no session, and no other domain.
func TestFaultInATarget(t *testing.T) {
	w := newWirePair(t, WithoutInline())
	var ends [2]*verbs.QP
	var srqs [2]*verbs.SRQ
	var targets [2]*verbs.QP
	var cqs [2]*verbs.CQ
	for i := range ends {
		domain, err := w.a.ctx.AllocXRCD()
		check(t, err)
		targets[i], err = domain.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCRecv})
		check(t, err)
		srqs[i], cqs[i] = w.a.xrcOf(domain)
		ends[i] = w.b.connectXRC(targets[i], "10.0.0.2", "10.0.0.1")
	}
	card := w.a.device
	card.engine.Do(func() {
		for q := range card.qps.All() {
			if q.entry.Number == targets[0].Number() {
				q.connection.Path = nil // so that its ACK cannot be sent
			}
		}
	})
	for i, qp := range ends {
		check(t, qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, RemoteSRQN: srqs[i].Number()}}))
	}
	w.a.expectEvents(verbs.AsyncEvent{Type: verbs.EventQPFatal, QP: targets[0]})
	for i, want := range []verbs.QPState{verbs.QPStateErr, verbs.QPStateRTS} {
		var wcs [1]verbs.WC
		_, err := cqs[i].Wait(guard(t), wcs[:])
		check(t, err)
		attr, _, err := targets[i].Query()
		check(t, err)
		if attr.State != want || wcs[0].Status != verbs.WCSuccess {
			t.Errorf("target %d is in %v; %+v", i, attr.State, wcs[0])
		}
	}
	_, err := w.a.ctx.AllocPD() // the session continues
	check(t, err)
	check(t, targets[0].Close())
}
