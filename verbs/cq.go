package verbs

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/ring"
)

// CQ is a completion queue (ibv_cq).
type CQ struct {
	ctx      *Context
	user     uint64 // see eventSources
	handle   Handle
	capacity int
	events   chan struct{}
	closed   chan struct{} // closed by Close
	waiters  atomic.Int32
	vain     atomic.Uint32 // polls that found nothing

	mu    sync.Mutex
	queue *ring.CompletionConsumer
	kept  []ring.CQE // older than what is in the queue; see purge
}

// CreateCQ makes a completion queue with room for at least so many completions.
// It must be polled before it is full: an overrun puts it and its queue pairs
// into error, which EventCQErr and EventQPFatal tell.
func (c *Context) CreateCQ(entries int) (*CQ, error) {
	var cq *CQ
	err := c.eventSources.add(func(user uint64) (_ any, err error) {
		cq, err = c.createCQ(entries, user)
		return cq, err
	})
	if err != nil {
		return nil, fmt.Errorf("create CQ of %d entries: %w", entries, err)
	}
	return cq, nil
}

func (c *Context) createCQ(entries int, user uint64) (*CQ, error) {
	grant, err := c.provider.CreateCQ(CreateCQRequest{entries, user})
	if err != nil {
		return nil, err
	}
	queue, err := ring.NewCompletionConsumer(grant.Memory, grant.Geometry)
	if err != nil {
		_ = c.provider.DestroyCQ(DestroyCQRequest{grant.CQ})
		return nil, err
	}
	return &CQ{ctx: c, user: user, handle: grant.CQ, capacity: int(grant.Geometry.Entries), events: grant.Events, closed: make(chan struct{}), queue: queue}, nil
}

// Capacity is how many completions the queue can hold, at least what was asked for.
func (q *CQ) Capacity() int { return q.capacity }

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

// Wait is Poll that sleeps while there is nothing, until ctx is done. What is there is
// given also when ctx is done: a loop that never empties the queue looks at ctx
// itself. Several goroutines may wait on one queue. When the card goes, all of them
// are woken: they get what was completed or flushed, and then the error that Poll gives.
// When the queue is closed they are woken with ErrObjectClosed.
func (q *CQ) Wait(ctx context.Context, wcs []WC) (int, error) {
	if err := checkContext(ctx); err != nil {
		return 0, fmt.Errorf("wait for CQ: %w", err)
	}
	q.waiters.Add(1)
	defer q.passOn()
	for {
		n, err := q.takeOrArm(wcs)
		if n > 0 || err != nil || len(wcs) == 0 {
			return n, err
		}
		if err := q.sleep(ctx); err != nil {
			return 0, err
		}
	}
}

// sleep waits for an event.
func (q *CQ) sleep(ctx context.Context) error {
	if q.ctx.progress != nil {
		q.ctx.progress.BeginWait()
		defer q.ctx.progress.EndWait()
	}
	select {
	case <-q.events:
	case <-q.closed:
	case <-q.ctx.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// takeOrArm polls without running the card; if there is nothing it arms the
// queue and looks once more, since a completion may have come in between.
func (q *CQ) takeOrArm(wcs []WC) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.take(wcs)
	if n == 0 {
		q.queue.Arm(false)
		n = q.take(wcs)
	}
	return n, q.failure(n)
}

// passOn wakes the next waiter: the event was for all of them, and the one that it
// woke may not have taken everything.
func (q *CQ) passOn() {
	if q.waiters.Add(-1) > 0 {
		select {
		case q.events <- struct{}{}:
		default:
		}
	}
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

// purge takes the completions of lives that have ended out of the queue, where they
// would hold places until polled, and keeps the others aside. The caller holds mu.
func (q *CQ) purge() {
	kept := q.kept
	q.kept = nil
	for _, cqe := range kept {
		q.keep(cqe)
	}
	var cqe ring.CQE
	for q.queue.Available(1) > 0 {
		q.queue.Get(&cqe)
		q.keep(cqe)
	}
	q.queue.Publish()
}

func (q *CQ) keep(cqe ring.CQE) {
	if q.ctx.slots.find(cqe.Token) != nil {
		q.kept = append(q.kept, cqe)
	}
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

// Close destroys the queue; ErrBusy while a queue pair completes to it. Whoever waits for
// completions is woken.
func (q *CQ) Close() error {
	if q == nil {
		return fmt.Errorf("destroy CQ: %w", errNil)
	}
	if err := q.ctx.provider.DestroyCQ(DestroyCQRequest{q.handle}); err != nil {
		return fmt.Errorf("destroy CQ: %w", err)
	}
	close(q.closed) // once: the card knows the handle no more
	q.ctx.eventSources.remove(q.user)
	return nil
}

func (q *CQ) isClosed() bool {
	select {
	case <-q.closed:
		return true
	default:
		return false
	}
}
