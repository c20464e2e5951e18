// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// NewSRQ creates an SRQ of exactly this capacity.
func (s *Station) NewSRQ(receives uint32) *verbs.SRQ {
	s.Helper()
	attr := verbs.SRQInitAttr{MaxWR: receives, MaxSGE: 4}
	q, err := s.PD.CreateSRQ(&attr)
	Check(s, err)
	if attr.MaxWR != receives || attr.MaxSGE < 4 {
		s.Fatalf("granted %+v", attr)
	}
	return q
}

// Sharer creates a queue pair in RTS with an SRQ.
func (s *Station) Sharer(q *verbs.SRQ, cq *verbs.CQ) *verbs.QP {
	s.Helper()
	qp := s.NewQPWith(verbs.QPInitAttr{SendCQ: s.CQ, RecvCQ: cq, SRQ: q, Cap: DefaultCap()})
	Check(s, qp.Activate(TestQKey))
	return qp
}

// Give posts receives of whole slots. Their IDs are the slot numbers.
func (s *Station) Give(q *verbs.SRQ, slots ...int) {
	s.Helper()
	for _, i := range slots {
		Check(s, q.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{s.Piece(i, SlotLen)}}}))
	}
}

// Tell sends a message from a to each of these queue pairs of b, in order.
func (w *World) Tell(qps ...*verbs.QP) {
	w.A.Helper()
	ah := w.A.AH(w.B.End.IPv4)
	for i, qp := range qps {
		w.A.Post(w.A.Send(uint64(i), ah, qp))
		w.A.Expect(OK(uint64(i)))
	}
	Check(w.A, ah.Close())
	w.Settle()
}

// Feed posts receives one by one, and retries while the queue is full.
func (s *Station) Feed(ctx context.Context, q *verbs.SRQ, from, count int) {
	for i := from; i < from+count && ctx.Err() == nil; i++ {
		err := q.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{s.Piece(i%Slots, SlotLen)}}})
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

// ChangeAll resizes, arms, queries and tries to close an SRQ until ctx is done.
func (s *Station) ChangeAll(ctx context.Context, q *verbs.SRQ) {
	for i := 0; ctx.Err() == nil; i++ {
		err := q.Modify(&verbs.SRQAttr{MaxWR: 8 << (i % 3), Limit: 2}, verbs.SRQMaxWR|verbs.SRQLimit)
		// The size is less than the number of queued receives, or too many earlier resizes have queued receives.
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

// Stream sends messages from a to queue pairs of b until ctx is done.
func (w *World) Stream(ctx context.Context, ah *verbs.AH, qps []*verbs.QP) {
	var wcs [1]verbs.WC
	for i := 0; ctx.Err() == nil; i++ {
		err := w.A.QP.PostSend([]verbs.SendWR{w.A.Send(0, ah, qps[i%len(qps)])})
		if err == nil {
			_, err = w.A.CQ.Wait(ctx, wcs[:])
		}
		if err != nil && ctx.Err() == nil {
			w.A.Error(err)
			return
		}
	}
}

// PostWhile posts to a queue pair from two goroutines while do runs, until posts are refused.
func (s *Station) PostWhile(qp *verbs.QP, ah *verbs.AH, peer *verbs.QP, do func()) {
	s.Helper()
	var posters sync.WaitGroup
	var over atomic.Bool
	for range 2 {
		posters.Go(func() {
			for !over.Load() {
				send := qp.PostSend([]verbs.SendWR{s.Send(1, ah, peer)})
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
