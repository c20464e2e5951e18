// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"runtime"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Fill posts requests until the queue is full, and returns their number.
func (s *Station) Fill(wr verbs.SendWR) (n int) {
	s.Helper()
	for {
		err := s.QP.PostSend([]verbs.SendWR{wr})
		if err != nil {
			Refused(s, err, unix.ENOMEM, "max_send_wr")
			return n
		}
		n++
	}
}

// Granted returns the capacities of the queue pair's send and receive queues.
func (s *Station) Granted() (sends, receives int) {
	s.Helper()
	_, init, err := s.QP.Query()
	Check(s, err)
	return int(init.Cap.MaxSendWR), int(init.Cap.MaxRecvWR)
}

// Overrunnable creates a small CQ, and n queue pairs whose receive queues are larger than it.
func (s *Station) Overrunnable(n int) (*verbs.CQ, []*verbs.QP) {
	s.Helper()
	cq := s.NewCQ(4)
	capacity := DefaultCap()
	capacity.MaxRecvWR = uint32(cq.Capacity()) + 2
	var qps []*verbs.QP
	for range n {
		qp := s.NewQPWith(verbs.QPInitAttr{SendCQ: s.CQ, RecvCQ: cq, Cap: capacity})
		Check(s, qp.Activate(TestQKey))
		qps = append(qps, qp)
	}
	return cq, qps
}

// Overrun overruns the CQ of a queue pair of b: it sends more messages than the CQ's capacity by the given number.
func (w *World) Overrun(qp *verbs.QP, cq *verbs.CQ, more int) {
	w.A.Helper()
	ah := w.A.AH(w.B.End.IPv4)
	for i := range cq.Capacity() + more {
		w.B.ReceiveOn(qp, i)
		w.A.Post(w.A.Send(uint64(i), ah, qp))
		w.A.Expect(OK(uint64(i)))
	}
	Check(w.A, ah.Close())
}

// Flushing creates a queue pair in ERR, which completes each posted receive immediately.
func (s *Station) Flushing(cq *verbs.CQ, depth uint32) *verbs.QP {
	s.Helper()
	qp := s.NewQPWith(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxRecvWR: depth}})
	ToInit(s, qp)
	To(s, qp, verbs.QPStateErr)
	return qp
}

// Post moves the queue pair to ERR and posts receives with IDs from 0, which complete immediately.
func (c *Notified) Post(ctx context.Context, messages int) {
	if err := c.QP.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState); err != nil {
		c.Error(err)
	}
	for id := 0; id < messages && ctx.Err() == nil; {
		switch err := c.QP.PostRecv([]verbs.RecvWR{{ID: uint64(id)}}); {
		case err == nil:
			id++
		case errors.Is(err, verbs.ErrQueueFull):
			runtime.Gosched()
		default:
			c.Error(err)
			return
		}
	}
}

// ExpectInOrder polls completions with take, and checks that their IDs count from 0.
func (c *Notified) ExpectInOrder(ctx context.Context, name string, messages int, take func(context.Context, *Notified, []verbs.WC) (int, error)) {
	c.Helper()
	wcs := make([]verbs.WC, 3)
	for next := 0; next < messages; {
		n, err := take(ctx, c, wcs)
		if err != nil {
			c.Errorf("%s: after %d of %d: %v", name, next, messages, err)
			return
		}
		for _, wc := range wcs[:n] {
			if wc.ID != uint64(next) {
				c.Errorf("%s: completion %d, want %d", name, wc.ID, next)
				return
			}
			next++
		}
	}
}

func (d *Device) Clock() uint64 {
	d.Helper()
	values, err := d.Ctx.QueryRTValues()
	Check(d, err)
	return values.RawClock
}
