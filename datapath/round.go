package datapath

import (
	"time"

	"github.com/roced/roced/datapath/runner"
)

// deafKicks is how many kicks in a row send only. To look for packets takes a system call over sockets, and who posts
// will mostly poll next. But a program may run the rounds by posting alone.
const deafKicks = 4

// runRound is one round: receive, send, publish completions. One that ends in a fault has worked.
func (e *Engine) runRound() (worked bool) { return e.run(listens) }

// run runs a round, or when it is deaf the half of it that sends.
func (e *Engine) run(how listening) (worked bool) {
	worked = true
	defer e.contain()
	e.doorbells.announceRest()
	e.round.time = time.Time{}
	received, expired := false, false
	if e.kicks++; how != deaf {
		e.kicks = 0
		received, expired = e.receive(how), e.timers.expire()
	}
	sent := e.transmit()
	e.completions.publish()
	e.faults = 0
	return received || expired || sent
}

// more reports whether a round left work that no doorbell or frame will announce again. Requests that the state of their
// queue pair holds back do not count.
func (e *Engine) more() bool {
	r := &e.round
	return r.taken > 0 || len(e.completions.dirty) > 0 || !r.turns.empty() || r.blocked || r.looping.pending() || e.doorbells.pending() || e.peers.Pending()
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
	if e.closed || !s.unsent() {
		return false, false
	}
	moved, unsent = true, true
	defer e.contain()
	e.doorbells.call(s)
	e.round.time = time.Time{}
	moved = e.transmit()
	e.completions.publish()
	return moved, s.unsent()
}

// unsent reports whether the session has requests that can be sent or flushed and have not been.
// What waits for the link, or for members of a group, may be the session's too. A session that has been
// removed has none: its doorbell's memory may be unmapped.
func (s *Session) unsent() bool {
	e := s.engine
	return !s.removed && (s.inTurn.first != nil || s.doorbell.Pending() || e.round.blocked || e.round.looping.pending())
}
