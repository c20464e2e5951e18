// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var objectTests = []rig.Test{
	{Name: "busy", Run: busy},
	{Name: "second close", Run: secondClose},
	{Name: "closed QP", Run: closedQP},
	{Name: "second context", Run: secondContext},
	{Name: "nil", Run: nilObjects},
}

// busy checks that an object that other objects use cannot be closed.
func busy(t *testing.T, w *rig.World) {
	s := w.A
	pd, err := s.Ctx.AllocPD()
	rig.Check(t, err)
	cq, other := s.NewCQ(1), s.NewCQ(1)
	mr, err := pd.AllocMR(1, 0)
	rig.Check(t, err)
	rig.Refused(t, pd.Close(), unix.EBUSY, "1 objects")
	ah, err := pd.CreateAH(rig.Guard(t), s.Route(w.B.End.IPv4))
	rig.Check(t, err)
	rig.Check(t, mr.Close())
	rig.Refused(t, pd.Close(), unix.EBUSY)
	qp, err := pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: other})
	rig.Check(t, err)
	rig.Check(t, ah.Close())
	rig.Refused(t, pd.Close(), unix.EBUSY)
	rig.Refused(t, cq.Close(), unix.EBUSY, "close their QPs")
	rig.Refused(t, other.Close(), unix.EBUSY)
	rig.Check(t, qp.Close())
	for _, object := range []rig.Closer{cq, other, pd} {
		rig.Check(t, object.Close())
		rig.Refused(t, object.Close(), unix.EINVAL, "closed already")
	}
	for _, object := range []rig.Closer{mr, ah} {
		rig.Refused(t, object.Close(), unix.EINVAL, "closed already")
	}
	_, err = pd.AllocMR(1, 0)
	rig.Refused(t, err, unix.EINVAL, "PD")
}

// secondClose checks that a second Close of an object does not close an object that was created in between.
func secondClose(t *testing.T, w *rig.World) {
	s := w.A
	makers := map[string]func() (rig.Closer, error){
		"PD":         func() (rig.Closer, error) { return s.Ctx.AllocPD() },
		"CQ":         func() (rig.Closer, error) { return s.Ctx.CreateCQ(1) },
		"MR":         func() (rig.Closer, error) { return s.PD.AllocMR(1, 0) },
		"AH":         func() (rig.Closer, error) { return s.PD.CreateAH(rig.Guard(t), s.Route(w.B.End.IPv4)) },
		"SRQ":        func() (rig.Closer, error) { return s.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1}) },
		"XRC domain": func() (rig.Closer, error) { return s.Ctx.AllocXRCD() },
		"QP": func() (rig.Closer, error) {
			return s.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.CQ, RecvCQ: s.CQ})
		},
		"membership": func() (rig.Closer, error) { return s.Ctx.JoinMulticast(rig.GroupV4, verbs.JoinFullMember) },
	}
	for name, create := range makers {
		first, err := create()
		rig.Check(t, err)
		rig.Check(t, first.Close())
		var others []rig.Closer
		for range 8 { // of all kinds
			for _, create := range makers {
				other, err := create()
				rig.Check(t, err)
				others = append(others, other)
			}
		}
		rig.Refused(t, first.Close(), verbs.ErrObjectClosed, name)
		for _, other := range others {
			rig.Check(t, other.Close())
		}
	}
}

// closedQP checks that the methods of a closed queue pair return ErrObjectClosed.
func closedQP(t *testing.T, w *rig.World) {
	a := w.A
	ah := a.AH(w.B.End.IPv4)
	rig.Check(t, a.QP.Close())
	_, _, query := a.QP.Query()
	for name, err := range map[string]error{
		"send":   a.QP.PostSend([]verbs.SendWR{a.Send(1, ah, w.B.QP)}),
		"recv":   a.QP.PostRecv([]verbs.RecvWR{{}}),
		"modify": a.QP.Modify(&verbs.QPAttr{State: verbs.QPStateInit}, verbs.QPAttrState),
		"query":  query,
		"attach": a.QP.AttachMcast(rig.GID(rig.GroupV4), 0),
		"close":  a.QP.Close(),
	} {
		t.Run(name, func(t *testing.T) {
			rig.Refused(t, err, verbs.ErrObjectClosed, "the QP")
			rig.Refused(t, err, unix.EINVAL)
		})
	}
}

// secondContext checks that a session allows only one Context.
func secondContext(t *testing.T, w *rig.World) {
	attr, err := w.A.Ctx.QueryDevice()
	rig.Check(t, err)
	_, err = verbs.Open(w.A.Session)
	rig.Refused(t, err, unix.EBUSY, attr.Name+" has a Context")
}

// nilObjects checks that nil objects and attributes return errors.
func nilObjects(t *testing.T, w *rig.World) {
	s := w.A
	var (
		noPD         *verbs.PD
		noQP         *verbs.QP
		noCQ         *verbs.CQ
		noMR         *verbs.MR
		noAH         *verbs.AH
		noMembership *verbs.Membership
		noContext    *verbs.Context
	)
	_, createQP := s.PD.CreateQP(nil)
	_, createAH := s.PD.CreateAH(rig.Guard(t), nil)
	_, fromWC := s.PD.CreateAHFromWC(nil, nil, 1)
	_, queryAH := noAH.Query()
	_, attrFromWC := s.Ctx.InitAHFromWC(nil, nil, 1)
	_, ofNoPD := noPD.CreateQP(&verbs.QPInitAttr{})
	_, ahOfNoPD := noPD.CreateAH(rig.Guard(t), &verbs.AHAttr{})
	_, fromWCOfNoPD := noPD.CreateAHFromWC(&verbs.WC{}, nil, 1)
	_, mrOfNoPD := noPD.AllocMR(1, 0)
	_, regOfNoPD := noPD.RegMR(make([]byte, 1), 0)
	for name, err := range map[string]error{
		"CreateQP(nil)": createQP, "CreateAH(nil)": createAH, "CreateAHFromWC(nil)": fromWC, "InitAHFromWC(nil)": attrFromWC,
		"nil PD: CreateQP": ofNoPD, "nil PD: CreateAH": ahOfNoPD, "nil PD: CreateAHFromWC": fromWCOfNoPD, "nil PD: AllocMR": mrOfNoPD, "nil PD: RegMR": regOfNoPD,
		"Modify(nil)": s.QP.Modify(nil, verbs.QPAttrState), "nil QP: Modify": noQP.Modify(&verbs.QPAttr{}, 0), "nil QP: Close": noQP.Close(),
		"nil CQ: Close": noCQ.Close(), "nil MR: Close": noMR.Close(), "nil AH: Modify": noAH.Modify(rig.Guard(t), &verbs.AHAttr{}), "nil AH: Query": queryAH,
		"nil AH: Close": noAH.Close(), "nil PD: Close": noPD.Close(),
		"nil membership: Close": noMembership.Close(), "nil context: Close": noContext.Close(),
	} {
		t.Run(name, func(t *testing.T) { rig.Refused(t, err, unix.EINVAL, "nil") })
	}
	rig.Check(t, s.QP.PostSend(nil))
	rig.Check(t, s.QP.PostRecv(nil))
	n, err := s.CQ.Poll(nil)
	if n != 0 || err != nil {
		t.Errorf("poll of nothing: %d, %v", n, err)
	}
}
