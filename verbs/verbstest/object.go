package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var objectTests = []test{
	{name: "busy", run: busy},
	{name: "second close", run: secondClose},
	{name: "closed QP says so", run: closedQP},
	{name: "second context", run: secondContext},
	{name: "nil", run: nilObjects},
}

type closer interface{ Close() error }

// An object that others use cannot be closed.
func busy(t *testing.T, w *world) {
	s := w.a
	pd, err := s.ctx.AllocPD()
	check(t, err)
	cq, other := s.newCQ(1), s.newCQ(1)
	mr, err := pd.AllocMR(1, 0)
	check(t, err)
	refused(t, pd.Close(), unix.EBUSY, "1 objects")
	ah, err := pd.CreateAH(guard(t), s.route(w.b.end.IPv4))
	check(t, err)
	check(t, mr.Close())
	refused(t, pd.Close(), unix.EBUSY)
	qp, err := pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: other})
	check(t, err)
	check(t, ah.Close())
	refused(t, pd.Close(), unix.EBUSY)
	refused(t, cq.Close(), unix.EBUSY, "close their QPs")
	refused(t, other.Close(), unix.EBUSY)
	check(t, qp.Close())
	for _, object := range []closer{cq, other, pd} {
		check(t, object.Close())
		refused(t, object.Close(), unix.EINVAL, "closed already")
	}
	for _, object := range []closer{mr, ah} {
		refused(t, object.Close(), unix.EINVAL, "closed already")
	}
	_, err = pd.AllocMR(1, 0)
	refused(t, err, unix.EINVAL, "PD")
}

// A second Close, the usual deferred one, never hits what was made in between.
func secondClose(t *testing.T, w *world) {
	s := w.a
	makers := map[string]func() (closer, error){
		"PD":  func() (closer, error) { return s.ctx.AllocPD() },
		"CQ":  func() (closer, error) { return s.ctx.CreateCQ(1) },
		"MR":  func() (closer, error) { return s.pd.AllocMR(1, 0) },
		"AH":  func() (closer, error) { return s.pd.CreateAH(guard(t), s.route(w.b.end.IPv4)) },
		"SRQ": func() (closer, error) { return s.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1}) },
		"QP": func() (closer, error) {
			return s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq})
		},
		"membership": func() (closer, error) { return s.ctx.JoinMulticast(groupV4, verbs.JoinFullMember) },
	}
	for name, create := range makers {
		first, err := create()
		check(t, err)
		check(t, first.Close())
		var others []closer
		for range 8 { // also of other kinds: none may be hit
			for _, create := range makers {
				other, err := create()
				check(t, err)
				others = append(others, other)
			}
		}
		refused(t, first.Close(), verbs.ErrObjectClosed, name)
		for _, other := range others {
			check(t, other.Close())
		}
	}
}

// A closed queue pair says so.
func closedQP(t *testing.T, w *world) {
	a := w.a
	ah := a.ah(w.b.end.IPv4)
	check(t, a.qp.Close())
	_, _, query := a.qp.Query()
	for name, err := range map[string]error{
		"send":   a.qp.PostSend([]verbs.SendWR{a.send(1, ah, w.b.qp)}),
		"recv":   a.qp.PostRecv([]verbs.RecvWR{{}}),
		"modify": a.qp.Modify(&verbs.QPAttr{State: verbs.QPStateInit}, verbs.QPAttrState),
		"query":  query,
		"attach": a.qp.AttachMcast(gid(groupV4), 0),
		"close":  a.qp.Close(),
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, err, verbs.ErrObjectClosed, "the QP")
			refused(t, err, unix.EINVAL)
		})
	}
}

// A session has one context: a second is refused.
func secondContext(t *testing.T, w *world) {
	attr, err := w.a.ctx.QueryDevice()
	check(t, err)
	_, err = verbs.Open(w.a.session)
	refused(t, err, unix.EBUSY, attr.Name+" has a Context")
}

// nil where an object or attributes are needed is an error.
func nilObjects(t *testing.T, w *world) {
	s := w.a
	var (
		noPD         *verbs.PD
		noQP         *verbs.QP
		noCQ         *verbs.CQ
		noMR         *verbs.MR
		noAH         *verbs.AH
		noMembership *verbs.Membership
		noContext    *verbs.Context
	)
	_, createQP := s.pd.CreateQP(nil)
	_, createAH := s.pd.CreateAH(guard(t), nil)
	_, fromWC := s.pd.CreateAHFromWC(nil, nil, 1)
	_, queryAH := noAH.Query()
	_, attrFromWC := s.ctx.InitAHFromWC(nil, nil, 1)
	_, ofNoPD := noPD.CreateQP(&verbs.QPInitAttr{})
	_, ahOfNoPD := noPD.CreateAH(guard(t), &verbs.AHAttr{})
	_, fromWCOfNoPD := noPD.CreateAHFromWC(&verbs.WC{}, nil, 1)
	_, mrOfNoPD := noPD.AllocMR(1, 0)
	_, regOfNoPD := noPD.RegMR(make([]byte, 1), 0)
	for name, err := range map[string]error{
		"CreateQP(nil)": createQP, "CreateAH(nil)": createAH, "CreateAHFromWC(nil)": fromWC, "InitAHFromWC(nil)": attrFromWC,
		"nil PD: CreateQP": ofNoPD, "nil PD: CreateAH": ahOfNoPD, "nil PD: CreateAHFromWC": fromWCOfNoPD, "nil PD: AllocMR": mrOfNoPD, "nil PD: RegMR": regOfNoPD,
		"Modify(nil)": s.qp.Modify(nil, verbs.QPAttrState), "nil QP: Modify": noQP.Modify(&verbs.QPAttr{}, 0), "nil QP: Close": noQP.Close(),
		"nil CQ: Close": noCQ.Close(), "nil MR: Close": noMR.Close(), "nil AH: Modify": noAH.Modify(guard(t), &verbs.AHAttr{}), "nil AH: Query": queryAH,
		"nil AH: Close": noAH.Close(), "nil PD: Close": noPD.Close(),
		"nil membership: Close": noMembership.Close(), "nil context: Close": noContext.Close(),
	} {
		t.Run(name, func(t *testing.T) { refused(t, err, unix.EINVAL, "nil") })
	}
	check(t, s.qp.PostSend(nil))
	check(t, s.qp.PostRecv(nil))
	n, err := s.cq.Poll(nil)
	if n != 0 || err != nil {
		t.Errorf("poll of nothing: %d, %v", n, err)
	}
}
