// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"sync/atomic"

	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// Session is the engine's state of one program: its doorbell, and the objects that the handles in its requests refer
// to. Each session has its own address handles, lkeys and doorbell indexes.
//
// A session whose doorbell stays quiet is suspended while other sessions are in use: the engine stops polling its
// doorbell and marks it asleep, so that the program calls when it posts. Any number of idle sessions therefore costs a
// busy one nothing.
type Session struct {
	engine       *Engine // the engine that serves it; set by join
	doorbell     *ring.Doorbell
	addTurn      func(index uint32) // adds the queue pair at a doorbell index to the turns
	qps          []*QP              // by DoorbellIndex
	region.Table                    // the objects that its keys refer to; it changes in Do
	ahs          []*AH

	flights flight.Tenant // limits the packets of its connections in flight
	inTurn  qpList        // its queue pairs with work left
	waiting bool          // it is in the engine's turns, before the next one
	behind  *Session      // the next one

	quiet     int         // rounds since the doorbell was last rung
	suspended atomic.Bool // its doorbell is not polled
	removed   bool        // the engine no longer serves it
	faulted   bool        // its work has ended in a fault; see stopServing
	called    atomic.Bool // it is in the engine's list of calling sessions, before nextCall
	nextCall  *Session    // the next one
}

const (
	fewSessions = 1    // up to this number of sessions, none is suspended
	quietRounds = 1024 // rounds without a doorbell after which a session is suspended
)

// NewSession returns a session with a doorbell. An engine serves it after Workers.Serve.
func NewSession(doorbell *ring.Doorbell) *Session { return &Session{doorbell: doorbell} }

// Beside returns a session that is served by the engine of s and whose doorbell is not polled.
func (s *Session) Beside(doorbell *ring.Doorbell) *Session {
	return &Session{engine: s.engine, doorbell: doorbell}
}

// Engine returns the engine that serves the session; nil before Workers.Serve.
func (s *Session) Engine() *Engine { return s.engine }

// join makes an engine serve the session. It runs in Do.
func (s *Session) join(e *Engine) {
	if s.engine != e { // else it is being restored, and other goroutines may read it
		s.engine = e
	}
	s.addTurn = func(index uint32) {
		// A program can set any bit, even without a queue pair at that index.
		if int(index) < len(s.qps) && s.qps[index] != nil {
			e.round.turns.add(s.qps[index])
		}
	}
	e.doorbells.add(s)
}

// doorbells holds the doorbells of all sessions.
type doorbells struct {
	called   atomic.Pointer[Session] // suspended sessions that have called; see Session
	rests    atomic.Bool             // the worker rests: see announceRest
	resting  bool                    // they are marked asleep: programs call when they post
	sessions []*Session              // the sessions whose doorbells are polled
	first    int                     // the session whose doorbell is polled first
	round    *round                  // of the engine: the session of the polled doorbell becomes the current one
	serves   atomic.Int32            // number of sessions, including suspended ones
}

// add adds a session's doorbell to the polled ones. If there are others, polling starts when its program calls.
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

// Remove ends a session whose queue pairs have been removed: the engine stops polling its doorbell. It runs in Do.
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

// collect adds the queue pairs whose doorbell bits are set to the turns, and reports whether there were any. All
// sessions share the budget, so each round begins with another session.
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

// suspendQuiet suspends the session at first if its doorbell has been quiet for quietRounds.
func (d *doorbells) suspendQuiet() {
	s := d.sessions[d.first]
	if s.quiet < quietRounds {
		return
	}
	s.suspended.Store(true) // before SetAsleep, so that call finds it set; pairs with call
	s.doorbell.SetAsleep(true)
	if s.doorbell.Pending() { // rung meanwhile, by a program that did not call
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

// resumeSession marks a doorbell as polled again.
func (d *doorbells) resumeSession(s *Session) {
	d.round.hand = s
	s.quiet = 0
	s.suspended.Store(false)
	s.doorbell.SetAsleep(d.resting)
}

// call makes the next round poll a session's doorbell. Any goroutine may call it at any time, after the program has set
// the doorbell's bits. It pairs with suspendQuiet and resumeCalled.
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

// announceRest records in all polled doorbells whether programs must call, as they must while the worker rests. Each
// round begins with it, so that the worker need not wait for the lease that a polling program holds most of the time.
// The caller holds the lease.
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

// A handle consists of an index in a table and a generation, which counts the objects that have used the index. So the
// handle of a destroyed object in a queue never refers to the next object at its index.
//
//	generation 15 | place 17
const (
	placeBits         = 17
	HandlePlaces      = 1 << placeBits        // maximum number of objects in a table
	HandleGenerations = 1 << (32 - placeBits) // number of generations, which start at 0
)

// HandleFor returns the handle of a place and a generation.
func HandleFor(place, generation uint32) uint32 { return generation<<placeBits | place }

// SplitHandle is the inverse of HandleFor.
func SplitHandle(handle uint32) (place, generation uint32) {
	return handle % HandlePlaces, handle >> placeBits
}

// AH is the engine's part of an address handle: a path and the headers of its packets.
type AH struct {
	handle uint32 // identifies it in requests; set by SetAH

	PD       region.PD
	Path     *Path
	Template wire.Template // without Ethernet addresses: those are in Path
	Group    bool          // Dest is a group
	Dest     wire.GID
}

// SetAH stores an address handle at its handle's place; nil clears the place. It runs in Do.
func (s *Session) SetAH(handle uint32, ah *AH) {
	place, _ := SplitHandle(handle)
	s.ahs = grow(s.ahs, int(place))
	s.ahs[place] = ah
	if ah != nil {
		ah.handle = handle
	}
}

// ah returns the address handle that a request refers to; nil if it does not exist or was destroyed.
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
