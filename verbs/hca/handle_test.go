package hca

import (
	"context"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

type closer interface{ Close() error }

// A second Close, the usual deferred one, never hits what was made in between.
func TestSecondClose(t *testing.T) {
	s := newStillPair(t).a
	makers := map[string]func() (closer, error){
		"PD": func() (closer, error) { return s.ctx.AllocPD() },
		"CQ": func() (closer, error) { return s.ctx.CreateCQ(1) },
		"MR": func() (closer, error) { return s.pd.AllocMR(1, 0) },
		"AH": func() (closer, error) { return s.pd.CreateAH(context.Background(), s.route("10.0.0.2")) },
		"QP": func() (closer, error) {
			return s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq})
		},
		"membership": func() (closer, error) { return s.ctx.JoinMulticast(address("239.1.2.3"), verbs.JoinFullMember) },
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

// A request whose address handle is closed never goes where a later one leads.
func TestClosedAHAndItsSuccessors(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	a.device.ahs.limit = 1 // the next handle is at the same place
	ah := a.ah("10.0.0.1")
	to(t, a.qp, verbs.QPStateSQD)
	a.post(a.send(1, ah, b))
	check(t, ah.Close())
	other := a.ah("10.0.0.2")
	b.receive(0)
	to(t, a.qp, verbs.QPStateRTS)
	w.run()
	expect(t, a.completions(), outcome{1, verbs.WCLocQPOpErr})
	expect(t, b.completions())
	to(t, a.qp, verbs.QPStateRTS)
	refused(t, a.qp.PostSend([]verbs.SendWR{a.send(2, ah, b)}), verbs.ErrObjectClosed, "address handle")
	a.post(a.send(3, other, b))
	w.run()
	expect(t, a.completions(), ok(3))
	expect(t, b.completions(), ok(0))
}

// The lkey of a region that is closed covers no later region's memory, however often
// its place was used since.
func TestClosedMRAndItsSuccessors(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	a.device.mrs.limit = 2 // the station's, and one more
	mr, err := a.pd.AllocMR(100, 0)
	check(t, err)
	stale := mr.SGE(0, 1)
	for range 300 { // more than the low byte of an lkey tells apart
		check(t, mr.Close())
		mr, err = a.pd.AllocMR(100, 0)
		check(t, err)
		if mr.LKey() == stale.LKey {
			t.Fatal("an lkey is used again")
		}
	}
	ah := a.ah("10.0.0.2")
	a.post(a.send(1, ah, b, stale))
	w.run()
	expect(t, a.completions(), outcome{1, verbs.WCLocProtErr})
	to(t, a.qp, verbs.QPStateRTS)
	a.post(a.send(2, ah, b, mr.SGE(0, 1)))
	w.run()
	expect(t, a.completions(), ok(2))
}

// A closed queue pair says so.
func TestClosedQPSaysSo(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	ah := a.ah("10.0.0.2")
	check(t, a.qp.Close())
	_, _, query := a.qp.Query()
	for name, err := range map[string]error{
		"send":   a.qp.PostSend([]verbs.SendWR{a.send(1, ah, w.b)}),
		"recv":   a.qp.PostRecv([]verbs.RecvWR{{}}),
		"modify": a.qp.Modify(&verbs.QPAttr{State: verbs.QPStateInit}, verbs.QPAttrState),
		"query":  query,
		"attach": a.qp.AttachMcast(gid("239.1.2.3"), 0),
		"close":  a.qp.Close(),
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, err, verbs.ErrObjectClosed, "the QP")
			refused(t, err, unix.EINVAL)
		})
	}
}
