package datapath

import (
	"sync/atomic"

	"github.com/roced/roced/datapath/ring"
)

// Session is what the engine knows of one program: its doorbell, and the objects that the handles
// in its requests name. Address handles, lkeys and places in the doorbell are each session's own.
//
// A session whose doorbell stays quiet is suspended while others are in use: the engine stops
// polling its doorbell and sets "asleep" in it, so that the program calls when it posts. Idle
// sessions therefore cost a busy one nothing, however many there are.
type Session struct {
	doorbell *ring.Doorbell
	addTurn  func(index uint32) // gives the queue pair at a place in the doorbell a turn
	qps      []*QP              // by DoorbellIndex
	keys     keys               // of memory regions and windows
	ahs      []*AH

	flights int      // its queue pairs that have packets on their way; see timers
	inTurn  qpList   // its queue pairs with work left
	waiting bool     // it is in the engine's turns, before the next one
	behind  *Session // the next one

	quiet     int         // rounds since the doorbell was last rung
	suspended atomic.Bool // its doorbell is not polled
	removed   bool        // the engine serves it no more
	faulted   bool        // its work has ended in a fault; see stopServing
	called    atomic.Bool // it is in the engine's list of those that have called, before the next one
	nextCall  *Session    // the next one
}

const (
	fewSessions = 1    // up to this number of sessions, none is suspended
	quietRounds = 1024 // rounds without a doorbell after which a session is suspended
)

// NewSession makes a session with a doorbell. The engine serves it from AddSession on.
func NewSession(doorbell *ring.Doorbell) *Session { return &Session{doorbell: doorbell} }

// AddSession makes the engine serve a session. It runs in Do.
func (e *Engine) AddSession(s *Session) {
	s.addTurn = func(index uint32) {
		// A program can set any bit, also of a queue pair that does not exist.
		if int(index) < len(s.qps) && s.qps[index] != nil {
			e.turns.add(s.qps[index])
		}
	}
	if len(e.sessions) >= fewSessions {
		s.suspended.Store(true) // until it calls
		s.doorbell.SetAsleep(true)
		return
	}
	s.doorbell.SetAsleep(e.resting)
	e.sessions = append(e.sessions, s)
}

// RemoveSession forgets a session whose queue pairs have been removed. It runs in Do.
func (e *Engine) RemoveSession(s *Session) {
	s.removed = true
	e.sessions = without(e.sessions, s)
}

func without(list []*Session, s *Session) []*Session {
	for i, one := range list {
		if one == s {
			last := len(list) - 1
			list[i], list[last] = list[last], nil
			return list[:last]
		}
	}
	return list
}

// collect gives the queue pairs whose doorbell bits are set a turn, and reports whether there were
// any. All sessions share the round's budget, so each round begins with another session.
func (e *Engine) collect() (rung bool) {
	if e.called.Load() != nil {
		e.resumeCalled()
	}
	count, taken := len(e.sessions), 0
	if e.firstSession++; e.firstSession >= count {
		e.firstSession = 0
	}
	for i := range count {
		s := e.sessions[(e.firstSession+i)%count]
		e.hand = s
		if taken >= e.budget {
			break
		}
		n := s.doorbell.Collect(e.budget-taken, s.addTurn)
		if taken += n; n > 0 {
			s.quiet = 0
		} else {
			s.quiet++
		}
	}
	if count > fewSessions {
		e.suspendQuiet()
	}
	return taken > 0
}

// suspendQuiet suspends one session if its doorbell has been quiet for long.
func (e *Engine) suspendQuiet() {
	s := e.sessions[e.firstSession]
	if s.quiet < quietRounds {
		return
	}
	s.suspended.Store(true) // before "asleep", so that a call finds it set
	s.doorbell.SetAsleep(true)
	if s.doorbell.Pending() { // rung in between, by a program that did not call
		e.resumeSession(s)
		return
	}
	e.sessions = without(e.sessions, s)
}

// resumeCalled resumes the suspended sessions whose programs have called.
func (e *Engine) resumeCalled() {
	for s := e.called.Swap(nil); s != nil; {
		next := s.nextCall
		s.called.Store(false) // from now on it may be in the list again
		if s.suspended.Load() && !s.removed {
			e.resumeSession(s)
			e.sessions = append(e.sessions, s)
		}
		s = next
	}
}

// resumeSession makes a doorbell polled again.
func (e *Engine) resumeSession(s *Session) {
	e.hand = s
	s.quiet = 0
	s.suspended.Store(false)
	s.doorbell.SetAsleep(e.resting)
}

// call makes the next round look at a session's doorbell. Any goroutine may call it at any time.
func (e *Engine) call(s *Session) {
	if !s.suspended.Load() || s.called.Swap(true) {
		return
	}
	for {
		s.nextCall = e.called.Load()
		if e.called.CompareAndSwap(s.nextCall, s) {
			return
		}
	}
}

// announceRest sets in all polled doorbells whether programs must call: while the worker rests. A
// round begins with it, so that the worker need not wait for the lease that a polling program holds
// most of the time. The caller holds the lease.
func (e *Engine) announceRest() {
	rests := e.rests.Load()
	if rests == e.resting {
		return
	}
	e.resting = rests
	for _, s := range e.sessions {
		e.hand = s
		s.doorbell.SetAsleep(rests)
	}
}

// pending reports whether a doorbell has been rung, or a suspended session has called.
func (e *Engine) pending() bool {
	if e.called.Load() != nil {
		return true
	}
	for _, s := range e.sessions {
		if s.doorbell.Pending() {
			return true
		}
	}
	return false
}

// unsentBy reports whether the session has requests that can be sent or flushed and have not been.
// What waits for the link, or for members of a group, may be the session's too. A session that has been
// removed has none: its doorbell's memory may be unmapped.
func (e *Engine) unsentBy(s *Session) bool {
	return !s.removed && (s.inTurn.first != nil || s.doorbell.Pending() || e.blocked || e.looping.pending())
}

// SetAH puts an address handle at its handle's place; nil clears the place. It runs in Do.
func (s *Session) SetAH(handle uint32, ah *AH) {
	place, _ := SplitHandle(handle)
	s.ahs = grow(s.ahs, int(place))
	s.ahs[place] = ah
	if ah != nil {
		ah.handle = handle
	}
}

// ah finds the address handle that a request names; nil if there is none, or it was destroyed.
func (s *Session) ah(handle uint32) *AH {
	place, _ := SplitHandle(handle)
	if int(place) >= len(s.ahs) || s.ahs[place] == nil || s.ahs[place].handle != handle {
		return nil
	}
	return s.ahs[place]
}

func grow[T any](table []*T, index int) []*T {
	for len(table) <= index {
		table = append(table, nil)
	}
	return table
}
