// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var timestampTests = []rig.Test{
	{Name: "timestamps", Run: timestamps},
	{Name: "no timestamps without the flags", Run: noTimestamps},
}

// timestamps checks that a CQ with the timestamp flags has both clocks in each completion of a send or receive, also
// after a resize. The times must lie between the post and the poll.
func timestamps(t *testing.T, w *rig.World) {
	const both = ib.WCExWithCompletionTimestamp | ib.WCExWithCompletionTimestampWallclock
	cq, err := w.A.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 8, WCFlags: both})
	rig.Check(t, err)
	qp := w.A.NewQPWith(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: rig.DefaultCap()})
	rig.Check(t, qp.Activate(rig.TestQKey))
	ah, back := w.A.AH(w.B.End.IPv4), w.B.AH(w.A.End.IPv4)
	last := uint64(0)
	for range 5 {
		before, wallBefore := w.A.Clock(), uint64(time.Now().UnixNano())
		w.B.Receive(0)
		w.A.ReceiveOn(qp, 1)
		rig.Check(t, qp.PostSend([]verbs.SendWR{w.A.Send(2, ah, w.B.QP)}))
		sent := w.A.WaitOn(cq, 1)
		w.B.Post(w.B.Send(3, back, qp))
		w.B.Wait(2)
		received := w.A.WaitOn(cq, 1)
		after, wallAfter := w.A.Clock(), uint64(time.Now().UnixNano())
		for _, wc := range append(sent, received...) {
			if wc.Timestamp < before || wc.Timestamp < last || wc.Timestamp > after {
				t.Errorf("clock %d, between %d and %d, after %d", wc.Timestamp, before, after, last)
			}
			if wc.Wallclock < wallBefore || wc.Wallclock > wallAfter {
				t.Errorf("wall clock %d, between %d and %d", wc.Wallclock, wallBefore, wallAfter)
			}
			last = wc.Timestamp
		}
		rig.Check(t, cq.Resize(cq.Capacity()+8))
	}
}

// noTimestamps checks that completions of other CQs have no timestamps, also if the caller's array contained some.
func noTimestamps(t *testing.T, w *rig.World) {
	w.A.Post(w.A.Send(1, w.A.AH(w.B.End.IPv4), w.B.QP))
	wcs := []verbs.WC{{Timestamp: 1, Wallclock: 1}}
	n, err := w.A.CQ.Wait(rig.Guard(t), wcs)
	rig.Check(t, err)
	if n != 1 || wcs[0].Timestamp != 0 || wcs[0].Wallclock != 0 {
		t.Errorf("%+v", wcs[:n])
	}
}
