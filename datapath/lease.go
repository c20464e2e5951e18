// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"runtime"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/runner"
	"github.com/roced/roced/datapath/wire"
)

// Do runs change between two rounds. When it returns, objects that change has removed from the engine's tables are no
// longer in use. If change left work, Do calls the worker.
//
// A panic in change releases the lease and propagates to the caller of Do. A panic when Do publishes completions is
// contained.
func (e *Engine) Do(change func()) {
	e.wanted.Add(1)
	if e.change(change) {
		e.runner.Call()
	}
}

// change runs Do's change under the lease and reports whether it left work.
func (e *Engine) change(change func()) (more bool) {
	e.lease.Lock()
	defer e.lease.Unlock()
	e.wanted.Add(-1)
	e.round.budget, e.round.time = changeBudget, time.Time{}
	change()
	e.completions.publishContained()
	return e.more()
}

// Round implements runner.Rounds. Calls of Do that wait for the lease precede it.
func (e *Engine) Round() (worked, more bool) {
	for tries := 0; tries < 100 && e.wanted.Load() != 0; tries++ {
		runtime.Gosched()
	}
	e.lease.Lock()
	if e.helper != nil {
		return e.helper.round()
	}
	worked, more, _ = e.runHeld(listens)
	return worked, more
}

// LastRound implements runner.Rounds.
func (e *Engine) LastRound() (worked, more bool) {
	if !e.lease.TryLock() {
		return false, false
	}
	defer e.lease.Unlock()
	e.doorbells.announceRest()
	if !e.doorbells.pending() {
		return false, false
	}
	return e.runRound(), e.more()
}

// Rest implements runner.Rounds. The worker calls LastRound after Rest. Its stores therefore pair with announceRest,
// port.noteArrived and peers.Peer.Hand.
func (e *Engine) Rest(state runner.State) {
	e.doorbells.rests.Store(state != runner.Busy)
	e.link.SetAsleep(state == runner.Asleep)
	if e.peers.Peer != nil {
		e.peers.SetAsleep(state == runner.Asleep)
	}
}

// Progress runs a round in the thread of a program that polls, unless another thread is running one, and reports
// whether it ran a round. If the control plane waits for the lease, Progress waits behind it, so that polling cannot
// starve the control plane.
func (e *Engine) Progress() bool {
	if e.wanted.Load() != 0 {
		e.lease.Lock()
	} else if !e.lease.TryLock() {
		e.runner.NotePolling()
		return false
	}
	return e.runInline(glances)
}

// Kick runs a round in the caller's thread, which is faster than waking the worker; most of these rounds only send. A
// program calls Kick after it has rung its doorbell, if the doorbell is marked asleep. If the lease is not free, Kick
// calls the worker instead.
func (e *Engine) Kick(s *Session) {
	e.doorbells.call(s)
	if e.wanted.Load() != 0 || !e.lease.TryLock() {
		e.runner.Call()
		return
	}
	e.runInline(deaf)
	e.runner.NoteKick()
}

// runInline runs a round in the caller's thread. The caller holds the lease, which runInline releases. If work is left,
// runInline wakes a sleeping worker.
func (e *Engine) runInline(how listening) bool {
	_, more, ran := e.runHeld(how)
	if !ran {
		return false
	}
	e.runner.NotePolling()
	if more && e.runner.State() == runner.Asleep {
		e.runner.Call()
	}
	return true
}

// runHeld runs a round, unless the engine is closed. The caller holds the lease, which runHeld releases. more reports
// whether work is left.
func (e *Engine) runHeld(how listening) (worked, more, ran bool) {
	defer e.lease.Unlock()
	if e.closed {
		return false, false, false
	}
	if how == deaf && e.kicks >= deafKicks {
		how = listens
	}
	worked = e.run(how)
	return worked, e.more(), true
}

// Until runs rounds in the caller's thread until done returns true or the timeout expires. It returns false after a
// timeout, and true at once if the engine is closed. done runs between the rounds.
func (e *Engine) Until(done func() bool, timeout time.Duration) bool {
	for end := time.Now().Add(timeout); ; {
		over, worked := false, false
		e.Do(func() {
			if over = e.closed || done(); !over {
				worked = e.runRound()
			}
		})
		switch {
		case over:
			return true
		case time.Now().After(end):
			return false
		case !worked:
			time.Sleep(runner.RetryTime)
		}
	}
}

// ChangeLink is Do for a change of the link's sockets. A descriptor that change removes from the link is unused when
// ChangeLink returns, and may be closed. Calls must not be concurrent.
func (e *Engine) ChangeLink(change func()) {
	var descriptors []int
	e.Do(func() {
		change()
		descriptors = e.linkChanged()
	})
	e.runner.SleepOn(descriptors)
}

