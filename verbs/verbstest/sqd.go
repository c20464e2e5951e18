package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var sqdTests = []test{
	{name: "SQD event", run: sqdEvent},
	{name: "SQD without event", run: sqdWithoutEvent},
}

func sqDrained(qp *verbs.QP) verbs.AsyncEvent {
	return verbs.AsyncEvent{Type: verbs.EventSQDrained, QP: qp}
}

// toSQD stops the send queue, and asks for the event.
func toSQD(t testing.TB, qp *verbs.QP, notify bool) {
	t.Helper()
	attr := verbs.QPAttr{State: verbs.QPStateSQD, EnSQDAsyncNotify: notify}
	check(t, qp.Modify(&attr, verbs.QPAttrState|verbs.QPAttrEnSQDAsyncNotify))
}

// When the event of a drained send queue comes, what the card has sent is in the CQ, and the rest
// waits for RTS. Each SQD that asks has one.
func sqdEvent(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	for range 3 {
		for i := range depth {
			a.post(a.send(uint64(i), ah, b.qp))
		}
		toSQD(t, a.qp, true)
		a.expectEvents(sqDrained(a.qp))
		sent := completions(t, a.cq)
		w.nothingElse()
		to(t, a.qp, verbs.QPStateRTS)
		sent = append(sent, a.wait(depth-len(sent))...)
		for i, wc := range sent {
			if wc.ID != uint64(i) || wc.Status != verbs.WCSuccess {
				t.Errorf("send %d: %+v", i, wc)
			}
		}
	}
	a.noEvent()
	check(t, a.qp.Close())
	a.noEvent()
}

// Who does not ask has none, and Query says so.
func sqdWithoutEvent(t *testing.T, w *world) {
	a := w.a
	asked := func(want bool) {
		t.Helper()
		attr, _, err := a.qp.Query()
		check(t, err)
		if attr.EnSQDAsyncNotify != want || attr.State != verbs.QPStateSQD {
			t.Errorf("%+v, want the notification %v", attr, want)
		}
	}
	to(t, a.qp, verbs.QPStateSQD)
	asked(false)
	to(t, a.qp, verbs.QPStateSQD)
	to(t, a.qp, verbs.QPStateRTS)
	toSQD(t, a.qp, false)
	asked(false)
	again := verbs.QPAttr{State: verbs.QPStateSQD, EnSQDAsyncNotify: true}
	refused(t, a.qp.Modify(&again, verbs.QPAttrState|verbs.QPAttrEnSQDAsyncNotify), unix.EINVAL, "SQD to SQD")
	a.noEvent()
	to(t, a.qp, verbs.QPStateRTS)
	toSQD(t, a.qp, true)
	asked(true)
	a.expectEvents(sqDrained(a.qp))
	a.noEvent()
}
