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
// A session that does not ring its doorbell for a while is suspended if there are other sessions: the engine stops
// polling its doorbell and marks it asleep, so that the program calls the engine when it posts. Idle sessions therefore
// cost busy ones nothing, whatever their number.
type Session struct {
	engine       *Engine // the engine that serves it; set by join
	doorbell     *ring.Doorbell
	addTurn      func(index uint32) // adds the queue pair at a doorbell index to the turns
	qps          []*QP              // by DoorbellIndex
	region.Table                    // the objects that its keys refer to; it changes in Do
	ahs          []*AH

	flights flight.Tenant // limits the packets of its connections in flight
	inTurn  qpList        // its queue pairs with work left
	waiting bool          // it is in the list of the engine's turns
	behind  *Session      // the next session in that list

	quiet     int         // rounds since the doorbell was last rung
	suspended atomic.Bool // its doorbell is not polled
	removed   bool        // the engine no longer serves it
	faulted   bool        // its work has ended in a fault; see stopServing
	called    atomic.Bool // it is in the list doorbells.called
	nextCall  *Session    // the next session in that list
}

const (
	fewSessions = 1    // number of sessions whose doorbells are always polled
	quietRounds = 1024 // rounds without a doorbell after which a session is suspended
)

// NewSession returns a session with a doorbell. An engine serves it after Workers.Serve.
func NewSession(doorbell *ring.Doorbell) *Session { return &Session{doorbell: doorbell} }

// Beside returns a session that belongs to the engine of s. The engine does not poll its doorbell.
func (s *Session) Beside(doorbell *ring.Doorbell) *Session {
	return &Session{engine: s.engine, doorbell: doorbell}
}

// Engine returns the engine that serves the session; nil before Workers.Serve.
func (s *Session) Engine() *Engine { return s.engine }

// join makes an engine serve the session. It runs in Do.
func (s *Session) join(e *Engine) {
	if s.engine != e { // equal if the session is being restored: other goroutines may read the field then
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
	called   atomic.Pointer[Session] // list of the suspended sessions whose programs have called the engine
	rests    atomic.Bool             // the worker is idle; see announceRest
	resting  bool                    // the polled doorbells are marked asleep: programs call when they post
	sessions []*Session              // the sessions whose doorbells are polled
	first    int                     // index of the session whose doorbell is polled first
	round    *round                  // the engine's; its hand is set to the session whose doorbell is accessed
	serves   atomic.Int32            // number of sessions, including suspended ones
}

// add adds a session. If its doorbell is the first, it is polled from now on; otherwise the session starts suspended,
// and polling starts when its program calls.
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

// collect adds the queue pairs whose doorbell bits are set to the turns, and reports whether any bit was set. All
// sessions share the budget, so each round begins with a different session.
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
	if s.doorbell.Pending() { // rung before SetAsleep, so the program did not call
		d.resumeSession(s)
		return
	}
	d.sessions = without(d.sessions, s)
}

// resumeCalled resumes the suspended sessions whose programs have called.
func (d *doorbells) resumeCalled() {
	for s := d.called.Swap(nil); s != nil; {
		next := s.nextCall
		s.called.Store(false) // call may add it to the list again; pairs with the swap in call
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

// call makes the next round poll a session's doorbell. The caller has set the doorbell's bits before. Any goroutine may
// call it at any time. It pairs with suspendQuiet and resumeCalled.
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

// announceRest marks all polled doorbells as asleep or awake: while the worker is idle, programs must call when they
// post. The caller holds the lease. The worker does not call it when it becomes idle, because a polling program may
// hold the lease most of the time; instead each round calls it first.
func (d *doorbells) announceRest() {
	rests := d.rests.Load() // pairs with Engine.Rest through the lease; SetAsleep pairs with Ring
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

// A handle consists of an index in a table (its place) and a generation, which counts the objects that have used the
// index. The handle of a destroyed object that is still in a queue therefore never refers to a later object at the same
// index.
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
	Group    bool          // Dest is a multicast group
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
