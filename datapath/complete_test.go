// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/verbs/ib"
)

// All completions of a burst are published to their CQ at once.
func TestPublishedOnceABurst(t *testing.T) {
	r := newRig(t)
	for i := range uint64(3) {
		r.postRecv(i, piece(0, 100))
		r.link.in = append(r.link.in, datagram(nil))
	}
	r.engine.Do(func() {
		r.engine.receive(listens)
		if n := len(r.engine.completions.dirty); n != 1 {
			t.Errorf("%d queues to publish", n)
		}
	})
	if got := r.completions(); len(got) != 3 {
		t.Errorf("completions %+v", got)
	}
}

// TestOverrunIsReportedLast checks that a CQ is marked as overrun only after its completions are published: a program
// that finds it marked and empty has read all of them.
func TestOverrunIsReportedLast(t *testing.T) {
	r := newRig(t)
	r.engine.Do(func() { r.engine.RemoveQP(r.qp) })
	r.makeQP(r.makeCQ(2))
	for i := range uint64(3) {
		r.postRecv(i, piece(0, 100))
		r.link.in = append(r.link.in, datagram(nil))
	}
	r.engine.Do(func() {
		r.engine.AddQP(r.qp)
		r.qp.SetState(ib.QPStateRTS)
		r.engine.receive(listens)
		if !r.qp.RecvCQ.overrun || r.cq.Failed() || r.overruns > 0 {
			t.Errorf("overrun %v, marked %v before its completions are published", r.qp.RecvCQ.overrun, r.cq.Failed())
		}
	})
	if n := r.cq.Available(2); n != 2 || !r.cq.Failed() || r.overruns != 1 {
		t.Errorf("%d completions, marked %v, reported %d times", n, r.cq.Failed(), r.overruns)
	}
}
