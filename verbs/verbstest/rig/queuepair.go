// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
)

var ConnectedTypes = []verbs.QPType{verbs.QPTypeRC, verbs.QPTypeUC}

// AllAccess contains all remote access flags.
const AllAccess = verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic

// Connection returns attributes for a connection with a peer's queue pair, which tests can change.
func (d *Device) Connection(to netip.Addr, peer verbs.QPN) verbs.QPAttr {
	d.Helper()
	return verbs.QPAttr{
		Port: 1, AHAttr: *d.Route(to), DestQPN: peer, PathMTU: verbs.MTU256, RQPSN: 0xFFFFF0, SQPSN: 0xFFFFF0, AccessFlags: AllAccess,
		MaxRDAtomic: 4, MaxDestRDAtomic: 4, MinRNRTimer: 1, Timeout: 14, RetryCnt: 7, RNRRetry: 7,
	}
}

// Ahead returns a change for the nth reconnect of queue pairs. It advances the first PSNs, so that packets of the
// previous connection that are still in flight are duplicates.
func Ahead(n uint32) func(*verbs.QPAttr) {
	return func(a *verbs.QPAttr) { a.RQPSN, a.SQPSN = a.RQPSN.Plus(n<<20), a.SQPSN.Plus(n<<20) }
}

// NewConnected creates a queue pair of a connected type in RESET, which completes to the station's CQ.
func (s *Station) NewConnected(kind verbs.QPType) *verbs.QP {
	s.Helper()
	return s.NewQPWith(verbs.QPInitAttr{Type: kind, SendCQ: s.CQ, RecvCQ: s.CQ, Cap: DefaultCap()})
}

// GSIQKey is the Q_Key of QP 1 (IBA 13.5.3.1).
const GSIQKey verbs.QKey = 0x80010000

// Privileged reports whether the program is allowed to set a privileged Q_Key.
func (s *Station) Privileged() bool {
	s.Helper()
	qp := s.NewQP(DefaultCap())
	err := qp.Activate(GSIQKey)
	if err != nil {
		Refused(s, err, verbs.ErrPermission)
	}
	Check(s, qp.Close())
	return err == nil
}

func (s *Station) CreateGSI() (*verbs.QP, error) {
	return s.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeGSI, SendCQ: s.CQ, RecvCQ: s.CQ, Cap: DefaultCap(), Port: 1})
}

// GSITalks checks that one QP 1 can send to the other, and that packets with another Q_Key are dropped.
func (w *World) GSITalks(from, to *verbs.QP) {
	a, b := w.A, w.B
	a.Helper()
	b.ReceiveOn(to, 3)
	ah := a.AH(b.End.IPv4)
	foreign := a.Send(1, ah, to)
	a.Post(foreign)
	a.Expect(OK(1))
	w.NothingElse()
	wr := a.Send(2, ah, to)
	wr.RemoteQKey = GSIQKey
	Check(a, from.PostSend([]verbs.SendWR{wr}))
	a.Expect(OK(2))
	if got := b.Expect(OK(3)); got[0].SrcQP != 1 || got[0].QPN != 1 {
		b.Errorf("%+v", got[0])
	}
}

// To moves a queue pair to a state that requires no attributes.
func To(t testing.TB, qp *verbs.QP, state verbs.QPState) {
	t.Helper()
	Check(t, qp.Modify(&verbs.QPAttr{State: state}, verbs.QPAttrState))
}

const InitMask = verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey

func ToInit(t testing.TB, qp *verbs.QP) {
	t.Helper()
	Check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: TestQKey}, InitMask))
}

func ToRTS(t testing.TB, qp *verbs.QP, first verbs.PSN) {
	t.Helper()
	Check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, SQPSN: first}, verbs.QPAttrState|verbs.QPAttrSQPSN))
}

func StateOf(t testing.TB, qp *verbs.QP) verbs.QPState {
	t.Helper()
	attr, _, err := qp.Query()
	Check(t, err)
	return attr.State
}

// MTU returns the active RDMA MTU in bytes.
func (d *Device) MTU() int {
	d.Helper()
	port, err := d.Ctx.QueryPort(1)
	Check(d, err)
	return port.ActiveMTU.Bytes()
}
