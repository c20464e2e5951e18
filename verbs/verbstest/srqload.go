// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"context"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var srqLoadTests = []rig.Test{
	{Name: "SRQ under load", Run: srqUnderLoad},
	{Name: "modify while posting", Run: modifyWhilePosting},
}

const loadReceives = 2000

// srqUnderLoad posts to an SRQ from several goroutines while it is resized and armed, and while several queue pairs
// consume its receives. Each receive must complete once.
func srqUnderLoad(t *testing.T, w *rig.World) {
	b := w.B
	q, cq := b.NewSRQ(16), b.NewCQ(loadReceives)
	var qps []*verbs.QP
	for range 3 {
		qps = append(qps, b.Sharer(q, cq))
	}
	ctx, stop := context.WithCancel(rig.Guard(t))
	defer stop()
	var posters, others sync.WaitGroup
	for from := range 4 {
		posters.Go(func() { b.Feed(ctx, q, from*loadReceives/4, loadReceives/4) })
	}
	others.Go(func() { b.ChangeAll(ctx, q) })
	ah := w.A.AH(b.End.IPv4)
	others.Go(func() { w.Stream(ctx, ah, qps) })
	seen := map[uint64]bool{}
	for _, wc := range b.WaitOn(cq, loadReceives) {
		if wc.Status != verbs.WCSuccess || seen[wc.ID] {
			t.Errorf("receive %d: status %v, completed before: %v", wc.ID, wc.Status, seen[wc.ID])
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
	rig.Refused(t, q.Close(), unix.EBUSY)
}

// modifyWhilePosting modifies and closes a queue pair while other goroutines post to it. Every post must succeed or
// return an error, and no slot may leak.
func modifyWhilePosting(t *testing.T, w *rig.World) {
	s := w.A
	ah := s.AH(w.B.End.IPv4)
	cq := s.NewCQ(1024)
	q := s.NewSRQ(rig.Depth)
	for range rig.Often(5) {
		for _, shared := range []*verbs.SRQ{nil, q} {
			qp := s.NewQPWith(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, SRQ: shared, Cap: rig.DefaultCap()})
			rig.Check(t, qp.Activate(rig.TestQKey))
			s.PostWhile(qp, ah, w.B.QP, func() {
				for range 20 {
					for _, state := range []verbs.QPState{verbs.QPStateSQD, verbs.QPStateRTS, verbs.QPStateErr, verbs.QPStateReset} {
						rig.To(t, qp, state)
					}
					rig.Check(t, qp.Activate(rig.TestQKey))
					rig.Completions(t, cq)
				}
				rig.Check(t, qp.Close())
			})
		}
	}
	for range rig.Depth { // all receives of the SRQ are posted
		rig.Refused(t, q.PostRecv(make([]verbs.RecvWR, rig.Depth+1)), unix.ENOMEM)
	}
	rig.Check(t, q.Close())
	rig.Check(t, cq.Close())
}
