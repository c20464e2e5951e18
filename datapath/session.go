package datapath

import (
	"sync/atomic"

	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// Session is what the engine knows of one program: its doorbell, and the objects that the handles
// in its requests name. Address handles, lkeys and places in the doorbell are each session's own.
//
// A session whose doorbell stays quiet is suspended while others are in use: the engine stops
// polling its doorbell and sets "asleep" in it, so that the program calls when it posts. Idle
// sessions therefore cost a busy one nothing, however many there are.
type Session struct {
	engine       *Engine // that serves it; set by join
	doorbell     *ring.Doorbell
	addTurn      func(index uint32) // gives the queue pair at a place in the doorbell a turn
	qps          []*QP              // by DoorbellIndex
	region.Table                    // what its keys name; it changes in Do
	ahs          []*AH

	flights flight.Tenant // what its connections have in flight
	inTurn  qpList        // its queue pairs with work left
	waiting bool          // it is in the engine's turns, before the next one
	behind  *Session      // the next one

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

// NewSession makes a session with a doorbell. An engine serves it from Workers.Serve on.
func NewSession(doorbell *ring.Doorbell) *Session { return &Session{doorbell: doorbell} }

// Beside makes a session with a doorbell that nobody polls, whose queue pairs are served with this one's.
func (s *Session) Beside(doorbell *ring.Doorbell) *Session {
	return &Session{engine: s.engine, doorbell: doorbell}
}

// Engine is the engine that serves the session, from Workers.Serve on.
func (s *Session) Engine() *Engine { return s.engine }

// join makes an engine serve the session. It runs in Do.
func (s *Session) join(e *Engine) {
	if s.engine != e { // else it is restored, and others may read it
		s.engine = e
	}
	s.addTurn = func(index uint32) {
		// A program can set any bit, also of a queue pair that does not exist.
		if int(index) < len(s.qps) && s.qps[index] != nil {
			e.round.turns.add(s.qps[index])
		}
	}
	e.doorbells.add(s)
}

// doorbells are those of all sessions.
type doorbells struct {
	called   atomic.Pointer[Session] // suspended sessions that have called; see Session
	rests    atomic.Bool             // the worker rests: see announceRest
	resting  bool                    // they say "asleep": programs call when they post
	sessions []*Session              // whose doorbells are polled
	first    int                     // the session whose doorbell is polled first
	round    *round                  // of the engine: the session whose doorbell is touched is in hand
	serves   atomic.Int32            // sessions, suspended ones too
}

// add has a session's doorbell polled. If there are others, that is not before its program calls.
func (d *doorbells) add(s *Session) {
	d.serves.Add(1)
	if len(d.sessions) >= fewSessions {
		s.suspended.Store(true)
		s.doorbell.SetAsleep(true)
		return
	}
	s.doorbell.SetAsleep(d.resting)
	d.sessions = append(d.sessions, s)
}

// Remove ends a session whose queue pairs have been removed: the engine polls its doorbell no more. It runs in Do.
func (s *Session) Remove() {
	d := &s.engine.doorbells
	if !s.removed {
		d.serves.Add(-1)
	}
	s.removed = true
	d.sessions = without(d.sessions, s)
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
// any. All sessions share the budget, so each round begins with another session.
func (d *doorbells) collect(budget int) (rung bool) {
	if d.called.Load() != nil {
		d.resumeCalled()
	}
	count, taken := len(d.sessions), 0
	if d.first++; d.first >= count {
		d.first = 0
	}
	for i := range count {
		s := d.sessions[(d.first+i)%count]
		d.round.hand = s
		if taken >= budget {
			break
		}
		n := s.doorbell.Collect(budget-taken, s.addTurn)
		if taken += n; n > 0 {
			s.quiet = 0
		} else {
			s.quiet++
		}
	}
	if count > fewSessions {
		d.suspendQuiet()
	}
	return taken > 0
}

// suspendQuiet suspends one session if its doorbell has been quiet for long.
func (d *doorbells) suspendQuiet() {
	s := d.sessions[d.first]
	if s.quiet < quietRounds {
		return
	}
	s.suspended.Store(true) // before "asleep", so that a call finds it set; pairs with call
	s.doorbell.SetAsleep(true)
	if s.doorbell.Pending() { // rung in between, by a program that did not call
		d.resumeSession(s)
		return
	}
	d.sessions = without(d.sessions, s)
}

// resumeCalled resumes the suspended sessions whose programs have called.
func (d *doorbells) resumeCalled() {
	for s := d.called.Swap(nil); s != nil; {
		next := s.nextCall
		s.called.Store(false) // from now on it may be in the list again; pairs with the swap in call
		if s.suspended.Load() && !s.removed {
			d.resumeSession(s)
			d.sessions = append(d.sessions, s)
		}
		s = next
	}
}

// resumeSession makes a doorbell polled again.
func (d *doorbells) resumeSession(s *Session) {
	d.round.hand = s
	s.quiet = 0
	s.suspended.Store(false)
	s.doorbell.SetAsleep(d.resting)
}

// call makes the next round look at a session's doorbell. Any goroutine may call it at any time. It pairs with suspendQuiet
// and resumeCalled: its program has set the doorbell's bits before.
func (d *doorbells) call(s *Session) {
	if !s.suspended.Load() || s.called.Swap(true) {
		return
	}
	for {
		s.nextCall = d.called.Load()
		if d.called.CompareAndSwap(s.nextCall, s) {
			return
		}
	}
}

// announceRest sets in all polled doorbells whether programs must call: while the worker rests. A
// round begins with it, so that the worker need not wait for the lease that a polling program holds
// most of the time. The caller holds the lease.
func (d *doorbells) announceRest() {
	rests := d.rests.Load() // pairs with Engine.Rest; the lease comes between, and SetAsleep pairs with Ring
	if rests == d.resting {
		return
	}
	d.resting = rests
	for _, s := range d.sessions {
		d.round.hand = s
		s.doorbell.SetAsleep(rests)
	}
}

// pending reports whether a doorbell has been rung, or a suspended session has called.
func (d *doorbells) pending() bool {
	if d.called.Load() != nil {
		return true
	}
	for _, s := range d.sessions {
		if s.doorbell.Pending() {
			return true
		}
	}
	return false
}

// A handle is a place in a table and a generation, which counts the objects that the place has
// had. So the handle of a destroyed object in a queue never means the next object there.
//
//	generation 15 | place 17
const (
	placeBits         = 17
	HandlePlaces      = 1 << placeBits        // the most objects in a table
	HandleGenerations = 1 << (32 - placeBits) // the number of generations, which start at 0
)

// HandleFor makes the handle of a place and a generation.
func HandleFor(place, generation uint32) uint32 { return generation<<placeBits | place }

// SplitHandle is the inverse of HandleFor.
func SplitHandle(handle uint32) (place, generation uint32) {
	return handle % HandlePlaces, handle >> placeBits
}

// AH is the engine's entry of an address handle: a path and the headers of its packets.
type AH struct {
	handle uint32 // names it in requests; set by SetAH

	PD       region.PD
	Path     *Path
	Template wire.Template // without Ethernet addresses: those are in Path
	Group    bool          // Dest is a group
	Dest     wire.GID
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