// linkChanged returns the descriptors to sleep on after a change of the link. It runs in Do.
func (e *Engine) linkChanged() (descriptors []int) {
	// Clear pointers to frames that are no longer borrowed: their memory may be unmapped.
	if e.round.taken == 0 && !e.round.arriving.pending() {
		e.rx.packet, e.round.arriving.frame, e.tx.looped.packet = wire.Packet{}, nil, wire.Packet{}
	}
	return e.descriptors()
}

// Wake makes the worker poll a session's doorbell. Any goroutine may call it at any time.
func (e *Engine) Wake(s *Session) {
	e.doorbells.call(s)
	e.runner.Call()
}

// HearCalls makes the worker watch an eventfd, and treat each write to it as a call of Wake for the session. Any
// goroutine may call it, except under the lease.
func (e *Engine) HearCalls(s *Session, fd int) error {
	return e.runner.HearCalls(fd, func() { e.doorbells.call(s) })
}

// EndCalls ends HearCalls for an eventfd. Any goroutine may call it, except under the lease.
func (e *Engine) EndCalls(fd int) { e.runner.EndCalls(fd) }

// Waiter is a program that sleeps until it has a completion.
type Waiter = runner.Waiter

// BeginWait announces that a program is about to sleep until it has a completion. From now on the worker or a leader
// runs the engine, even while other programs poll.
func (e *Engine) BeginWait() { e.runner.BeginWait() }

// EndWait ends a BeginWait.
func (e *Engine) EndWait() { e.runner.EndWait() }

// NoteReady notes that a program was about to wait and found a completion.
func (e *Engine) NoteReady() { e.runner.NoteReady() }

// Lead makes a waiting program the leader, and returns true when its wait is over. It returns false at once if another
// program waits too or the worker is not asleep: the program must then wait for its event. The caller must have called
// BeginWait.
func (e *Engine) Lead(waiter Waiter) (over bool) { return e.runner.Lead(waiter) }

// WakeLeader makes the leader check whether its wait is over. Any goroutine may call it.
func (e *Engine) WakeLeader() { e.runner.WakeLeader() }

// helper lets the workers of engines on an in-memory network run rounds for each other. If another worker sleeps, a
// worker that has sent it a few short packets runs a few rounds of its engine, which is faster than waking that worker.
// Only engines of cards whose programs all belong to the same user help each other, so a user's programs delay no
// programs of other users.
//
//	round: own engine, under its lease ──► then, without a lease, help for the engines that received packets
type helper struct {
	engine *Engine
	port   link.Port
}

const (
	// helpRounds is the maximum number of consecutive rounds of another engine: one for the packets, one for packets
	// that arrive meanwhile, and one that finds no more packets.
	helpRounds = 3
	// mostHelped is the maximum number of engines helped after a round. The workers of further engines are woken.
	mostHelped = 2
)

// newHelper returns an engine's helper. It returns nil if the network is not in memory, programs run the engine's
// rounds, or the card has several engines.
func newHelper(e *Engine, alone bool) *helper {
	if !alone || e.memory == nil || e.peers.Peer != nil {
		return nil
	}
	return &helper{e, e.memory}
}

// setUser sets the user that owns all programs of the card; nil: no programs, or several users. It runs in Do.
func (h *helper) setUser(user any) { h.port.SetHelp(user, h.help) }

// round runs a round for the worker, then helps other engines. The caller holds the lease, which round releases.
func (h *helper) round() (worked, more bool) {
	worked, more, owed := h.runOwing()
	few := min(mostHelped, len(owed))
	for _, p := range owed[few:] { // first, because helping keeps this thread busy
		p.Call()
	}
	goesOn := true
	for _, p := range owed[:few] {
		if goesOn {
			goesOn = p.Help()
		} else {
			p.Call()
		}
	}
	clear(owed) // the ports may be closed later
	return worked, more
}

func (h *helper) runOwing() (worked, more bool, owed []link.Port) {
	e := h.engine
	defer e.lease.Unlock()
	if e.closed {
		return false, false, nil
	}
	h.port.PutOffWakes()
	worked = e.runRound()
	return worked, e.more(), h.port.TakeWakes()
}

// help runs rounds of this engine in the thread of another engine's worker. It reports whether this engine's own worker
// may stay asleep.
func (h *helper) help() (done bool) {
	e := h.engine
	for range helpRounds {
		if e.wanted.Load() != 0 || !e.lease.TryLock() {
			return false
		}
		worked, more, ran := e.runHeld(listens)
		if !ran || !worked {
			return !more
		}
	}
	return false
}
