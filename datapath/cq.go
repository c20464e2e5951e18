package datapath

import (
	"math"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/futex"
	"github.com/roced/roced/internal/timers"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// CQ is the card's end of a completion queue.
type CQ struct {
	Session *Session
	Queue   *ring.CompletionProducer
	QPs     map[*QP]struct{}
	// Wake wakes those who wait (ring.ArmedWait), and Notify sends the event of the other armings. Both
	// run under the lease and never block.
	Wake, Notify func()
	// NoteOverrun is called once, when the queue is overrun. It runs under the lease.
	NoteOverrun func()

	tally     *CQTally // nil if nobody counts
	dirty     bool     // it has entries to publish
	solicited bool     // a solicited or failed completion is among them
	overrun   bool
	failed    []*QP // by the overrun, until that is published
	moderated
}

// CQTally counts what a CQ is given, from when it is set: requests that were carried out, and others. It is read in Do.
type CQTally struct{ Completions, Errors uint64 }

// SetTally has a CQ counted; nil ends that. It runs in Do.
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

// completions are what programs are told at the end of a round.
type completions struct {
	engine    *Engine
	cqe       ring.CQE         // in hand
	dirty     []*CQ            // to publish, in the order of their first completions
	published int              // of dirty: those before it have been taken out
	postponed timers.Heap[*CQ] // whose events are put off
	takenFrom []*SRQ           // to publish
	reached   []*SRQ           // with the event of their limit to be reported
	ended     []*QP            // with NoteLastWQE to be called
	clock     clock
}

// complete writes an entry to a CQ; it is published at the end of the round. If the CQ is full,
// which is an overrun, the CQ and its queue pairs fail, and complete returns false.
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
		cs.cqe.VendorErr = uint32(cs.engine.tables.mtu) // the longest payload allowed, for the error message
	}
	cs.complete(qp.SendCQ, &cs.cqe, true)
}

// completeRecv completes a receive request with an error. An error counts as solicited.
func (cs *completions) completeRecv(qp *QP, id uint64, status ib.WCStatus) {
	cs.cqe.Set(id, status, ib.WCRecv, qp.Number, qp.CompletionToken)
	cs.complete(qp.RecvCQ, &cs.cqe, true)
}

// overrun fails a CQ and all queue pairs that complete to it. The program is notified when the round's completions are
// published, first of the CQ: see publish.
func (cs *completions) overrun(cq *CQ) {
	cq.overrun = true
	cq.solicited = true
	for qp := range cq.QPs {
		if qp.moveToErr() {
			cq.failed = append(cq.failed, qp)
		}
	}
}

// publish makes the round's completions visible to the programs, and sends the events of armed CQs,
// once a CQ and round.
func (cs *completions) publish() {
	e := cs.engine
	cs.publishSRQs() // first: a program that polls a completion may post to the slot at once
	for cq := cs.nextDirty(); cq != nil; cq = cs.nextDirty() {
		e.round.hand = cq.Session
		solicited := cq.solicited
		cq.dirty, cq.solicited = false, false
		cq.Queue.Publish()
		if cq.overrun {
			cq.Queue.Fail() // behind the index: pairs with CQ.failure in verbs, and take_last in verbs/c/cq.c
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

// publishContained is publish for a caller outside of a round: it contains a panic.
func (cs *completions) publishContained() {
	defer cs.engine.contain()
	cs.publish()
}

// nextDirty takes the next CQ out of those to publish, before it is looked at, as pop does.
func (cs *completions) nextDirty() (cq *CQ) {
	if cs.published == len(cs.dirty) {
		cs.dirty, cs.published = cs.dirty[:0], 0
		return nil
	}
	cq, cs.dirty[cs.published] = cs.dirty[cs.published], nil
	cs.published++
	return cq
}

// Moderation spares a program events (ibv_modify_cq). The event of an armed CQ then comes when Count
// completions are there, or Period after the first of them, whichever is first. Where one of the two
// is 0 there is none, as in hardware: a count alone might never be reached.
type Moderation struct {
	Count  uint32
	Period time.Duration
}

func (m *Moderation) on() bool { return m.Count > 0 && m.Period > 0 }

// moderated is a CQ's part of it.
type moderated struct {
	moderation Moderation
	due        ring.Arming       // events that are put off
	reported   uint32            // the completions up to which none is owed
	deadline   timers.Timer[*CQ] // of those put off; it runs while there are some
}

// notify sends the events of an armed CQ whose completions have just been published, or puts them off.
// Those of an overrun are not put off.
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

// report sends a CQ's events that are due.
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

// postpone puts a CQ's events off.
func (cs *completions) postpone(cq *CQ) {
	if !cq.deadline.Runs() {
		cq.deadline.Of = cq
		cs.postponed.Set(&cq.deadline, time.Now().Add(cq.moderation.Period))
	}
}

// reportPostponed sends the events whose time has come.
func (cs *completions) reportPostponed() {
	now := time.Now()
	for due := cs.postponed.Due(now); due != nil; due = cs.postponed.Due(now) {
		cs.engine.round.hand = due.Of.Session
		cs.report(due.Of)
	}
}

// Moderate sets the CQ's moderation. Events that were put off are sent. It runs in Do.
func (cq *CQ) Moderate(m Moderation) {
	cq.moderation = m
	cq.completions().report(cq)
}

// Check sends the events of these armings that the CQ owes for what is unread, also for what was there
// when it was armed. It runs in Do.
func (cq *CQ) Check(armings ring.Arming) {
	due := cq.Queue.Due(true) & armings
	if cq.Queue.Unread() == 0 {
		due &= ring.ArmedCount
	}
	if cq.due |= due; due != 0 {
		cq.completions().report(cq)
	}
}

// Move has the card write another queue from now on, and never the old one again. Armings go along.
// It runs in Do.
func (cq *CQ) Move(to *ring.CompletionProducer) {
	if cq.Queue.Disarm(ring.ArmedFutex).Sleeps() { // threads sleep on a word that does not change any more
		futex.Wake(cq.Queue.IndexWord())
	}
	unreported := cq.Queue.Written() - cq.reported
	cq.Queue.HandOver(to)
	cq.Queue = to
	cq.reported = to.Written() - unreported
}

// Remove ends the events of a CQ to which no queue pair completes any more. It runs in Do.
func (cq *CQ) Remove() { cq.completions().postponed.Stop(&cq.deadline) }

func (cq *CQ) completions() *completions { return &cq.Session.engine.completions }

// clock is the card's free-running clock, CLOCK_MONOTONIC in nanoseconds, and the wall clock beside it.
// One reading of the time gives both, by a call that needs no system call.
type clock struct {
	start time.Time
	since uint64 // ns of CLOCK_MONOTONIC at start
}

// newClock finds what CLOCK_MONOTONIC is at a time of Go's. It asks for one between two readings of the
// other, several times, since anything may come between; the closest pair counts.
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

// read gives both clocks, in ns.
func (c *clock) read() (free, wall uint64) {
	now := time.Now()
	return c.since + uint64(now.Sub(c.start)), uint64(now.UnixNano())
}
