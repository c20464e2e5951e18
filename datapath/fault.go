// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"runtime/debug"

	"github.com/roced/roced/verbs/ib"
)

// A panic in a round is a bug in roced, triggered by a program or a packet. (An access to memory that a program has
// unmapped also panics, and is not a bug; see lacksMemory.) It ends the session whose work was in progress, not the
// card: the session's queue pairs stop, Config.NoteFault notifies the control plane, which ends the session, and the
// next round continues with the remaining work. If no session's work was in progress, only the packet is lost.

// Fault is a panic in a round.
type Fault struct {
	Session *Session // the session whose work was in progress; nil: none
	Cause   any      // the value that recover returned
	Stack   []byte
	// Ends is true if too many consecutive rounds have ended in a fault: the engine runs no more rounds.
	Ends bool
}

// maxFaults is the number of consecutive faults after which the engine stops: their cause is then not a single session.
const maxFaults = 100

// contain recovers from a panic under the lease. It must be deferred.
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
	if !theirs { // otherwise programs could stop the engine by causing one fault in each of many sessions
		e.faults++
	}
	if e.faults >= maxFaults {
		e.closed, f.Ends = true, true
		e.runner.End() // otherwise packets that remain in the sockets would keep the worker awake
	}
	e.noteFault(f)
}

// lacksMemory reports whether the fault is an access to unmapped memory and the session's first fault. A program can
// cause it by truncating memory that it shares, so it is not a bug in roced.
func (f *Fault) lacksMemory() bool {
	_, is := f.Cause.(interface{ Addr() uintptr }) // see debug.SetPanicOnFault
	return is && f.Session != nil && !f.Session.faulted
}

// stopServing stops all queue pairs of a session without accessing its memory. The control plane flushes them later. If
// the session faults a second time, it is removed.
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

// Restore makes the engine serve the session again, as if it had not faulted. It runs in Do.
func (s *Session) Restore() {
	s.faulted = false
	if s.removed {
		s.removed = false
		s.join(s.engine)
	}
}
