package datapath

import (
	"runtime"
	"time"

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
	e.budget, e.time = changeBudget, time.Time{}
	change()
	e.publishContained()
	return e.more()
}

// runRound is one round: receive, send, publish completions. One that ends in a fault has worked.
func (e *Engine) runRound() (worked bool) { return e.round(listens) }

// deafKicks is how many kicks in a row send only. To look for packets takes a system call over sockets, and who posts
// will mostly poll next. But a program may run the rounds by posting alone.
const deafKicks = 4

// listening is how a round looks for packets.
type listening uint8

const (
	deaf    listening = iota // not at all
	glances                  // as who looks again at once: it may miss some now and then, if that is quicker
	listens
)

// round is runRound, or when it is deaf the half of it that sends.
func (e *Engine) round(how listening) (worked bool) {
	worked = true
	defer e.contain()
	e.announceRest()
	e.time = time.Time{}
	received, expired := false, false
	if e.kicks++; how != deaf {
		e.kicks = 0
		received, expired = e.receive(how), e.expire()
	}
	sent := e.transmit()
	e.publish()
	e.faults = 0
	return received || expired || sent
}

func (e *Engine) publishContained() {
	defer e.contain()
	e.publish()
}

// more reports whether a round left work that no doorbell or frame will announce again.
func (e *Engine) more() bool {
	return e.taken > 0 || len(e.dirty) > 0 || e.unsent() || e.others != nil && e.others.left()
}

// unsent reports whether posted requests wait to be sent or flushed. Requests that the state of
// their queue pair holds back do not count.
func (e *Engine) unsent() bool {
	return !e.turns.empty() || e.blocked || e.looping.pending() || e.pending()
}

// Settle runs rounds of sending in the caller's thread until everything that a session's program
// has posted is sent or flushed. It gives up after the timeout if the link does not take it.
func (e *Engine) Settle(s *Session, timeout time.Duration) {
	for end := time.Now().Add(timeout); ; {
		moved, unsent := e.sendFor(s)
		if !unsent || time.Now().After(end) {
			return
		}
		if !moved {
			time.Sleep(runner.RetryTime)
		}
	}
}

// settleRounds bounds the rounds of SendPosted, for programs that post all the time: as many as two thousand packets take.
const settleRounds = 16

// SendPosted has what a session's program has posted leave, before something goes that it may name: a card of hardware
// has read a request long before a command that was given after it. What the link does not take stays.
func (e *Engine) SendPosted(s *Session) {
	for range settleRounds {
		if moved, unsent := e.sendFor(s); !moved || !unsent {
			return
		}
	}
}

// sendFor is a round of sending, if a session has anything to send.
func (e *Engine) sendFor(s *Session) (moved, unsent bool) {
	e.wanted.Add(1)
	e.lease.Lock()
	defer e.lease.Unlock()
	e.wanted.Add(-1)
	if e.closed || !e.unsentBy(s) {
		return false, false
	}
	moved, unsent = true, true
	defer e.contain()
	e.call(s)
	e.time = time.Time{}
	moved = e.transmit()
	e.publish()
	return moved, e.unsentBy(s)
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
	e.announceRest()
	if !e.pending() {
		return false, false
	}
	return e.runRound(), e.more()
}

// Rest implements runner.Rounds. Its stores pair with announceRest, port.noteArrived and inbox.put: the worker's last
// round comes after it.
func (e *Engine) Rest(state runner.State) {
	e.rests.Store(state != runner.Busy)
	e.link.SetAsleep(state == runner.Asleep)
	if e.others != nil {
		e.others.setAsleep(state == runner.Asleep)
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
	e.call(s)
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
	worked = e.round(how)
	return worked, e.more(), true
}

// Counters returns a copy of the counters, taken between two rounds.
func (e *Engine) Counters() (c Counters) {
	e.Do(func() { c = e.counters })
	return c
}

// roundTime is the time of a round; zero until it is needed.
type roundTime struct{ time time.Time }

func (r *roundTime) now() time.Time {
	if r.time.IsZero() {
		r.time = time.Now()
	}
	return r.time
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
	if e.taken == 0 && !e.arriving.pending() { // what points to frames that are not borrowed any more: their memory may be unmapped
		e.rx.packet, e.arriving.frame, e.tx.looped.packet = wire.Packet{}, nil, wire.Packet{}
	}
	return e.descriptors()
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
