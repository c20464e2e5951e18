// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var sqdTests = []rig.Test{
	{Name: "SQD event", Run: sqdEvent},
	{Name: "SQD without event", Run: sqdWithoutEvent},
}

func sqDrained(qp *verbs.QP) verbs.AsyncEvent {
	return verbs.AsyncEvent{Type: verbs.EventSQDrained, QP: qp}
}

// toSQD moves a queue pair to SQD, and requests the event if notify is set.
func toSQD(t testing.TB, qp *verbs.QP, notify bool) {
	t.Helper()
	attr := verbs.QPAttr{State: verbs.QPStateSQD, EnSQDAsyncNotify: notify}
	rig.Check(t, qp.Modify(&attr, verbs.QPAttrState|verbs.QPAttrEnSQDAsyncNotify))
}

// sqdEvent checks that each requested event of SQD occurs after the completions of the sent requests, and that the
// other requests wait for RTS.
func sqdEvent(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	for range 3 {
		for i := range rig.Depth {
			a.Post(a.Send(uint64(i), ah, b.QP))
		}
		toSQD(t, a.QP, true)
		a.ExpectEvents(sqDrained(a.QP))
		sent := rig.Completions(t, a.CQ)
		w.NothingElse()
		rig.To(t, a.QP, verbs.QPStateRTS)
		sent = append(sent, a.Wait(rig.Depth-len(sent))...)
		for i, wc := range sent {
			if wc.ID != uint64(i) || wc.Status != verbs.WCSuccess {
				t.Errorf("send %d: %+v", i, wc)
			}
		}
	}
	a.NoEvent()
	rig.Check(t, a.QP.Close())
	a.NoEvent()
}

// sqdWithoutEvent checks that no event occurs without a request, and that Query reports the request.
func sqdWithoutEvent(t *testing.T, w *rig.World) {
	a := w.A
	asked := func(want bool) {
		t.Helper()
		attr, _, err := a.QP.Query()
		rig.Check(t, err)
		if attr.EnSQDAsyncNotify != want || attr.State != verbs.QPStateSQD {
			t.Errorf("%+v, want notification %v", attr, want)
		}
	}
	rig.To(t, a.QP, verbs.QPStateSQD)
	asked(false)
	rig.To(t, a.QP, verbs.QPStateSQD)
	rig.To(t, a.QP, verbs.QPStateRTS)
	toSQD(t, a.QP, false)
	asked(false)
	again := verbs.QPAttr{State: verbs.QPStateSQD, EnSQDAsyncNotify: true}
	rig.Refused(t, a.QP.Modify(&again, verbs.QPAttrState|verbs.QPAttrEnSQDAsyncNotify), unix.EINVAL, "SQD to SQD")
	a.NoEvent()
	rig.To(t, a.QP, verbs.QPStateRTS)
	toSQD(t, a.QP, true)
	asked(true)
	a.ExpectEvents(sqDrained(a.QP))
	a.NoEvent()
}
