package datapath

import (
	"slices"
	"time"

	"github.com/roced/roced/datapath/ring"
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
	due        ring.Arming // events that are put off
	reported   uint32      // the completions up to which none is owed
	deadline   time.Time   // of those put off; zero if there are none
	postponed  bool        // it is in the engine's list
}

// latecomers are the CQs whose events are put off.
type latecomers struct {
	postponed []*CQ
	earliest  time.Time // no deadline is before it; zero: there are none
}

// notify sends the events of an armed CQ whose completions have just been published, or puts them off.
// Those of an overrun are not put off.
func (e *Engine) notify(cq *CQ, solicited bool) {
	due := cq.Queue.Due(solicited)
	if cq.due |= due; cq.due == 0 {
		cq.reported = cq.Queue.Written()
		return
	}
	if cq.moderation.on() && !cq.overrun && cq.Queue.Written()-cq.reported < cq.moderation.Count {
		e.postpone(cq)
		return
	}
	e.report(cq)
}

// report sends a CQ's events that are due.
func (e *Engine) report(cq *CQ) {
	ended := cq.Queue.Disarm(cq.due)
	cq.settle()
	if ended.Notifies() {
		cq.Notify()
	}
	if ended.Waits() {
		cq.Wake()
		e.runner.WakeLeader()
	}
}

// Overrun reports whether the CQ was overrun. It runs in Do.
func (cq *CQ) Overrun() bool { return cq.overrun }

// settle forgets what was put off.
func (cq *CQ) settle() {
	cq.due, cq.reported, cq.deadline = 0, cq.Queue.Written(), time.Time{}
}

// postpone puts a CQ's events off.
func (e *Engine) postpone(cq *CQ) {
	if !cq.deadline.IsZero() {
		return
	}
	now := time.Now()
	cq.deadline = now.Add(cq.moderation.Period)
	if len(e.postponed) == 0 || cq.deadline.Before(e.earliest) {
		e.earliest = cq.deadline
	}
	if !cq.postponed {
		cq.postponed = true
		e.postponed = append(e.postponed, cq)
	}
}

// reportPostponed sends the events whose time has come.
func (e *Engine) reportPostponed() {
	now := time.Now()
	if now.Before(e.earliest) {
		return
	}
	e.earliest = time.Time{}
	e.postponed = slices.DeleteFunc(e.postponed, func(cq *CQ) bool {
		if !cq.deadline.IsZero() && !now.Before(cq.deadline) {
			e.hand, cq.deadline = cq.Session, time.Time{}
			e.report(cq)
		}
		if cq.postponed = !cq.deadline.IsZero(); !cq.postponed {
			return true
		}
		if e.earliest.IsZero() || cq.deadline.Before(e.earliest) {
			e.earliest = cq.deadline
		}
		return false
	})
	if len(e.postponed) == 0 {
		e.earliest = time.Time{}
	}
}

// ModerateCQ sets a CQ's moderation. Events that were put off are sent. It runs in Do.
func (e *Engine) ModerateCQ(cq *CQ, m Moderation) {
	cq.moderation = m
	e.report(cq)
}

// CheckCQ sends the events of these armings that a CQ owes for what is unread, also for what was there
// when it was armed. It runs in Do.
func (e *Engine) CheckCQ(cq *CQ, armings ring.Arming) {
	due := cq.Queue.Due(true) & armings
	if cq.Queue.Unread() == 0 {
		due &= ring.ArmedCount
	}
	if cq.due |= due; due != 0 {
		e.report(cq)
	}
}

// MoveCQ has the card write another queue from now on, and never the old one again. Armings go along.
// It runs in Do.
func (e *Engine) MoveCQ(cq *CQ, to *ring.CompletionProducer) {
	unreported := cq.Queue.Written() - cq.reported
	cq.Queue.HandOver(to)
	cq.Queue = to
	cq.reported = to.Written() - unreported
}

// RemoveCQ forgets a CQ that no queue pair completes to. It runs in Do.
func (e *Engine) RemoveCQ(cq *CQ) {
	cq.deadline = time.Time{}
	if cq.postponed {
		if e.postponed = slices.DeleteFunc(e.postponed, func(one *CQ) bool { return one == cq }); len(e.postponed) == 0 {
			e.earliest = time.Time{}
		}
	}
}
