// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"encoding/binary"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// newCalled returns a station whose rounds are run only by its worker (Config.Alone), and the eventfd of its calls.
func newCalled(t *testing.T) (r *rig, calls int) {
	t.Helper()
	left, _ := newWire(t)
	r = newRigWith(t, left, true)
	r.engine.Start()
	calls, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(calls) })
	if err := r.engine.HearCalls(r.session, calls); err != nil {
		t.Fatal(err)
	}
	return r, calls
}

// call writes 1 to the eventfd.
func call(t *testing.T, calls int) {
	t.Helper()
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	if _, err := unix.Write(calls, one[:]); err != nil {
		t.Fatal(err)
	}
}

// postAndCall posts a request and writes to the eventfd, as a program in another process does.
func (r *rig) postAndCall(t *testing.T, calls int) {
	t.Helper()
	s := ring.Send{Opcode: ib.WRSend, Flags: ib.SendSignaled, RemoteQPN: testQP, RemoteQKey: testQKey}
	r.send.Put(&s)
	r.send.Publish()
	if r.doorbell.Ring(3) {
		call(t, calls)
	}
}

// A write wakes a sleeping worker every time, also for a suspended session.
func TestCallsAreHeard(t *testing.T) {
	r, calls := newCalled(t)
	for range 50 {
		wait(t, "sleep of the worker", r.doorbell.Asleep)
		r.postAndCall(t, calls)
		wait(t, "the completion", func() bool { return len(r.completions()) == 1 })
	}
	other := NewSession(ring.NewDoorbell(ring.Alloc(ring.DoorbellSize)))
	r.engine.Do(func() {
		other.join(r.engine)
		r.engine.doorbells.sessions = without(r.engine.doorbells.sessions, r.session)
		r.session.suspended.Store(true)
		r.doorbell.SetAsleep(true)
	})
	r.postAndCall(t, calls)
	wait(t, "the completion", func() bool { return len(r.completions()) == 1 })
}

// The worker does not watch the eventfd after EndCalls, and never reads it.
func TestCallsEnd(t *testing.T) {
	r, calls := newCalled(t)
	wait(t, "sleep of the worker", r.doorbell.Asleep)
	call(t, calls)
	wait(t, "sleep of the worker", r.doorbell.Asleep)
	r.engine.EndCalls(calls)
	call(t, calls)
	r.engine.Wake(r.session)
	wait(t, "sleep of the worker", r.doorbell.Asleep)
	var count [8]byte
	if _, err := unix.Read(calls, count[:]); err != nil || binary.NativeEndian.Uint64(count[:]) != 2 {
		t.Errorf("%v, %v", count, err)
	}
}
