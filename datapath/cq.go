// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"math"
	"runtime/debug"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/futex"
	"github.com/roced/roced/internal/timers"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// CQ is the engine's part of a completion queue.
type CQ struct {
	Session *Session
	Queue   *ring.CompletionProducer
	QPs     map[*QP]struct{}
	// Wake wakes the waiting programs (ring.ArmedWait), and Notify sends the event for the other armings. Both run
	// under the lease and must not block.
	Wake, Notify func()
	// NoteOverrun is called once, when the CQ is overrun. It runs under the lease.
	NoteOverrun func()

	tally     *CQTally // nil if no counts are kept
	dirty     bool     // it has entries to publish
	solicited bool     // these entries include a solicited or failed completion
	overrun   bool
	failed    []*QP // queue pairs that an overrun has moved to ERR, until it is published
	moderated
}

// CQTally counts a CQ's successful and failed completions since SetTally. Read it in Do only.
type CQTally struct{ Completions, Errors uint64 }

// SetTally starts counting into t; nil stops it. It runs in Do.
func (cq *CQ) SetTally(t *CQTally) { cq.tally = t }

func (t *CQTally) completed(status ib.WCStatus) {
	if status == ib.WCSuccess {
		t.Completions++
	} else {
		t.Errors++
	}
}

// Overrun reports whether the CQ was overrun. It runs in Do.
func (cq *CQ) Overrun() bool { return cq.overrun }

// completions holds the completions of a round, which are published to the programs at its end, and delayed events.
type completions struct {
	engine    *Engine
	cqe       ring.CQE         // the current completion
	dirty     []*CQ            // CQs to publish, in the order of their first completions
	published int              // number of CQs in dirty that have been published
	postponed timers.Heap[*CQ] // CQs whose events are delayed
	takenFrom []*SRQ           // SRQs to publish
	reached   []*SRQ           // SRQs whose limit event is to be reported
	ended     []*QP            // queue pairs whose NoteLastWQE is to be called
	clock     clock
}

// complete writes an entry to a CQ; it is published at the end of the round. If the CQ is full (an overrun), the CQ and
// its queue pairs fail, and complete returns false.
func (cs *completions) complete(cq *CQ, c *ring.CQE, solicited bool) bool {
	if cq.overrun {
		return false
	}
	if !cq.dirty {
		cq.dirty = true
		cs.dirty = append(cs.dirty, cq)
	}
	if cq.Queue.Stamped() {
		c.Timestamp, c.Wallclock = cs.clock.read()
	}
	if !cq.Queue.Put(c) {
		cs.overrun(cq)
		return false
	}
	if cq.tally != nil {
		cq.tally.completed(c.Status)
	}
	cq.solicited = cq.solicited || solicited
	return true
}

// failSend completes a send request with an error.
func (cs *completions) failSend(qp *QP, id uint64, status ib.WCStatus) {
	cs.cqe.Set(id, status, ib.WCSend, qp.Number, qp.CompletionToken)
	if status == ib.WCLocLenErr {
		cs.cqe.VendorErr = uint32(cs.engine.tables.mtu) // the maximum payload, for the error message
	}
	cs.complete(qp.SendCQ, &cs.cqe, true)
}

// completeRecv completes a receive request with an error. An error counts as solicited.
func (cs *completions) completeRecv(qp *QP, id uint64, status ib.WCStatus) {
	cs.cqe.Set(id, status, ib.WCRecv, qp.Number, qp.CompletionToken)
	cs.complete(qp.RecvCQ, &cs.cqe, true)
}

// overrun fails a CQ and moves all queue pairs that complete to it to ERR. publish notifies the program at the end of
// the round: first of the CQ, then of the queue pairs.
func (cs *completions) overrun(cq *CQ) {
	cq.overrun = true
	cq.solicited = true
	for qp := range cq.QPs {
		if qp.moveToErr() {
			cq.failed = append(cq.failed, qp)
		}
	}
}

// publish makes the round's completions visible to the programs, and sends the events of armed CQs, at most one per CQ
// and round.
func (cs *completions) publish() {
	e := cs.engine
	cs.publishSRQs() // before the CQs: a program that polls a completion may post to the freed slot immediately
	for cq := cs.nextDirty(); cq != nil; cq = cs.nextDirty() {
		e.round.hand = cq.Session
		solicited := cq.solicited
		cq.dirty, cq.solicited = false, false
		cq.Queue.Publish()
		if cq.overrun {
			cq.Queue.Fail() // after Publish: pairs with CQ.failure in verbs, and take_last in verbs/c/cq.c
			cq.NoteOverrun()
			for _, qp := range cq.failed {
				qp.NoteState(ib.QPStateErr, true)
			}
			cq.failed = nil
		}
		if cq.Queue.Armed() != 0 {
			cs.notify(cq, solicited)
		} else {
			cq.reported = cq.Queue.Written()
		}
	}
	cs.noteSRQs()
	e.round.accepting.takeTurns(&e.round.turns)
	if len(cs.postponed) > 0 {
		cs.reportPostponed()
	}
	e.round.hand = nil
	e.runner.SetAlarm(earliest(cs.postponed), earlier(earliest(e.timers.heap), e.flights.Deadline()), e.round.now)
}

