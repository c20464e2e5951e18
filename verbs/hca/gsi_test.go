// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"sync"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// withQP1 returns a program that has QP 1 of the card.
func (s *station) withQP1() *station {
	s.Helper()
	other := s.another(SessionConfig{Privileged: func() bool { return true }})
	check(s, other.qp.Close())
	var err error
	other.qp, err = other.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeGSI, SendCQ: other.cq, RecvCQ: other.cq, Cap: defaultCap(), Port: 1})
	check(s, err)
	check(s, other.qp.Activate(wire.QKeyGSI))
	return other
}

// manage sends a message to QP 1 of an address.
func (s *station) manage(ah *verbs.AH, mad wire.MAD) {
	s.Helper()
	copy(s.slot(1), mad)
	s.post(verbs.SendWR{
		Opcode: verbs.WRSend, SGList: []verbs.SGE{s.piece(1, wire.MADLen)}, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: 1, RemoteQKey: wire.QKeyGSI,
	})
}

// refusal returns the REJ to a connection request.
func (s *station) refusal(ah *verbs.AH) wire.REJ {
	s.Helper()
	req := make(wire.MAD, wire.MADLen)
	req.PutREQ(9, &wire.REQ{LocalID: 5, ServiceID: wire.ServiceIDFor(wire.PortSpaceTCP, 7174)})
	s.receive(0)
	s.manage(ah, req)
	for _, wc := range s.wait(2) {
		if wc.Opcode == verbs.WCRecv && (wc.SrcQP != 1 || wc.ByteLen != wire.GRHLen+wire.MADLen) {
			s.Errorf("got response %+v", wc)
		}
	}
	return wire.MAD(s.slot(0)[wire.GRHLen:][:wire.MADLen]).REJ()
}

var noService = wire.REJ{CommIDs: wire.CommIDs{Remote: 5}, Reason: wire.RejectServiceID}

// A card rejects connections immediately, even if no program uses connection management.
func TestCardRefusesConnections(t *testing.T) {
	w := newWirePair(t)
	peer := w.b.withQP1()
	for _, to := range []string{"10.0.0.1", "fd00::1", "fe80::1"} {
		if rej := peer.refusal(peer.ah(to)); rej != noService {
			t.Errorf("%s: %+v", to, rej)
		}
	}
	s, err := w.a.device.Statistics()
	check(t, err)
	if s.CM[cm.ConnectionsRejected] != 3 || s.CM[cm.Sent] != 3 {
		t.Errorf("%v", s)
	}
}

// A program has QP 1, or the manager has it for connection ids; when the program closes its QP 1, the manager gets it
// back.
func TestQP1ChangesHands(t *testing.T) {
	w := newWirePair(t)
	peer := w.b.withQP1()
	ah := peer.ah("10.0.0.1")
	program := w.a.another(SessionConfig{Privileged: func() bool { return true }})
	gsi := &verbs.QPInitAttr{Type: verbs.QPTypeGSI, SendCQ: program.cq, RecvCQ: program.cq, Port: 1}
	refused(t, w.b.device.manager.Use(), unix.EBUSY, "a program has QP 1")
	check(t, w.a.device.manager.Use())
	_, err := program.pd.CreateQP(gsi)
	refused(t, err, unix.EBUSY, "QP 1", "1 connection ids")
	w.a.device.manager.Leave()
	for range 3 {
		qp, err := program.pd.CreateQP(gsi)
		check(t, err)
		refused(t, w.a.device.manager.Use(), unix.EBUSY, "a program has QP 1")
		check(t, qp.Close())
		check(t, w.a.device.manager.Use())
		w.a.device.manager.Leave()
	}
	manages := func(what string) {
		t.Helper()
		eventually(t, what, func() bool {
			qp, _ := qp1Of(w.a.device)
			return qp != nil
		})
		if rej := peer.refusal(ah); rej != noService {
			t.Errorf("%s: %+v", what, rej)
		}
	}
	manages("the program's QP 1 is closed")
	_, err = program.pd.CreateQP(gsi)
	check(t, err)
	check(t, program.ctx.Close())
	manages("the program has ended")
}

// qp1Of returns the manager's QP 1, or nil, and whether it has to be replaced.
func qp1Of(card *Card) (qp *verbs.QP, failed bool) {
	card.manager.Serving(func(q *ids.QP1) { qp, failed = q.QP, q.Failed })
	return qp, failed
}

// If QP 1 cannot be created for a program, the manager keeps it; a QP 1 in error is replaced.
func TestQP1IsKept(t *testing.T) {
	w := newWirePair(t)
	peer := w.b.withQP1()
	ah, m := peer.ah("10.0.0.1"), w.a.device.manager
	s, err := w.a.device.NewSession(SessionConfig{Privileged: func() bool { return true }})
	check(t, err)
	_, err = s.qps.create(provider.CreateQPRequest{Type: verbs.QPTypeGSI, Port: 1, PD: 12345})
	refused(t, err, verbs.ErrInvalid, "no such PD")
	check(t, w.a.device.manager.Use())
	for range 2 {
		var was *verbs.QP
		eventually(t, "the manager has a queue pair", func() bool {
			qp, failed := qp1Of(w.a.device)
			was = qp
			return qp != nil && !failed
		})
		m.Serving(func(*ids.QP1) { check(t, was.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState)) })
		eventually(t, "it has another", func() bool {
			qp, _ := qp1Of(w.a.device)
			return qp != nil && qp != was
		})
		if rej := peer.refusal(ah); rej != noService {
			t.Errorf("%+v", rej)
		}
	}
}

// Programs acquire QP 1 and ids use the manager, all at once.
func TestQP1IsContested(t *testing.T) {
	w := newWirePair(t)
	w.b.listen(77)
	var all sync.WaitGroup
	for range 3 {
		program := w.a.another(SessionConfig{Privileged: func() bool { return true }})
		all.Go(func() {
			for range 50 {
				qp, err := program.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeGSI, SendCQ: program.cq, RecvCQ: program.cq, Port: 1})
				if err != nil {
					refused(t, err, unix.EBUSY)
					continue
				}
				check(t, qp.Close())
			}
		})
		all.Go(func() {
			for i := range uint64(50) {
				if err := w.a.device.manager.Use(); err != nil {
					refused(t, err, unix.EBUSY)
					continue
				}
				id := newCMID()
				w.a.ask("10.0.0.1", "10.0.0.2", i, id)
				answered(t, id.next(t), 77, i)
				w.a.device.manager.Leave()
			}
		})
	}
	all.Wait()
}
