package verbstest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var srqLoadTests = []test{
	{name: "SRQ under load", run: srqUnderLoad},
	{name: "modify while posting", run: modifyWhilePosting},
}

const loadReceives = 2000

// Several goroutines post to an SRQ that is resized and armed all the time, while messages to several
// queue pairs take from it: each receive completes once, and none is lost.
func srqUnderLoad(t *testing.T, w *world) {
	b := w.b
	q, cq := b.newSRQ(16), b.newCQ(loadReceives)
	var qps []*verbs.QP
	for range 3 {
		qps = append(qps, b.sharer(q, cq))
	}
	ctx, stop := context.WithCancel(guard(t))
	defer stop()
	var posters, others sync.WaitGroup
	for from := range 4 {
		posters.Go(func() { b.feed(ctx, q, from*loadReceives/4, loadReceives/4) })
	}
	others.Go(func() { b.changeAll(ctx, q) })
	ah := w.a.ah(b.end.IPv4)
	others.Go(func() { w.stream(ctx, ah, qps) })
	seen := map[uint64]bool{}
	for _, wc := range b.waitOn(cq, loadReceives) {
		if wc.Status != verbs.WCSuccess || seen[wc.ID] {
			t.Errorf("receive %d: %v, twice: %v", wc.ID, wc.Status, seen[wc.ID])
		}
		seen[wc.ID] = true
	}
	posters.Wait()
	stop()
	others.Wait()
	for id := range uint64(loadReceives) {
		if !seen[id] {
			t.Errorf("receive %d is lost", id)
		}
	}
	refused(t, q.Close(), unix.EBUSY)
}

// feed posts receives one by one, and tries again while the queue is full.
func (s *station) feed(ctx context.Context, q *verbs.SRQ, from, count int) {
	for i := from; i < from+count && ctx.Err() == nil; i++ {
		err := q.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{s.piece(i%slots, slotLen)}}})
		switch {
		case errors.Is(err, verbs.ErrQueueFull):
			i--
			runtime.Gosched()
		case err != nil:
			s.Error(err)
			return
		}
	}
}

// changeAll resizes, arms, queries and tries to close an SRQ until ctx is done.
func (s *station) changeAll(ctx context.Context, q *verbs.SRQ) {
	for i := 0; ctx.Err() == nil; i++ {
		err := q.Modify(&verbs.SRQAttr{MaxWR: 8 << (i % 3), Limit: 2}, verbs.SRQMaxWR|verbs.SRQLimit)
		// Less than what is queued, or receives are left from before too many resizes.
		if err != nil && !errors.Is(err, verbs.ErrInvalid) && !errors.Is(err, verbs.ErrBusy) {
			s.Error(err)
		}
		if _, err := q.Query(); err != nil {
			s.Error(err)
		}
		if err := q.Close(); !errors.Is(err, verbs.ErrBusy) {
			s.Error(err)
		}
		runtime.Gosched()
	}
}

// stream sends messages from a to queue pairs of b until ctx is done.
func (w *world) stream(ctx context.Context, ah *verbs.AH, qps []*verbs.QP) {
	var wcs [1]verbs.WC
	for i := 0; ctx.Err() == nil; i++ {
		err := w.a.qp.PostSend([]verbs.SendWR{w.a.send(0, ah, qps[i%len(qps)])})
		if err == nil {
			_, err = w.a.cq.Wait(ctx, wcs[:])
		}
		if err != nil && ctx.Err() == nil {
			w.a.Error(err)
			return
		}
	}
}

// Modify and Close of a queue pair while others post to it: every post is taken or refused, and
// nothing is used after it is gone.
func modifyWhilePosting(t *testing.T, w *world) {
	s := w.a
	ah := s.ah(w.b.end.IPv4)
	cq := s.newCQ(1024)
	q := s.newSRQ(depth)
	for range 5 {
		for _, shared := range []*verbs.SRQ{nil, q} {
			qp := s.newQPWith(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, SRQ: shared, Cap: defaultCap()})
			check(t, qp.Activate(testQKey))
			s.postWhile(qp, ah, w.b.qp, func() {
				for range 20 {
					for _, state := range []verbs.QPState{verbs.QPStateSQD, verbs.QPStateRTS, verbs.QPStateErr, verbs.QPStateReset} {
						to(t, qp, state)
					}
					check(t, qp.Activate(testQKey))
					completions(t, cq)
				}
				check(t, qp.Close())
			})
		}
	}
	for range depth { // what was posted to the SRQ is there
		refused(t, q.PostRecv(make([]verbs.RecvWR, depth+1)), unix.ENOMEM)
	}
	check(t, q.Close())
	check(t, cq.Close())
}

// postWhile posts to a queue pair from two goroutines while do runs, and until posts are refused.
func (s *station) postWhile(qp *verbs.QP, ah *verbs.AH, peer *verbs.QP, do func()) {
	s.Helper()
	var posters sync.WaitGroup
	var over atomic.Bool
	for range 2 {
		posters.Go(func() {
			for !over.Load() {
				send := qp.PostSend([]verbs.SendWR{s.send(1, ah, peer)})
				recv := qp.PostRecv([]verbs.RecvWR{{}})
				for _, err := range []error{send, recv} {
					if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, verbs.ErrQueueFull) {
						s.Error(err)
					}
				}
				runtime.Gosched()
			}
		})
	}
	do()
	over.Store(true)
	posters.Wait()
}
