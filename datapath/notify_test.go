// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/datapath/ring"
)

// newModerated returns a rig whose CQ has this moderation; events counts its notifications.
func newModerated(t *testing.T, m Moderation) (r *rig, events *int) {
	t.Helper()
	r, events = newRig(t), new(int)
	r.qp.RecvCQ.Notify = func() { *events++ }
	r.engine.Do(func() { r.qp.RecvCQ.Moderate(m) })
	return r, events
}

// complete completes a number of receive requests in one round.
func (r *rig) complete(n int) {
	r.Helper()
	for range n {
		r.postRecv(1, piece(0, 200))
		r.link.in = append(r.link.in, datagram(nil))
	}
	r.run()
}

// The event is sent with the completion that reaches the count, however the completions are divided among rounds.
// Completions from before the queue was armed do not count.
func TestModerationByCount(t *testing.T) {
	r, events := newModerated(t, Moderation{Count: 4, Period: time.Hour})
	r.complete(3)
	for i := range 3 {
		r.completions()
		r.cq.Arm(false)
		r.complete(1)
		r.complete(2)
		if *events != i {
			t.Fatalf("%d events after 3 completions of 4, want %d", *events, i)
		}
		r.complete(1)
		r.complete(2)
		if *events != i+1 {
			t.Fatalf("%d events, want %d", *events, i+1)
		}
		r.completions()
	}
}

// A queue armed for solicited completions counts from the first solicited one.
func TestModerationOfSolicited(t *testing.T) {
	r, events := newModerated(t, Moderation{Count: 2, Period: time.Hour})
	r.cq.Arm(true)
	r.complete(4)
	if *events != 0 {
		t.Fatal("got an event without a solicited completion")
	}
	r.completions()
	r.qp.RecvCQ.solicited = true
	r.complete(1)
	if *events != 0 {
		t.Fatal("got an event after one of two completions")
	}
	r.complete(1)
	if *events != 1 {
		t.Fatalf("%d events", *events)
	}
}

// The event of an overrun is not delayed.
func TestModerationOfOverrun(t *testing.T) {
	r, events := newModerated(t, Moderation{Count: math.MaxUint16, Period: time.Hour})
	r.cq.Arm(false)
	for r.overruns == 0 {
		r.complete(1)
	}
	if *events != 1 {
		t.Errorf("%d events", *events)
	}
}

// Delayed events are sent when the moderation changes, and discarded when the CQ is removed.
func TestModerationEnds(t *testing.T) {
	r, events := newModerated(t, Moderation{Count: 100, Period: time.Hour})
	cq := r.qp.RecvCQ
	r.cq.Arm(false)
	r.complete(1)
	r.engine.Do(func() { cq.Moderate(Moderation{}) })
	if *events != 1 || cq.deadline.Runs() {
		t.Errorf("%d events", *events)
	}
	r.engine.Do(func() { cq.Moderate(Moderation{Count: 100, Period: time.Nanosecond}) })
	r.cq.Arm(false)
	r.engine.Do(func() {
		cq.Queue.Put(&ring.CQE{})
		e := r.engine
		e.completions.dirty = append(e.completions.dirty, cq)
		cq.dirty = true
	})
	r.engine.Do(func() { cq.Remove() })
	if n := len(r.engine.completions.postponed); n != 0 {
		t.Errorf("%d CQs are still referenced", n)
	}
}

// The alarm wakes a sleeping worker each time, for each of several CQs. Afterwards no timer runs.
func TestAlarmWakesTheWorker(t *testing.T) {
	r := newRigOn(t, &fakeLink{})
	var events [3]atomic.Int32
	var cqs [3]*CQ
	var queues [3]*ring.CompletionConsumer
	for i := range cqs {
		cqs[i] = r.makeCQ(64)
		queues[i] = r.cq
		cqs[i].Notify = func() { events[i].Add(1) }
		cqs[i].moderation = Moderation{Count: 100, Period: time.Duration(i+1) * time.Millisecond}
	}
	r.engine.Start()
	for round := range int32(20) {
		r.asleep()
		for i := range cqs {
			queues[i].Arm(false)
		}
		r.engine.Do(func() {
			for _, cq := range cqs {
				r.engine.completions.complete(cq, &ring.CQE{}, false)
			}
		})
		for i := range events {
			wait(t, "the event", func() bool { return events[i].Load() == round+1 })
		}
	}
	r.asleep()
	r.engine.Do(func() {
		if n := len(r.engine.completions.postponed); n != 0 {
			t.Errorf("%d CQs have unnecessary timers", n)
		}
	})
}

// Invalid armings and thresholds, which a program can write, have no effect other than additional events.
func TestArmedWordOfAnyContent(t *testing.T) {
	r, events := newModerated(t, Moderation{Count: 2, Period: time.Nanosecond})
	for bits := range uint32(64) {
		for _, threshold := range []uint32{0, 1, math.MaxUint32} {
			for bit := range 4 {
				if bits>>bit&1 != 0 {
					r.cq.SetThreshold(threshold)
					[]func(){func() { r.cq.Arm(false) }, func() { r.cq.Arm(true) }, r.cq.ArmCount, r.cq.ArmWait}[bit]()
				}
			}
			before := *events
			r.complete(1)
			r.engine.Do(func() { r.qp.RecvCQ.Check(ring.Arming(math.MaxUint32)) })
			r.completions()
			if *events > before+1 {
				t.Fatalf("%d events", *events-before)
			}
		}
	}
}

// The events of one round are sent in the order of the completions.
func TestEventsComeInOrder(t *testing.T) {
	r := newRig(t)
	var order []int
	var cqs [5]*CQ
	for i := range cqs {
		cqs[i] = r.makeCQ(64)
		cqs[i].Notify = func() { order = append(order, i) }
		r.cq.Arm(false)
	}
	want := []int{3, 0, 4, 1, 2}
	r.engine.Do(func() {
		for _, i := range append(want, 2, 3) {
			r.engine.completions.complete(cqs[i], &ring.CQE{}, false)
		}
	})
	if !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}
