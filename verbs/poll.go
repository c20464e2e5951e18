// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"runtime"

	"github.com/roced/roced/datapath/ring"
)

// Poll dequeues up to len(wcs) completions and returns their number, without waiting (ibv_poll_cq). A number below
// len(wcs) means that the queue is empty. ErrCQOverrun when completions were lost and the remaining ones have been
// polled, ErrClosed or ErrDeviceFatal when the card is closed or has failed, ErrObjectClosed when the queue is closed.
//
// With an embedded card, polling an empty queue runs the card. Empty polls yield to other goroutines, since a goroutine
// that spins without yielding blocks the others of its processor for 10 ms and more. A plain loop is therefore the way
// to spin, in any number of goroutines:
//
//	for {
//		n, err := cq.Poll(wcs)
//		…
//	}
//
// The loop needs a processor of its own. Where programs or goroutines share processors, Wait is faster, and it uses no
// processor while idle. Over the service, which also needs a processor, an empty poll yields the processor; if other
// programs need it, some empty polls wait up to 1 ms for completions in any queue of the program.
func (q *CQ) Poll(wcs []WC) (int, error) {
	if q == nil {
		return 0, fmt.Errorf("poll CQ: %w", errNil)
	}
	n, armed, err := q.poll(wcs)
	if n == 0 && err == nil {
		q.ctx.yield()
		if q.ctx.manners != nil {
			q.ctx.manners.empty(q.events, armed)
		}
	}
	return n, err
}

// pollsPerYield is the number of empty polls per yield of a goroutine that polls alone, about 0.4 ms. Each yield makes
// Go wake a thread that searches for work, on a processor that another program may need: with a yield every 64 polls, a
// round trip between two programs took twice as long.
const pollsPerYield = 4096

// yield lets other goroutines run, and holds no lock. It yields once in pollsPerYield empty polls, or at each empty
// poll if other goroutines need the processor: if others poll too (they have polled when a yield returns), or if Go
// uses only one processor (GOMAXPROCS, in a container its CPU limit), which the card's worker needs too. One goroutine
// may poll several queues.
func (c *Context) yield() {
	polls := c.emptyPolls.Add(1)
	if polls%pollsPerYield == 0 {
		c.noteProcessors() // a container's limit may change
	} else if !c.othersPoll.Load() && !c.oneProcessor.Load() {
		return
	}
	runtime.Gosched()
	if others := c.emptyPolls.Load() != polls; others != c.othersPoll.Load() {
		c.othersPoll.Store(others)
	}
}

func (c *Context) noteProcessors() { c.oneProcessor.Store(runtime.GOMAXPROCS(0) == 1) }

// poll dequeues completions; armed reports whether the next empty poll is to wait.
func (q *CQ) poll(wcs []WC) (n int, armed bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = q.take(wcs)
	if n == 0 && q.ctx.progress != nil && q.ctx.progress.Progress() {
		n = q.take(wcs)
	}
	if q.ctx.manners != nil {
		n, armed = q.armToDoze(wcs, n)
	}
	return n, armed, q.failure("poll CQ", n)
}

// failure returns the reason why no more completions will come, once all have been polled; nil if more may come. It
// checks the queue after the mark or the end that it reports, since the card may have published completions after the
// empty poll. doing names the operation in the error.
func (q *CQ) failure(doing string, n int) error {
	switch {
	case n > 0:
		return nil
	case q.isClosed():
		return fmt.Errorf("%s: %w: the CQ", doing, ErrObjectClosed)
	case q.queue.Failed() && q.queued() == 0: // the card publishes before it marks the queue: datapath/cq.go
		return fmt.Errorf("%s: %w: its capacity is %s; create one for all requests that can be outstanding", doing, ErrCQOverrun, count(q.Capacity(), "completion"))
	}
	if err := q.ctx.gone(); err != nil && q.queued() == 0 { // a card that fails publishes its last completions before
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// take copies completions out of the queue and counts them for their queue pairs, whose slots they free. It frees their
// places in the queue before counting, so that a request posted immediately has room for its completion. It skips
// completions of queue pairs that have been reset or destroyed.
func (q *CQ) take(wcs []WC) (n int) {
	var cqe ring.CQE
	var done tally
	some := false
	for n < len(wcs) && q.next(&cqe) {
		some = true
		if done.qp == nil || done.token != cqe.Token {
			if done.qp != nil {
				q.queue.Publish()
				done.settle()
			}
			done = tally{qp: q.ctx.slots.find(cqe.Token), token: cqe.Token}
			if done.qp == nil {
				continue
			}
		}
		done.count(cqe.Opcode)
		wcs[n].fill(&cqe)
		n++
	}
	if some {
		q.queue.Publish()
	}
	done.settle()
	return n
}

// next copies the oldest completion out of the queue; false if the queue is empty.
func (q *CQ) next(cqe *ring.CQE) bool {
	if len(q.kept) > 0 {
		*cqe = q.kept[0]
		q.kept = q.kept[1:]
		q.countKept()
		return true
	}
	if q.queue.Available(1) == 0 {
		return false
	}
	q.queue.Get(cqe)
	return true
}

// tally counts consecutive completions of one queue pair, so that together they cost one atomic addition.
type tally struct {
	qp           *QP
	token        uint32
	sends, recvs uint32
}

func (t *tally) count(op WCOpcode) {
	if op.IsRecv() {
		t.recvs++
	} else {
		t.sends++
	}
}

func (t *tally) settle() {
	if t.sends > 0 {
		t.qp.sendPolled.Add(t.sends) // pairs with PostSend; the slots of the CQ have been freed before
	}
	if t.recvs > 0 {
		t.qp.recvPolled.Add(t.recvs) // pairs with PostRecv
	}
}
