// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"time"

	"github.com/roced/roced/datapath/runner"
)

// deafKicks is the number of consecutive kicks that only send. Over sockets, polling for packets takes a system call,
// and a program that posts usually polls next. But a program may also run rounds by posting alone.
const deafKicks = 4

// runRound runs one round: receive, send, publish completions. A round that ends in a fault counts as work.
func (e *Engine) runRound() (worked bool) { return e.run(listens) }

// run runs a round; if how is deaf, only the sending half.
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

// more reports whether a round left work that no doorbell or frame will announce again. Requests that the state of
// their queue pair holds back do not count.
func (e *Engine) more() bool {
	r := &e.round
	return r.taken > 0 || len(e.completions.dirty) > 0 || !r.turns.empty() || r.blocked || r.looping.pending() || e.doorbells.pending() || e.peers.Pending()
}

// Settle runs rounds of sending in the caller's thread until all posted requests of a session are sent or flushed. It
// gives up after the timeout if the link does not accept them.
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

// settleRounds bounds the rounds of SendPosted if a program posts continuously. It suffices for two thousand packets.
const settleRounds = 16

// SendPosted sends a session's posted requests before an object that they may refer to is destroyed: hardware has read
// such a request long before a later command. Requests that the link does not accept stay queued.
func (e *Engine) SendPosted(s *Session) {
	for range settleRounds {
		if moved, unsent := e.sendFor(s); !moved || !unsent {
			return
		}
	}
}

// sendFor runs a round of sending if the session has requests to send.
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

// unsent reports whether the session has requests that can be sent or flushed and have not been. Packets that wait for
// the link, or for members of a group, are counted for every session, as they may be this one's. A removed session has
// none: its doorbell's memory may be unmapped.
func (s *Session) unsent() bool {
	e := s.engine
	return !s.removed && (s.inTurn.first != nil || s.doorbell.Pending() || e.round.blocked || e.round.looping.pending())
}
