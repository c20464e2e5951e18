package datapath

import (
	"sync/atomic"

	"github.com/roced/roced/datapath/ring"
)

// Session is what the engine knows of one program: its doorbell, and what the numbers in its
// requests mean. Address handles, lkeys and places in the doorbell are each session's own.
//
// A doorbell that is quiet for long is not looked at any more while others are in use: its
// program is told to call, as it is when the card sleeps. So an idle session costs a busy one
// nothing, however many there are.
type Session struct {
	doorbell *ring.Doorbell
	note     func(index uint32) // gives a queue pair of the doorbell its turn, bound once
	qps      []*QP              // by their places in the doorbell
	mrs      []*MR
	ahs      []*AH

	inTurn int         // queue pairs of it among the engine's turns
	quiet  int         // rounds since the doorbell was rung
	dozing atomic.Bool // its doorbell is not looked at
	called atomic.Bool // by the program, since
}

const (
	fewSessions = 1    // so many doorbells are looked at however quiet they are
	quietRounds = 1024 // after which others are not
)

// NewSession makes a session with this doorbell; AddSession has the engine serve it.
func NewSession(doorbell *ring.Doorbell) *Session { return &Session{doorbell: doorbell} }

// AddSession has the engine look at a session's doorbell. It runs in Do.
func (e *Engine) AddSession(s *Session) {
	s.note = func(index uint32) {
		// The program may have set any bit.
		if int(index) < len(s.qps) && s.qps[index] != nil {
			e.turns.add(s.qps[index])
		}
	}
	if len(e.sessions) >= fewSessions {
		s.dozing.Store(true) // until it calls
		s.doorbell.SetAsleep(true)
		e.dozing = append(e.dozing, s)
		return
	}
	s.doorbell.SetAsleep(e.resting)
	e.sessions = append(e.sessions, s)
}

// RemoveSession forgets a session whose queue pairs have been removed. It runs in Do.
func (e *Engine) RemoveSession(s *Session) {
	e.sessions = without(e.sessions, s)
	e.dozing = without(e.dozing, s)
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

// collect gives the queue pairs that doorbells tell of their turns, and reports whether there
// were any. Sessions begin in turn, since a round has one budget.
func (e *Engine) collect() (rung bool) {
	if e.called.Load() && e.called.Swap(false) {
		e.rouse()
	}
	count, taken := len(e.sessions), 0
	if e.firstBell++; e.firstBell >= count {
		e.firstBell = 0
	}
	for i := range count {
		s := e.sessions[(e.firstBell+i)%count]
		if taken >= e.budget {
			break
		}
		n := s.doorbell.Collect(e.budget-taken, s.note)
		if taken += n; n > 0 {
			s.quiet = 0
		} else {
			s.quiet++
		}
	}
	if count > fewSessions {
		e.letDoze()
	}
	return taken > 0
}

// letDoze stops looking at one doorbell that has been quiet for long.
func (e *Engine) letDoze() {
	s := e.sessions[e.firstBell]
	if s.quiet < quietRounds {
		return
	}
	s.dozing.Store(true) // before the program is told to call
	s.doorbell.SetAsleep(true)
	if s.doorbell.Pending() { // rung in between: nobody was told
		e.attend(s)
		return
	}
	e.sessions, e.dozing = without(e.sessions, s), append(e.dozing, s)
}

// rouse looks at the doorbells of those that have called again.
func (e *Engine) rouse() {
	for i := len(e.dozing) - 1; i >= 0; i-- {
		s := e.dozing[i]
		if !s.called.Swap(false) {
			continue
		}
		e.dozing = without(e.dozing, s)
		e.attend(s)
		e.sessions = append(e.sessions, s)
	}
}

// attend looks at a doorbell again.
func (e *Engine) attend(s *Session) {
	s.quiet = 0
	s.dozing.Store(false)
	s.doorbell.SetAsleep(e.resting)
}

// call has the next round look at a session's doorbell. It may come at any time, by anyone.
func (e *Engine) call(s *Session) {
	if s.dozing.Load() {
		s.called.Store(true)
		e.called.Store(true)
	}
}

// setResting says to all programs whose doorbells are looked at whether they are to call. The
// caller holds the lease.
func (e *Engine) setResting(resting bool) {
	e.resting = resting
	for _, s := range e.sessions {
		s.doorbell.SetAsleep(resting)
	}
}

// pending reports whether a doorbell has been rung, or somebody has called.
func (e *Engine) pending() bool {
	if e.called.Load() {
		return true
	}
	for _, s := range e.sessions {
		if s.doorbell.Pending() {
			return true
		}
	}
	return false
}

// owes reports whether the session has posted what has not been sent or flushed, and can be. What
// waits for the link or for a group's members may be its.
func (e *Engine) owes(s *Session) bool {
	return s.inTurn > 0 || s.doorbell.Pending() || e.blocked || e.looping.pending()
}

// SetMR puts a memory region at its handle's place; nil takes what is there away. Its
// LKey is that of the handle (LKeyFor). It runs in Do.
func (s *Session) SetMR(handle uint32, mr *MR) {
	place, _ := SplitHandle(handle)
	s.mrs = grown(s.mrs, int(place))
	s.mrs[place] = mr
}

// SetAH puts an address handle at its place; nil takes what is there away. It runs in Do.
func (s *Session) SetAH(handle uint32, ah *AH) {
	place, _ := SplitHandle(handle)
	s.ahs = grown(s.ahs, int(place))
	s.ahs[place] = ah
	if ah != nil {
		ah.handle = handle
	}
}

// ah finds the address handle that a request names, nil if that is none, or closed.
func (s *Session) ah(handle uint32) *AH {
	place, _ := SplitHandle(handle)
	if int(place) >= len(s.ahs) || s.ahs[place] == nil || s.ahs[place].handle != handle {
		return nil
	}
	return s.ahs[place]
}

func grown[T any](table []*T, index int) []*T {
	for len(table) <= index {
		table = append(table, nil)
	}
	return table
}
