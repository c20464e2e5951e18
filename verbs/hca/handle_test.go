// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/verbs"
)

// A request whose address handle is closed is never sent to the destination of a later handle.
func TestClosedAHAndItsSuccessors(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	a.device.session.ahs.Limit = 1 // the next handle is at the same place
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

// The lkey of a closed region covers no later region's memory, however often its place has been reused.
func TestClosedMRAndItsSuccessors(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	a.device.session.mrs.Limit = 2 // the station's, and one more
	mr, err := a.pd.AllocMR(100, 0)
	check(t, err)
	stale := mr.SGE(0, 1)
	for range 300 { // more than the low byte of an lkey distinguishes
		check(t, mr.Close())
		mr, err = a.pd.AllocMR(100, 0)
		check(t, err)
		if mr.LKey() == stale.LKey {
			t.Fatal("an lkey was reused")
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
