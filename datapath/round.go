// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"runtime/debug"
	"time"

	"github.com/roced/roced/datapath/runner"
)

// deafKicks is the maximum number of consecutive kicks that send without polling for packets. Polling sockets takes a
// system call, and a program that posts usually polls its CQ next, which polls the sockets too. A program that only
// posts also needs rounds that receive, so the next kick polls.
const deafKicks = 4

// runRound runs one round: receive, send, publish completions. A round that ends in a fault counts as work.
func (e *Engine) runRound() (worked bool) { return e.run(listens) }

// run runs a round; if how is deaf, the round only sends.
func (e *Engine) run(how listening) (worked bool) {
	worked = true
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // in whichever goroutine the round runs
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

// more reports whether a round left work that must continue without a new doorbell or frame. Requests that their queue
// pair cannot send in its current state do not count.
func (e *Engine) more() bool {
	r := &e.round
	return r.taken > 0 || len(e.completions.dirty) > 0 || !r.turns.empty() || r.blocked || r.looping.pending() || e.doorbells.pending() || e.peers.Pending()
}

// Settle sends in the caller's thread until all posted requests of a session are sent or flushed, or until the timeout
// expires because the link does not accept them.
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

// settleRounds is the maximum number of rounds of SendPosted, in case a program posts continuously. It is sufficient
// for 2048 packets.
const settleRounds = 16

// SendPosted sends a session's posted requests. It is called before an object that they may refer to is destroyed,
// because hardware would have read these requests before the command that destroys the object. Requests that the link
// does not accept stay queued.
func (e *Engine) SendPosted(s *Session) {
	for range settleRounds {
		if moved, unsent := e.sendFor(s); !moved || !unsent {
			return
		}
	}
}

// sendFor runs a round that only sends, if the session has requests to send. moved reports whether the round did any
// work, unsent whether requests are left.
func (e *Engine) sendFor(s *Session) (moved, unsent bool) {
	e.wanted.Add(1)
	e.lease.Lock()
	defer e.lease.Unlock()
	e.wanted.Add(-1)
	if e.closed || !s.unsent() {
		return false, false
	}
	e.doorbells.call(s)
	moved = e.run(deaf)
	return moved, s.unsent()
}

// unsent reports whether the session has requests that can be sent or flushed now. Packets that wait for the link or
// for delivery to a group count for every session, as they may belong to this one. A removed session has none: its
// doorbell must not be read, as it may be unmapped.
func (s *Session) unsent() bool {
	e := s.engine
	return !s.removed && (s.inTurn.first != nil || s.doorbell.Pending() || e.round.blocked || e.round.looping.pending())
}
