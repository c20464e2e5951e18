package verbs

import (
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs/provider"
)

// manners are those of a program that spins on the queues of a Spinner, whose card may need the processor that
// the program spins on. Each empty poll yields, which costs a system call. If one yield took long, others want
// the processor: then empty polls wait for what the card says instead, for a while.
//
// A program may poll several queues in turn, and while it waits it must not miss what comes to another. So it
// waits only when a whole turn was empty, in which each queue was armed: at the second empty poll of a queue
// with nothing found in between.
type manners struct {
	spinner provider.Spinner
	now     func() time.Time
	dozes   atomic.Int32  // how many empty polls are still to wait
	turn    atomic.Uint32 // when something is found, another one begins
}

const (
	longYield     = 200 * time.Microsecond
	dozesPerYield = 256
)

func newManners(spinner provider.Spinner) *manners {
	m := &manners{spinner: spinner, now: time.Now}
	m.turn.Store(1) // which no queue has been armed in
	return m
}

// empty is called after a poll that has found nothing, with no lock held.
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

// armToDoze arms a queue that is empty, if polls are to wait now, and looks once more. armed says that the queue
// has been armed in this turn before. The caller holds mu.
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
