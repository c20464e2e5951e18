package datapath

import "time"

// Do runs change between two rounds and returns when it has run. What the change
// took out of the engine's tables is not in use any more. If it left work, the worker
// is told.
func (e *Engine) Do(change func()) {
	e.wanted.Add(1)
	e.lease.Lock()
	e.wanted.Add(-1)
	e.budget = changeBudget
	change()
	e.publish()
	more := e.more()
	e.lease.Unlock()
	if more {
		e.worker.call()
	}
}

// runRound is one round: what arrived, what is to be sent, what is to be told.
func (e *Engine) runRound() (worked bool) {
	received := e.receive()
	sent := e.transmit()
	e.publish()
	return received || sent
}

// more reports whether a round left something to do that nobody will tell of again.
func (e *Engine) more() bool { return e.taken > 0 || e.unsent() }

// unsent reports whether something waits that programs have posted, or that is to be
// flushed. What the state of a queue pair holds back does not count.
func (e *Engine) unsent() bool {
	return !e.turns.empty() || e.blocked || e.looping.pending() || e.pending()
}

// Settle runs rounds of sending in the caller's thread until what a session's program has
// posted has left, or been flushed; as long as patience lasts, if the link does not take it.
func (e *Engine) Settle(s *Session, patience time.Duration) {
	for end := time.Now().Add(patience); e.settle(s); {
		if time.Now().After(end) {
			return
		}
	}
}

// settle is one round of Settle; false if nothing is left.
func (e *Engine) settle(s *Session) (unsent bool) {
	e.lease.Lock()
	if e.closed || !e.owes(s) {
		e.lease.Unlock()
		return false
	}
	e.call(s)
	moved := e.transmit()
	e.publish()
	unsent = e.owes(s)
	e.lease.Unlock()
	if unsent && !moved {
		time.Sleep(retryTime)
	}
	return unsent
}

// Progress runs a round in the thread of a program that polls, if nobody else is
// running one, and reports whether it did. Behind the control plane it queues, so
// that neither keeps the other from the engine.
func (e *Engine) Progress() bool {
	if e.wanted.Load() != 0 {
		e.lease.Lock()
	} else if !e.lease.TryLock() {
		e.worker.notePolling()
		return false
	}
	return e.runInline()
}

// Kick does what a session's doorbell asks for when it says that the card is to be called, in
// the caller's thread: quicker than waking the worker.
func (e *Engine) Kick(s *Session) {
	e.call(s)
	if e.wanted.Load() != 0 || !e.lease.TryLock() {
		e.worker.call()
		return
	}
	e.runInline()
	e.worker.noteKick()
}

// runInline runs a round in the caller's thread, who has taken the lease. A worker that
// sleeps gets what is left.
func (e *Engine) runInline() bool {
	if e.closed {
		e.lease.Unlock()
		return false
	}
	e.runRound()
	more := e.more()
	e.lease.Unlock()
	e.worker.notePolling()
	if more && e.worker.is(workerAsleep) {
		e.worker.call()
	}
	return true
}

// Counters is a consistent copy.
func (e *Engine) Counters() (c Counters) {
	e.Do(func() { c = e.counters })
	return c
}
