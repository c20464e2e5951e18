package verbstest

import (
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

var timestampTests = []test{
	{name: "timestamps", run: timestamps},
	{name: "no timestamps without the wish", run: noTimestamps},
}

// A CQ that was made with the wish has both clocks in each completion, of sends and of receives, and
// still after a resize: no earlier than the request, and no later than its completion is polled.
func timestamps(t *testing.T, w *world) {
	const both = verbs.WCExWithCompletionTimestamp | verbs.WCExWithCompletionTimestampWallclock
	cq, err := w.a.ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 8, WCFlags: both})
	check(t, err)
	qp := w.a.newQPWith(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: defaultCap()})
	check(t, qp.Activate(testQKey))
	ah, back := w.a.ah(w.b.end.IPv4), w.b.ah(w.a.end.IPv4)
	last := uint64(0)
	for range 5 {
		before, wallBefore := w.a.clock(), uint64(time.Now().UnixNano())
		w.b.receive(0)
		w.a.receiveOn(qp, 1)
		check(t, qp.PostSend([]verbs.SendWR{w.a.send(2, ah, w.b.qp)}))
		sent := w.a.waitOn(cq, 1)
		w.b.post(w.b.send(3, back, qp))
		w.b.wait(2)
		received := w.a.waitOn(cq, 1)
		after, wallAfter := w.a.clock(), uint64(time.Now().UnixNano())
		for _, wc := range append(sent, received...) {
			if wc.Timestamp < before || wc.Timestamp < last || wc.Timestamp > after {
				t.Errorf("clock %d, between %d and %d, after %d", wc.Timestamp, before, after, last)
			}
			if wc.Wallclock < wallBefore || wc.Wallclock > wallAfter {
				t.Errorf("wall clock %d, between %d and %d", wc.Wallclock, wallBefore, wallAfter)
			}
			last = wc.Timestamp
		}
		check(t, cq.Resize(cq.Capacity()+8))
	}
}

func (s *station) clock() uint64 {
	s.Helper()
	values, err := s.ctx.QueryRTValues()
	check(s, err)
	return values.RawClock
}

// Another CQ has none, also when its completions are taken into memory that held some.
func noTimestamps(t *testing.T, w *world) {
	w.a.post(w.a.send(1, w.a.ah(w.b.end.IPv4), w.b.qp))
	wcs := []verbs.WC{{Timestamp: 1, Wallclock: 1}}
	n, err := w.a.cq.Wait(guard(t), wcs)
	check(t, err)
	if n != 1 || wcs[0].Timestamp != 0 || wcs[0].Wallclock != 0 {
		t.Errorf("%+v", wcs[:n])
	}
}
