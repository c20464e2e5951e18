// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/runner"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// newHosts returns two engines on an in-memory wire, with sleeping workers. b receives from a.
func newHosts(t *testing.T) (a, b *rig) {
	t.Helper()
	left, right := newWire(t)
	a, b = newStation(t, left, true), newStation(t, right, true)
	b.engine.Do(func() { b.engine.tables.setAddresses([]wire.GID{peerGID}) })
	a.asleep()
	b.asleep()
	return a, b
}

func (r *rig) asleep() {
	r.Helper()
	wait(r.T, "sleep of the worker", func() bool { return r.engine.runner.State() == runner.Asleep })
}

// frameWith posts a receive request at one end, and sends a message from the other.
func frameWith(from, to *rig) {
	to.postRecv(1, piece(0, 200))
	from.send.Put(&ring.Send{Opcode: ib.WRSend, RemoteQPN: testQP, RemoteQKey: testQKey})
	from.send.Publish()
	if from.doorbell.Ring(3) {
		from.engine.Kick(from.session)
	}
}

// await waits for completions as verbs.CQ.Wait does, and reports whether it was the leader when they arrived. It
// returns none if the context ends, or closed is closed.
func (r *rig) await(ctx context.Context, closed <-chan struct{}) (n int, led bool) {
	r.engine.BeginWait()
	defer r.engine.EndWait()
	for ctx.Err() == nil {
		if n = r.pollOrArm(); n > 0 {
			return n, led
		}
		if led = r.engine.Lead(Waiter{Context: ctx, Events: r.wake, Closed: closed}); led {
			if n = r.pollOrArm(); n > 0 || isClosed(closed) {
				return n, led
			}
			continue
		}
		select {
		case <-r.wake:
		case <-r.again:
		case <-closed:
			return r.pollOrArm(), false
		case <-ctx.Done():
		}
	}
	return 0, led
}

// polling replaces the lock of verbs.CQ.
var polling sync.Mutex

func (r *rig) pollOrArm() int {
	polling.Lock()
	defer polling.Unlock()
	r.cq.ArmWait()
	return len(r.completions())
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// leads waits until a program is the leader and asleep. A program that found the worker awake, for example at the end
// of a grace period, is made to retry, but without an event: a pending event would end the leader's sleep.
func (r *rig) leads() {
	r.Helper()
	wait(r.T, "a leader that sleeps", func() bool {
		if r.engine.runner.LeaderSleeps() {
			return true
		}
		select {
		case r.again <- struct{}{}:
		default:
		}
		time.Sleep(100 * time.Microsecond)
		return r.engine.runner.LeaderSleeps()
	})
}

// background waits in another goroutine.
func (r *rig) background(ctx context.Context, closed <-chan struct{}) (result chan bool) {
	result = make(chan bool, 1)
	go func() {
		_, led := r.await(ctx, closed)
		result <- led
	}()
	return result
}

// A program that waits alone runs the card: the worker stays asleep.
func TestLeaderRunsTheEngine(t *testing.T) {
	a, b := newHosts(t)
	const messages = 200
	awake := 0
	for range messages {
		got := b.background(t.Context(), nil)
		b.leads()
		frameWith(a, b)
		if !<-got {
			t.Fatal("it did not lead")
		}
		if b.engine.runner.State() != runner.Asleep {
			awake++ // woken at the end of a grace period
		}
	}
	if awake > messages/2 {
		t.Errorf("the worker was awake after %d of %d messages", awake, messages)
	}
}

// A completion of another thread's round wakes the leader.
func TestOthersCompleteForTheLeader(t *testing.T) {
	r := newRigOn(t, &fakeLink{})
	r.engine.Start()
	for range 200 {
		r.asleep()
		got := r.background(t.Context(), nil)
		r.leads()
		r.postSend(ring.Send{Flags: ib.SendSignaled})
		r.engine.Kick(r.session)
		<-got
	}
}

// When the leader leaves for any reason, the worker runs the rounds, also for other waiters.
func TestLeaderLeaves(t *testing.T) {
	a, b := newHosts(t)
	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		closed := make(chan struct{})
		first := b.background(ctx, closed)
		b.leads()
		second := b.background(t.Context(), nil)
		wait(t, "a second waiter", func() bool { return b.engine.runner.Waiters() == 2 })
		if i%2 == 0 {
			cancel()
		} else {
			close(closed)
			b.engine.WakeLeader()
		}
		<-first
		frameWith(a, b)
		<-second
		cancel()
		b.asleep()
	}
}

// After a leader has left and does not wait again, the worker receives the frames: immediately, or at the end of the
// grace period if the leader has waited several times for short periods.
func TestLeaderDoesNotComeBack(t *testing.T) {
	a, b := newHosts(t)
	for _, waits := range []int{1, 2, 50} {
		for range waits {
			got := b.background(t.Context(), nil)
			b.leads()
			frameWith(a, b)
			<-got
		}
		for range 3 {
			frameWith(a, b)
			wait(t, "the message", func() bool { return len(b.completions()) == 1 })
			b.asleep()
		}
	}
}

// Closing the engine ends the leader's sleep.
func TestCloseWithALeader(t *testing.T) {
	left, right := newWire(t)
	newStation(t, right, false)
	r := newRigOn(t, left)
	r.engine.Start()
	r.asleep()
	done := make(chan struct{})
	got := r.background(t.Context(), done)
	r.leads()
	close(done) // as the session does
	if err := r.engine.Close(); err != nil {
		t.Fatal(err)
	}
	<-got
	if r.engine.Lead(Waiter{Context: t.Context()}) {
		t.Error("a closed engine has a leader")
	}
}

// Programs wait, are cancelled, post and poll, and the control plane runs: no program sleeps forever.
func TestNoLostWakeup(t *testing.T) {
	a, b := newHosts(t)
	const messages = 2000
	stop := make(chan struct{})
	var others sync.WaitGroup
	for _, disturb := range []func(){
		func() { b.engine.Do(func() { b.engine.tables.setMTU(wire.MTU1024) }) },
		func() { b.engine.Progress() },
		func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Microsecond)
			b.engine.BeginWait()
			if !b.engine.Lead(Waiter{Context: ctx}) {
				<-ctx.Done()
			}
			b.engine.EndWait()
			cancel()
		},
		func() { b.engine.NoteReady() },
		func() { b.engine.WakeLeader() },
	} {
		others.Go(func() {
			for !isClosed(stop) {
				disturb()
				time.Sleep(30 * time.Microsecond)
			}
		})
	}
	for range messages {
		frameWith(a, b)
		if n, _ := b.await(t.Context(), nil); n != 1 {
			t.Fatalf("%d completions", n)
		}
	}
	close(stop)
	others.Wait()
	if c := b.engine.Counters(); c.Delivered != messages || c.Dropped() != 0 {
		t.Errorf("delivered %d, drops %v", c.Delivered, named(&c))
	}
}
