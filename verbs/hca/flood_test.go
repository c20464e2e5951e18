// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
)

const (
	goodRate  = 20_000 // per second: far below the capacity of a card
	goodBatch = 20
	goodRing  = 8192 // entries of the card's ring and of the queue pair: 0.4 s of good traffic
)

var (
	goodMessages = often(20_000)
	leastFlood   = uint64(often(200_000)) // packets
)

// TestFlood sends good messages at a stated rate beside a flood to non-existent queue pairs, as fast as they are
// dropped: no good message is lost.
func TestFlood(t *testing.T) {
	hosts := labtest.Pair(t)
	a := newStation(t, open(t, hosts.A))
	b := newStation(t, open(t, hosts.B, WithFrames(goodRing)))
	cq, err := b.ctx.CreateCQ(2 * goodRing)
	check(t, err)
	qp, err := b.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxRecvWR: goodRing}})
	check(t, err)
	check(t, qp.Activate(testQKey))
	receive := []verbs.RecvWR{{SGList: []verbs.SGE{b.piece(0, slotLen)}}}
	for range goodRing {
		check(t, qp.PostRecv(receive))
	}
	lost := lostBy(t, hosts.A)

	var done atomic.Bool
	var flooded uint64
	var background sync.WaitGroup
	r := newRawSender(t, hosts.A, hosts.B, qp.Number())
	began := time.Now()
	background.Go(func() { flooded = flood(r, b.device, &done) })
	background.Go(func() {
		// At least the stated amount of the flood, whichever sender is faster.
		eventually(t, "the flood", func() bool { return steered(t, b.device, "drop_unknown_qp") > leastFlood/10 })
		sendGood(a, qp.Number())
		eventually(t, "the flood", func() bool { return steered(t, b.device, "drop_unknown_qp") >= leastFlood })
		done.Store(true)
	})
	ctx := guard(t)
	var wcs [256]verbs.WC
	for got := 0; got < goodMessages; {
		n, err := cq.Wait(ctx, wcs[:])
		if err != nil {
			t.Errorf("after %d of %d good messages: %v; %v", got, goodMessages, err, counts(t, b.device))
			break
		}
		got += n
		for range n {
			check(t, qp.PostRecv(receive))
		}
	}
	background.Wait()
	took := time.Since(began).Seconds()
	t.Logf("%d good messages at %d a second at most, beside %d flooded packets at %.0f a second", goodMessages, goodRate, flooded, float64(flooded)/took)
	var dropped, byLink uint64
	eventually(t, "the last of the flood", func() bool { // the rest is still in the link's ring
		dropped, byLink = steered(t, b.device, "drop_unknown_qp"), lostBy(t, hosts.A)-lost
		return dropped+byLink >= flooded
	})
	if dropped+byLink != flooded {
		t.Errorf("%d flooded packets: %d dropped with drop_unknown_qp, %d by the link", flooded, dropped, byLink)
	}
	if drops := b.drops(); len(drops) != 0 || b.device.engine.Counters().Delivered != uint64(goodMessages) {
		t.Errorf("delivered %d, drops %v", b.device.engine.Counters().Delivered, drops)
	}
}

// flood sends packets to non-existent queue pairs until done, as fast as the card drops them: packets that the link
// itself drops could be good messages.
func flood(r *rawSender, to *Card, done *atomic.Bool) (sent uint64) {
	var frames [64][]byte
	for i := range frames {
		d := r.datagram()
		d.DestQP += verbs.QPN(1000 + i)
		frames[i] = frame(r.path("10.77.0.1", "10.77.0.2"), d, nil)
	}
	for ; !done.Load(); sent++ {
		for sent%64 == 0 && sent > steered(r, to, "drop_unknown_qp")+64 && !done.Load() {
			runtime.Gosched()
		}
		r.send(frames[sent%64])
	}
	return sent
}

// sendGood sends the good messages in batches, no faster than the stated rate: missed time is not made up for.
func sendGood(a *station, to verbs.QPN) {
	qp := a.newQP(verbs.QPCap{MaxSendWR: goodBatch})
	check(a, qp.Activate(testQKey))
	ah := a.ah("10.77.0.2")
	batch := make([]verbs.SendWR, goodBatch)
	for i := range batch {
		batch[i] = a.send(1, ah, a, a.piece(0, 64))
		batch[i].RemoteQPN, batch[i].Flags = to, 0
	}
	batch[goodBatch-1].Flags = verbs.SendSignaled
	for range goodMessages / goodBatch {
		next := time.Now().Add(time.Second * goodBatch / goodRate)
		check(a, qp.PostSend(batch))
		a.wait(1)
		time.Sleep(time.Until(next))
	}
}

func steered(t testing.TB, d *Card, name string) uint64 { return counts(t, d)[name] }
