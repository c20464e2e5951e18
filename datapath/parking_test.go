// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/runner"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/ib"
)

// A change that leaves work wakes a sleeping worker, as no other event would wake it.
func TestChangeWakesTheWorker(t *testing.T) {
	left, right := newWire(t)
	a := newStation(t, left, true)
	newStation(t, right, true)
	for i := range 50 {
		a.engine.Do(func() { a.qp.SetState(ib.QPStateSQD) })
		wait(t, "sleep", a.doorbell.Asleep)
		a.send.Put(&ring.Send{ID: uint64(i), Opcode: ib.WRSend, Flags: ib.SendSignaled, RemoteQPN: peerQP})
		a.send.Publish()
		if a.doorbell.Ring(3) {
			a.engine.Wake(a.session)
		}
		wait(t, "sleep with a request that waits", func() bool { return a.doorbell.Asleep() && !a.doorbell.Pending() })
		a.engine.Do(func() { a.qp.SetState(ib.QPStateRTS) })
		wait(t, "the completion", func() bool { return len(a.completions()) == 1 })
	}
}

// parked makes the worker park for a program that polls.
func (r *rig) parked() {
	wait(r.T, "a parked worker", func() bool {
		if r.engine.runner.State() == runner.Asleep {
			r.engine.Wake(r.session) // as a frame does
		}
		r.engine.Progress()
		return r.engine.runner.State() == runner.Parked
	})
}

// While the worker is parked the doorbell is marked asleep, and a program that posts and calls Kick sends in its own
// thread.
func TestPostToAParkedWorker(t *testing.T) {
	left, right := newWire(t)
	a := newStation(t, left, true)
	newStation(t, right, true)
	sent := 0
	for range 200 {
		a.parked()
		a.send.Put(&ring.Send{Opcode: ib.WRSend, Flags: ib.SendSignaled, RemoteQPN: peerQP})
		a.send.Publish()
		if a.doorbell.Ring(3) && a.engine.runner.State() == runner.Parked {
			a.engine.Kick(a.session)
			if len(a.completions()) == 1 {
				sent++
				continue
			}
		}
		wait(t, "the completion", func() bool { return len(a.completions()) == 1 })
	}
	if sent == 0 {
		t.Errorf("none of 200 posts was sent by the call; all met the worker's last round")
	}
}

// Many posts without a wait park the worker; posts are still sent immediately. When a program waits, the worker runs
// again.
func TestManyKicks(t *testing.T) {
	left, right := newWire(t)
	a := newStation(t, left, true)
	newStation(t, right, true)
	post := func() {
		a.send.Put(&ring.Send{Opcode: ib.WRSend, Flags: ib.SendSignaled, RemoteQPN: peerQP})
		a.send.Publish()
		if a.doorbell.Ring(3) {
			a.engine.Kick(a.session)
		}
		wait(t, "the completion", func() bool { return len(a.completions()) == 1 })
	}
	for range 5 {
		wait(t, "a parked worker", func() bool {
			post()
			return a.engine.runner.State() == runner.Parked
		})
		a.engine.BeginWait()
		wait(t, "the end of the parking", func() bool { return a.engine.runner.State() != runner.Parked })
		for range 64 {
			wait(t, "sleep", func() bool { return a.engine.runner.State() == runner.Asleep })
			post()
			if a.engine.runner.State() == runner.Parked {
				t.Fatal("parked while a program waits")
			}
		}
		a.engine.EndWait()
	}
}

// A waiting program ends the parking. While it waits the worker is not parked again, even if other programs poll.
func TestNoParkingWhileAProgramWaits(t *testing.T) {
	left, right := newWire(t)
	a := newStation(t, left, true)
	newStation(t, right, true)
	for range waittest.Often(50) {
		a.parked()
		a.engine.BeginWait()
		wait(t, "the end of the parking", func() bool { return a.engine.runner.State() != runner.Parked })
		parkings, was := 0, false
		for end := time.Now().Add(3 * runner.RetryTime); time.Now().Before(end); {
			a.engine.Progress()
			is := a.engine.runner.State() == runner.Parked
			if is && !was {
				parkings++
			}
			was = is
		}
		if parkings > 1 { // one may have begun before the wait
			t.Fatalf("parked %d times while a program waits", parkings)
		}
		a.engine.EndWait()
	}
}

// Frames that are waiting when the link goes down are counted as dropped once the link reports them as unsent. While it
// is down, the link is not flushed again.
func TestLinkDownWithFramesWaiting(t *testing.T) {
	r := newRig(t)
	r.link.stuck = true
	r.postSend(ring.Send{})
	r.run()
	if !r.engine.more() {
		t.Fatal("no frame waits")
	}
	r.link.left = 1
	r.engine.Do(func() { r.engine.setLink(false) })
	r.run()
	if r.engine.more() {
		t.Error("a link that is down was retried")
	}
	if c := r.engine.Counters(); c.Drops[DropLinkDown] != 0 {
		t.Errorf("counted before a flush: %v", named(&c))
	}
	r.link.stuck = false
	r.engine.Do(func() { r.engine.setLink(true) })
	if !r.engine.more() {
		t.Error("a link that is up was not retried")
	}
	r.run()
	if c := r.engine.Counters(); c.Drops[DropLinkDown] != 1 || r.engine.more() {
		t.Errorf("drops %v, more %v", named(&c), r.engine.more())
	}
}

// A kick sends without polling for packets. A program that only posts also receives packets after some kicks.
func TestKicksReceive(t *testing.T) {
	r := newRig(t)
	r.postRecv(7, piece(0, 200))
	r.link.in = [][]byte{datagram(nil)}
	kick := func() {
		r.engine.lease.Lock()
		r.engine.runHeld(deaf)
	}
	for range deafKicks {
		kick()
	}
	if n := r.engine.counters.Received; n != 0 {
		t.Fatalf("%d received", n)
	}
	kick()
	if n := r.engine.counters.Received; n != 1 {
		t.Fatalf("%d received after %d kicks", n, deafKicks+1)
	}
}

// glancingLink records how it is polled.
type glancingLink struct {
	*fakeLink
	looks string // R: Receive, G: Glance
}

func (l *glancingLink) Receive() int {
	l.looks += "R"
	return l.fakeLink.Receive()
}

func (l *glancingLink) Glance() int {
	l.looks += "G"
	return l.fakeLink.Receive()
}

// A polling program uses fast polls of an idle link, with a complete poll after every few of them. The worker, which
// may sleep afterwards, uses only complete polls.
func TestPollingGlances(t *testing.T) {
	l := &glancingLink{fakeLink: &fakeLink{}}
	r := newRigOn(t, l)
	for i := range 12 {
		if i == 8 {
			l.in = [][]byte{datagram(nil)}
		}
		r.engine.Progress()
	}
	for range 3 {
		r.engine.Round()
	}
	if want := "RGGGRGGGRRGG" + "RRR"; l.looks != want {
		t.Errorf("got polls %s, want %s", l.looks, want)
	}
}
