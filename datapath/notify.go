package datapath

import (
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/futex"
	"github.com/roced/roced/internal/timers"
)

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

// Overrun reports whether the CQ was overrun. It runs in Do.
func (cq *CQ) Overrun() bool { return cq.overrun }

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
		cs.engine.hand = due.Of.Session
		cs.report(due.Of)
	}
}

// ModerateCQ sets a CQ's moderation. Events that were put off are sent. It runs in Do.
func (cs *completions) ModerateCQ(cq *CQ, m Moderation) {
	cq.moderation = m
	cs.report(cq)
}

// CheckCQ sends the events of these armings that a CQ owes for what is unread, also for what was there
// when it was armed. It runs in Do.
func (cs *completions) CheckCQ(cq *CQ, armings ring.Arming) {
	due := cq.Queue.Due(true) & armings
	if cq.Queue.Unread() == 0 {
		due &= ring.ArmedCount
	}
	if cq.due |= due; due != 0 {
		cs.report(cq)
	}
}

// MoveCQ has the card write another queue from now on, and never the old one again. Armings go along.
// It runs in Do.
func (cs *completions) MoveCQ(cq *CQ, to *ring.CompletionProducer) {
	if cq.Queue.Disarm(ring.ArmedFutex).Sleeps() { // threads sleep on a word that does not change any more
		futex.Wake(cq.Queue.IndexWord())
	}
	unreported := cq.Queue.Written() - cq.reported
	cq.Queue.HandOver(to)
	cq.Queue = to
	cq.reported = to.Written() - unreported
}

// RemoveCQ forgets a CQ that no queue pair completes to. It runs in Do.
func (cs *completions) RemoveCQ(cq *CQ) { cs.postponed.Stop(&cq.deadline) }
