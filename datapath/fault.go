package datapath

import (
	"runtime/debug"

	"github.com/roced/roced/verbs/ib"
)

// A panic in a round is a bug of roced, which some program or some packet has found. It costs the
// session whose work was in hand, not the card: its queue pairs stop, Config.NoteFault tells the control
// plane, which ends it, and the next round goes on with what is left. Where the work of no session was in
// hand, it costs the packet.

// Fault is a panic in a round.
type Fault struct {
	Session *Session // whose work was in hand; nil: nobody's
	Cause   any      // what recover gave
	Stack   []byte
	// Ends: this many rounds in a row have ended so that the engine runs no more of them.
	Ends bool
}

// maxFaults is how many rounds in a row may end in a fault before the engine stops: what is broken then is not
// a session's.
const maxFaults = 100

// contain ends a panic of what is done under the lease. It is deferred.
func (e *Engine) contain() {
	cause := recover()
	if cause == nil {
		return
	}
	f := Fault{Session: e.round.hand, Cause: cause, Stack: debug.Stack()}
	e.round.hand = nil
	theirs := f.lacksMemory()
	if !theirs {
		e.counters.Faults++
	}
	e.counters.Drops[DropFault] += e.counters.Received + e.counters.Copies - e.counters.Delivered - e.counters.dropped()
	if f.Session != nil {
		f.Session.stopServing()
	}
	if !theirs { // else programs could end the engine, one session each
		e.faults++
	}
	if e.faults >= maxFaults {
		e.closed, f.Ends = true, true
		e.runner.End() // what nobody takes out of the sockets would have it awake for ever
	}
	e.noteFault(f)
}

// lacksMemory says whether a fault is that memory was not there, of a session that has had no fault before. A program
// can provoke that with memory that it shares, and it is no bug of roced.
func (f *Fault) lacksMemory() bool {
	_, is := f.Cause.(interface{ Addr() uintptr }) // see debug.SetPanicOnFault
	return is && f.Session != nil && !f.Session.faulted
}

// stopServing stops all queue pairs of a session, and touches none of its memory. The control plane has them
// flushed; if that ends in a fault too, the session is not served any more at all.
func (s *Session) stopServing() {
	for _, qp := range s.qps {
		if qp == nil {
			continue
		}
		s.engine.round.turns.remove(qp)
		qp.service.halt()
		if qp.State != ib.QPStateReset {
			qp.State = ib.QPStateErr
		}
	}
	if s.faulted {
		s.Remove()
	}
	s.faulted = true
}

// Restore has the session served as if it had had no fault. It runs in Do.
func (s *Session) Restore() {
	s.faulted = false
	if s.removed {
		s.removed = false
		s.join(s.engine)
	}
}
