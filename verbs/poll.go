package verbs

import (
	"fmt"
	"runtime"

	"github.com/roced/roced/datapath/ring"
)

// Poll takes up to len(wcs) completions and gives their number; fewer than
// len(wcs) means that the queue was emptied (ibv_poll_cq). It does not wait.
// ErrCQOverrun when completions were lost and all that are left have been polled,
// ErrClosed or ErrDeviceFatal when the card is gone, ErrObjectClosed when the queue is closed.
//
// With an embedded card, polling an empty queue runs the card. Polls that find nothing
// give way to other goroutines, since one that spins keeps the others of
// its processor waiting, 10 ms and more, among them those that it waits for. So the plain loop
// is the way to spin, in as many goroutines as there are clients:
//
//	for {
//		n, err := cq.Poll(wcs)
//		…
//	}
//
// It costs a processor that nothing else wants: where several compete for one, programs or
// goroutines, Wait is quicker, and it costs none while there is nothing.
func (q *CQ) Poll(wcs []WC) (int, error) {
	n, err := q.poll(wcs)
	if n == 0 && err == nil {
		q.giveWay()
	}
	return n, err
}

// lonelyPolls is how many polls in vain a queue has that is polled alone before it gives
// way, some 0.4 ms of them: each time Go wakes a thread that looks for work, on a processor that
// others may need. At every 64th a round trip between two programs took twice as long.
const lonelyPolls = 4096

// giveWay yields, holding no lock: always if another queue was polled since, whose
// poller waits for its turn, else now and then.
func (q *CQ) giveWay() {
	alone := q.ctx.polled.Load() == q
	if !alone {
		q.ctx.polled.Store(q)
	}
	if q.vain.Add(1)%lonelyPolls == 0 || !alone {
		runtime.Gosched()
	}
}

func (q *CQ) poll(wcs []WC) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.take(wcs)
	if n == 0 && q.ctx.progress != nil && q.ctx.progress.Progress() {
		n = q.take(wcs)
	}
	return n, q.failure(n)
}

// failure says why there will be no more completions, once there are none left.
func (q *CQ) failure(n int) error {
	switch {
	case n > 0:
		return nil
	case q.isClosed():
		return fmt.Errorf("poll CQ: %w: the CQ", ErrObjectClosed)
	case q.queue.Failed():
		return fmt.Errorf("poll CQ: %w: it holds %d completions; make it as large as all requests that can be outstanding", ErrCQOverrun, q.capacity)
	}
	if err := q.ctx.gone(); err != nil {
		return fmt.Errorf("poll CQ: %w", err)
	}
	return nil
}

// take copies completions out, and tells their queue pairs that slots are free.
// Those of a queue pair that was reset or destroyed since are passed over.
func (q *CQ) take(wcs []WC) (n int) {
	var cqe ring.CQE
	var done tally
	some := false
	for n < len(wcs) && q.next(&cqe) {
		some = true
		if done.qp == nil || done.token != cqe.Token {
			done.settle()
			done = tally{qp: q.ctx.slots.find(cqe.Token), token: cqe.Token}
			if done.qp == nil {
				continue
			}
		}
		done.count(cqe.Opcode)
		wcs[n].fill(&cqe)
		n++
	}
	done.settle()
	if some {
		q.queue.Publish()
	}
	return n
}

// next copies the oldest completion out; false if there is none.
func (q *CQ) next(cqe *ring.CQE) bool {
	if len(q.kept) > 0 {
		*cqe = q.kept[0]
		q.kept = q.kept[1:]
		return true
	}
	if q.queue.Available(1) == 0 {
		return false
	}
	q.queue.Get(cqe)
	return true
}

// tally counts the completions of one queue pair in a row, so that a batch costs
// one atomic addition.
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
		t.qp.sendPolled.Add(t.sends)
	}
	if t.recvs > 0 {
		t.qp.recvPolled.Add(t.recvs)
	}
}
