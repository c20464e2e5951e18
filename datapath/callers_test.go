package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/ring"
	"golang.org/x/sys/unix"
)

// newCalled is a station whose worker is alone, and the program's end of its calls.
func newCalled(t *testing.T) (r *rig, card, program int) {
	t.Helper()
	left, _ := newWire(t)
	r = newRigWith(t, left, WorkerConfig{Alone: true})
	r.engine.Start()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	card, program = ends[0], ends[1]
	t.Cleanup(func() { _ = unix.Close(card) })
	if err := r.engine.HearCalls(r.session, card); err != nil {
		t.Fatal(err)
	}
	return r, card, program
}

// post posts a request, and calls as the program of another process does.
func (r *rig) postAndCall(t *testing.T, program int) {
	t.Helper()
	s := ring.Send{Opcode: ring.WRSend, Flags: ring.SendSignaled, RemoteQPN: testQP, RemoteQKey: testQKey}
	r.send.Put(&s)
	r.send.Publish()
	if r.doorbell.Ring(3) {
		if _, err := unix.Write(program, []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
}

// A byte wakes the worker, each time that it sleeps, and also for a session that is suspended.
func TestCallsAreHeard(t *testing.T) {
	r, _, program := newCalled(t)
	defer unix.Close(program)
	for range 50 {
		wait(t, "sleep of the worker", r.doorbell.Asleep)
		r.postAndCall(t, program)
		wait(t, "the completion", func() bool { return len(r.completions()) == 1 })
	}
	other := NewSession(ring.NewDoorbell(ring.Alloc(ring.DoorbellSize)))
	r.engine.Do(func() {
		r.engine.AddSession(other)
		r.engine.sessions = without(r.engine.sessions, r.session)
		r.session.suspended.Store(true)
		r.doorbell.SetAsleep(true)
	})
	r.postAndCall(t, program)
	wait(t, "the completion", func() bool { return len(r.completions()) == 1 })
}

// Once the program has closed its end nobody looks there again, and the worker sleeps.
func TestCallerIsGone(t *testing.T) {
	r, card, program := newCalled(t)
	wait(t, "sleep of the worker", r.doorbell.Asleep)
	if err := unix.Close(program); err != nil {
		t.Fatal(err)
	}
	s := r.engine.worker.sleeper
	wait(t, "that the end is noticed", func() bool {
		err := unix.EpollCtl(s.all.fd, unix.EPOLL_CTL_MOD, card, &unix.EpollEvent{Fd: int32(card)})
		return err == unix.ENOENT
	})
	r.engine.EndCalls(card)
	wait(t, "sleep of the worker", r.doorbell.Asleep)
}

// After EndCalls the descriptor is the owner's again: nothing reads from it.
func TestCallsEnd(t *testing.T) {
	r, card, program := newCalled(t)
	defer unix.Close(program)
	wait(t, "sleep of the worker", r.doorbell.Asleep)
	r.engine.EndCalls(card)
	if _, err := unix.Write(program, []byte{1}); err != nil {
		t.Fatal(err)
	}
	r.engine.Wake(r.session)
	wait(t, "sleep of the worker", r.doorbell.Asleep)
	if n, err := unix.Read(card, make([]byte, 8)); n != 1 || err != nil {
		t.Errorf("the byte is not there: %d, %v", n, err)
	}
}
