// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs/provider"
)

// manners implements yielding for a program that spins on the queues of a Spinner, whose card may need the same
// processor. Each empty poll yields, which costs a system call. If a yield took long, other threads need the processor,
// and some of the following empty polls wait for an event of the card instead.
//
// A program may poll several queues in turn, and must not miss a completion in another queue while it waits. Therefore
// it waits only after a whole empty turn in which each queue was armed: at the second empty poll of a queue with no
// completion found in between.
type manners struct {
	spinner provider.Spinner
	now     func() time.Time
	dozes   atomic.Int32  // the number of empty polls that still have to wait
	turn    atomic.Uint32 // incremented when a completion is found
}

const (
	longYield     = 200 * time.Microsecond
	dozesPerYield = 256
)

func newManners(spinner provider.Spinner) *manners {
	m := &manners{spinner: spinner, now: time.Now}
	m.turn.Store(1) // no queue has been armed in turn 1
	return m
}

// empty is called after an empty poll, without locks.
func (m *manners) empty(events <-chan struct{}, armed bool) {
	if m.dozes.Load() > 0 {
		if armed {
			m.dozes.Add(-1)
			m.spinner.Doze(events)
		}
		return
	}
	before := m.now()
	m.spinner.Yield()
	if m.now().Sub(before) > longYield {
		m.dozes.Store(dozesPerYield)
	}
}

// armToDoze arms an empty queue if polls are to wait, and polls once more. armed reports whether the queue had already
// been armed in this turn. The caller holds mu.
func (q *CQ) armToDoze(wcs []WC, found int) (n int, armed bool) {
	m := q.ctx.manners
	if found == 0 && m.dozes.Load() > 0 {
		turn := m.turn.Load()
		armed = q.armedIn.Swap(turn) == turn
		q.queue.ArmWait()
		found = q.take(wcs)
	}
	if found > 0 {
		m.turn.Add(1)
	}
	return found, armed && found == 0
}