// publishContained is publish for a caller outside a round: it contains a panic.
func (cs *completions) publishContained() {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer cs.engine.contain()
	cs.publish()
}

// nextDirty removes and returns the next CQ to publish; nil if there is none. Like pop, it removes the CQ before it is
// used.
func (cs *completions) nextDirty() (cq *CQ) {
	if cs.published == len(cs.dirty) {
		cs.dirty, cs.published = cs.dirty[:0], 0
		return nil
	}
	cq, cs.dirty[cs.published] = cs.dirty[cs.published], nil
	cs.published++
	return cq
}

// Moderation delays the events of an armed CQ (ibv_modify_cq) until Count completions have been written or Period has
// passed since the first of them. If either is 0, events are not delayed, as in hardware: a count without a period
// might never be reached.
type Moderation struct {
	Count  uint32
	Period time.Duration
}

func (m *Moderation) on() bool { return m.Count > 0 && m.Period > 0 }

// moderated is the moderation state of a CQ.
type moderated struct {
	moderation Moderation
	due        ring.Arming       // delayed events
	reported   uint32            // value of Queue.Written at the last event: later completions are unreported
	deadline   timers.Timer[*CQ] // of the delayed events; it runs while events are delayed
}

// notify sends or delays the events of an armed CQ whose completions have just been published. Events of an overrun CQ
// are not delayed.
func (cs *completions) notify(cq *CQ, solicited bool) {
	due := cq.Queue.Due(solicited)
	if cq.due |= due; cq.due == 0 {
		cq.reported = cq.Queue.Written()
		return
	}
	if cq.moderation.on() && !cq.overrun && cq.Queue.Written()-cq.reported < cq.moderation.Count {
		cs.postpone(cq)
		return
	}
	cs.report(cq)
}

// report sends the due events of a CQ.
func (cs *completions) report(cq *CQ) {
	ended := cq.Queue.Disarm(cq.due)
	cq.due, cq.reported = 0, cq.Queue.Written()
	cs.postponed.Stop(&cq.deadline)
	if ended.Notifies() {
		cq.Notify()
	}
	if ended.Sleeps() {
		futex.Wake(cq.Queue.IndexWord())
	}
	if ended.Waits() {
		cq.Wake()
		cs.engine.runner.WakeLeader()
	}
}

// postpone delays the events of a CQ.
func (cs *completions) postpone(cq *CQ) {
	if !cq.deadline.Runs() {
		cq.deadline.Of = cq
		cs.postponed.Set(&cq.deadline, time.Now().Add(cq.moderation.Period))
	}
}

// reportPostponed sends the delayed events whose deadline has passed.
func (cs *completions) reportPostponed() {
	now := time.Now()
	for due := cs.postponed.Due(now); due != nil; due = cs.postponed.Due(now) {
		cs.engine.round.hand = due.Of.Session
		cs.report(due.Of)
	}
}

// Moderate sets the CQ's moderation, and sends the events that the previous moderation has delayed. It runs in Do.
func (cq *CQ) Moderate(m Moderation) {
	cq.moderation = m
	cq.completions().report(cq)
}

// Check sends the events in armings that are due for unread completions, including completions that were already unread
// when the CQ was armed. It runs in Do.
func (cq *CQ) Check(armings ring.Arming) {
	due := cq.Queue.Due(true) & armings
	if cq.Queue.Unread() == 0 {
		due &= ring.ArmedCount
	}
	if cq.due |= due; due != 0 {
		cq.completions().report(cq)
	}
}

// Move makes the card write to another queue from now on (ibv_resize_cq). The armings move with it. It runs in Do.
func (cq *CQ) Move(to *ring.CompletionProducer) {
	if cq.Queue.Disarm(ring.ArmedFutex).Sleeps() { // threads sleep on a word that no longer changes
		futex.Wake(cq.Queue.IndexWord())
	}
	unreported := cq.Queue.Written() - cq.reported
	cq.Queue.HandOver(to)
	cq.Queue = to
	cq.reported = to.Written() - unreported
}

// Remove discards the delayed events of a CQ that is no longer used by any queue pair. It runs in Do.
func (cq *CQ) Remove() { cq.completions().postponed.Stop(&cq.deadline) }

func (cq *CQ) completions() *completions { return &cq.Session.engine.completions }

// clock is the card's free-running clock, CLOCK_MONOTONIC in nanoseconds, together with the wall clock. One call of
// time.Now, which needs no system call, provides both.
type clock struct {
	start time.Time
	since uint64 // ns of CLOCK_MONOTONIC at start
}

// newClock determines the value of CLOCK_MONOTONIC at some time.Time. It calls time.Now between two readings of
// CLOCK_MONOTONIC. It repeats this, as the thread may be interrupted, and uses the pair of readings with the smallest
// difference.
func newClock() (c clock) {
	closest := uint64(math.MaxUint64)
	for range 64 {
		before, now, after := monotonic(), time.Now(), monotonic()
		if apart := after - before; apart < closest {
			closest, c = apart, clock{now, before + apart/2}
		}
	}
	return c
}

func monotonic() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail: the clock exists
	return uint64(now.Nano())
}

// read returns both clocks, in ns.
func (c *clock) read() (free, wall uint64) {
	now := time.Now()
	return c.since + uint64(now.Sub(c.start)), uint64(now.UnixNano())
}
