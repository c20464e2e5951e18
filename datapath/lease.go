package datapath

import (
	"runtime"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/runner"
	"github.com/roced/roced/datapath/wire"
)

// Do runs change between two rounds and returns when it has run. What the change removed from
// the engine's tables is no longer in use then. If the change left work, Do calls the worker.
//
// A panic in change is its caller's, and leaves the lease free. One in what Do does itself is contained.
func (e *Engine) Do(change func()) {
	e.wanted.Add(1)
	if e.change(change) {
		e.runner.Call()
	}
}

// change is Do, under the lease. It says whether the change left work.
func (e *Engine) change(change func()) (more bool) {
	e.lease.Lock()
	defer e.lease.Unlock()
	e.wanted.Add(-1)
	e.round.budget, e.round.time = changeBudget, time.Time{}
	change()
	e.completions.publishContained()
	return e.more()
}

// Round implements runner.Rounds. Calls of Do that wait for the lease go first.
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

// Rest implements runner.Rounds. Its stores pair with announceRest, port.noteArrived and peers.Peer.Hand: the worker's last
// round comes after it.
func (e *Engine) Rest(state runner.State) {
	e.doorbells.rests.Store(state != runner.Busy)
	e.link.SetAsleep(state == runner.Asleep)
	if e.peers.Peer != nil {
		e.peers.SetAsleep(state == runner.Asleep)
	}
}

// Progress runs a round in the thread of a program that polls, if nobody else is running one,
// and reports whether it did. If the control plane waits for the lease, Progress queues behind it,
// so that polling cannot keep the control plane from the engine.
func (e *Engine) Progress() bool {
	if e.wanted.Load() != 0 {
		e.lease.Lock()
	} else if !e.lease.TryLock() {
		e.runner.NotePolling()
		return false
	}
	return e.runInline(glances)
}

// Kick is called by a program that rang its doorbell and found the card asleep. It runs a round, or half of one,
// in the caller's thread, which is quicker than waking the worker.
func (e *Engine) Kick(s *Session) {
	e.doorbells.call(s)
	if e.wanted.Load() != 0 || !e.lease.TryLock() {
		e.runner.Call()
		return
	}
	e.runInline(deaf)
	e.runner.NoteKick()
}

// runInline runs a round in the caller's thread. The caller has taken the lease, which runInline
// releases. If work is left, a worker that sleeps is woken for it.
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

// runHeld runs a round, unless the engine is closed. The caller has taken the lease, which runHeld
// releases. more says that work is left.
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

// Until runs rounds in the caller's thread until done, which runs between them, and reports whether it
// was within the timeout.
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

// ChangeLink is Do for a change of the link: sockets come and go. A descriptor that the change takes
// out of the link is not used any more when it returns, and may be closed. One change at a time.
func (e *Engine) ChangeLink(change func()) {
	var descriptors []int
	e.Do(func() {
		change()
		descriptors = e.linkChanged()
	})
	e.runner.SleepOn(descriptors)
}

// linkChanged gives what to sleep on after a change of the link. It runs in Do.
func (e *Engine) linkChanged() (descriptors []int) {
	if e.round.taken == 0 && !e.round.arriving.pending() { // what points to frames that are not borrowed any more: their memory may be unmapped
		e.rx.packet, e.round.arriving.frame, e.tx.looped.packet = wire.Packet{}, nil, wire.Packet{}
	}
	return e.descriptors()
}

// Wake makes the worker look at a session's doorbell. Any goroutine may call it at any time.
func (e *Engine) Wake(s *Session) {
	e.doorbells.call(s)
	e.runner.Call()
}

// HearCalls has the worker watch an eventfd, and take each write to it for a Wake of the session. Any goroutine may
// call it, except under the lease.
func (e *Engine) HearCalls(s *Session, fd int) error {
	return e.runner.HearCalls(fd, func() { e.doorbells.call(s) })
}

// EndCalls ends HearCalls: the descriptor is not watched any more. Any goroutine may call it, except under the lease.
func (e *Engine) EndCalls(fd int) { e.runner.EndCalls(fd) }

// Waiter is a program that sleeps until a completion comes.
type Waiter = runner.Waiter

// BeginWait announces that a program is about to sleep until a completion comes. From now on the
// worker or a leader runs the engine, even while other programs poll.
func (e *Engine) BeginWait() { e.runner.BeginWait() }

// EndWait ends what BeginWait began.
func (e *Engine) EndWait() { e.runner.EndWait() }

// NoteReady says that a program was about to wait, and a completion was there.
func (e *Engine) NoteReady() { e.runner.NoteReady() }

// Lead makes a program that waits the leader, and returns true when it need not wait any more. It
// returns false, at once, if another program waits too or the worker is not asleep: then the program
// has to wait for its event. The caller has called BeginWait.
func (e *Engine) Lead(waiter Waiter) (over bool) { return e.runner.Lead(waiter) }

// WakeLeader makes the leader look whether it need not wait any more. Any goroutine may call it.
func (e *Engine) WakeLeader() { e.runner.WakeLeader() }

// helper is of an engine whose worker runs rounds of others, and they its rounds: on a network in memory, for a few
// short packets, where the other worker sleeps. To wake that takes longer than they do. All programs of both cards are
// of one user: what one has a worker wait for, it has its own programs wait for.
//
//	round: this engine's, under its lease ──► then, under no lease, help of those that packets came to
type helper struct {
	engine *Engine
	port   link.Port
}

const (
	// helpRounds is how many rounds of another engine are run at once: one for the packets, one that finds no more, and
	// one more if something came meanwhile.
	helpRounds = 3
	// mostHelped is how many engines are helped in a round; the workers of others are woken.
	mostHelped = 2
)

// newHelper gives an engine its helper; nil if programs run its rounds, or a card has several.
func newHelper(e *Engine, alone bool) *helper {
	if !alone || e.memory == nil || e.peers.Peer != nil {
		return nil
	}
	return &helper{e, e.memory}
}

// setUser says whose programs use the card; nil: nobody's, or several users'. It runs in Do.
func (h *helper) setUser(user any) { h.port.SetHelp(user, h.help) }

// round runs a round for the worker, and helps. The caller has taken the lease, which round releases.
func (h *helper) round() (worked, more bool) {
	worked, more, owed := h.runOwing()
	few := min(mostHelped, len(owed))
	for _, p := range owed[few:] { // before this thread is busy with others
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
	clear(owed) // ports that may be closed
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

// help runs rounds in the thread of another engine's worker. It says whether the worker, which sleeps, is not needed.
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
