// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/ib"
)

// The tests of this file run engines over an in-memory wire, with their threads.

func newStation(t *testing.T, port link.Link, start bool) *rig {
	t.Helper()
	r := newRigOn(t, port)
	if start {
		r.engine.Start()
	}
	return r
}

func newWire(t *testing.T) (a, b link.Link) {
	t.Helper()
	n := link.NewNetwork(0)
	return n.Port(wire.MAC{2, 1}), n.Port(wire.MAC{2, 2})
}

// wait waits until done returns true. Its limit only ends a test that hangs.
func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for start := time.Now(); !done(); {
		if time.Since(start) > waittest.Limit {
			t.Fatalf("timeout waiting for %s", what)
		}
		runtime.Gosched()
	}
}

// A sleeping worker is woken by a doorbell, and one at the other end by a frame.
func TestWorkersWake(t *testing.T) {
	left, right := newWire(t)
	a, b := newStation(t, left, true), newStation(t, right, true)
	b.engine.Do(func() { b.engine.tables.setAddresses([]wire.GID{peerGID}) })
	for i := range 50 {
		wait(t, "sleep of the sender", a.doorbell.Asleep)
		wait(t, "sleep of the receiver", b.doorbell.Asleep)
		b.postRecv(uint64(i), piece(0, 200))
		s := ring.Send{Opcode: ib.WRSend, RemoteQPN: testQP, RemoteQKey: testQKey}
		a.send.Put(&s)
		a.send.Publish()
		if a.doorbell.Ring(3) {
			a.engine.Wake(a.session)
		}
		wait(t, "the message", func() bool { return len(b.completions()) == 1 })
	}
}

// While a program polls, the worker runs no rounds; afterwards it runs them again.
func TestWorkerComesBack(t *testing.T) {
	left, right := newWire(t)
	a, b := newStation(t, left, true), newStation(t, right, false)
	for range 1000 {
		a.engine.Progress()
	}
	a.engine.BeginWait()
	defer a.engine.EndWait()
	s := ring.Send{Opcode: ib.WRSend, RemoteQPN: testQP, RemoteQKey: testQKey}
	a.send.Put(&s)
	a.send.Publish()
	if a.doorbell.Ring(3) {
		a.engine.Wake(a.session)
	}
	b.engine.Do(func() { b.engine.tables.setAddresses([]wire.GID{peerGID}) })
	wait(t, "the message", func() bool {
		b.engine.Progress()
		return b.engine.Counters().Received == 1
	})
}

// Polling programs, the worker and the control plane run concurrently, without data races, and every message arrives.
func TestEverybodyAtOnce(t *testing.T) {
	left, right := newWire(t)
	a, b := newStation(t, left, true), newStation(t, right, true)
	b.engine.Do(func() { b.engine.tables.setAddresses([]wire.GID{peerGID}) })
	const messages = 300
	stop := make(chan struct{})
	var background sync.WaitGroup
	for _, r := range []*rig{a, b} {
		background.Add(2)
		go func() {
			defer background.Done()
			for {
				select {
				case <-stop:
					return
				default:
					r.engine.Progress()
					runtime.Gosched()
				}
			}
		}()
		go func() {
			defer background.Done()
			for {
				select {
				case <-stop:
					return
				default:
					r.engine.Do(func() { r.engine.tables.setMTU(wire.MTU1024) })
					runtime.Gosched()
				}
			}
		}()
	}
	for i := range messages {
		b.postRecv(uint64(i), piece(0, 200))
		s := ring.Send{Opcode: ib.WRSend, RemoteQPN: testQP, RemoteQKey: testQKey}
		a.send.Put(&s)
		a.send.Publish()
		if a.doorbell.Ring(3) {
			a.engine.Wake(a.session)
		}
		wait(t, "a message", func() bool { return len(b.completions()) == 1 })
	}
	close(stop)
	background.Wait()
	if c := b.engine.Counters(); c.Delivered != messages || c.Dropped() != 0 {
		t.Errorf("delivered %d, drops %v", c.Delivered, named(&c))
	}
}

// An armed CQ sends one event, and no other before it is armed again.
func TestArmedQueueWakesOnce(t *testing.T) {
	r := newRig(t)
	deliver := func() {
		r.postRecv(1, piece(0, 200))
		r.link.in = [][]byte{datagram(nil)}
		r.run()
	}
	deliver()
	if len(r.wake) != 0 {
		t.Fatal("got an event without arming")
	}
	r.cq.Arm(false)
	deliver()
	deliver()
	if len(r.wake) != 1 {
		t.Fatalf("%d events", len(r.wake))
	}
	<-r.wake
	deliver()
	if len(r.wake) != 0 {
		t.Fatal("got a second event for one arming")
	}
	r.cq.Arm(true)
	deliver()
	if len(r.wake) != 0 {
		t.Fatal("got an event for an unsolicited completion")
	}
	d := defaultDatagram()
	d.Solicited = true
	r.postRecv(1, piece(0, 200))
	r.link.in = [][]byte{datagramFrom(wire.Path{Source: peerGID, Dest: ownGID}, d, nil)}
	r.run()
	if len(r.wake) != 1 {
		t.Fatal("got no event for a solicited completion")
	}
}

// A solicited completion causes an event even if later completions of the same burst are unsolicited. It has no effect
// on the next burst.
func TestSolicitedAmongOthers(t *testing.T) {
	r := newRig(t)
	deliver := func(solicited ...bool) {
		for _, s := range solicited {
			d := defaultDatagram()
			d.Solicited = s
			r.postRecv(1, piece(0, 200))
			r.link.in = append(r.link.in, datagramFrom(wire.Path{Source: peerGID, Dest: ownGID}, d, nil))
		}
		r.run()
	}
	for i, row := range []struct {
		burst []bool
		wakes bool
	}{{[]bool{true, false, false}, true}, {[]bool{false, false}, false}, {[]bool{false, true, false}, true}, {[]bool{false, true}, true}} {
		r.cq.Arm(true)
		deliver(row.burst...)
		if woken := len(r.wake) == 1; woken != row.wakes {
			t.Errorf("burst %d, %v: woken %v", i, row.burst, woken)
		}
		for len(r.wake) > 0 {
			<-r.wake
		}
		r.completions()
	}
}

// An in-memory wire loses no frames and keeps the order, even when it is full.
