// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var flowTests = []rig.Test{
	{Name: "send queue full", Run: sendQueueFull},
	{Name: "unsignaled slots come free", Run: unsignaledSlots},
	{Name: "receive queue full", Run: recvQueueFull},
	{Name: "CQ never overruns", Run: cqNeverOverruns},
}

// A full send queue refuses requests until completions have been polled.
func sendQueueFull(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	wr := a.Send(1, a.AH(b.End.IPv4), b.QP)
	most, _ := a.Granted()
	if n := a.Fill(wr); n != most {
		t.Fatalf("%d requests fit a queue of %d", n, most)
	}
	rig.Drained(t, a.QP)
	if n := a.Fill(wr); n != 0 {
		t.Errorf("%d slots came free before a completion was polled", n)
	}
	for range most {
		a.Wait(1)
		if n := a.Fill(wr); n != 1 {
			t.Errorf("%d slots came free with one completion", n)
		}
		rig.Drained(t, a.QP)
	}
}

// Slots of unsignaled requests are freed when they are sent, without polling.
func unsignaledSlots(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	wr := a.Send(1, a.AH(b.End.IPv4), b.QP)
	wr.Flags = 0
	most, _ := a.Granted()
	for range 10 {
		rig.To(t, a.QP, verbs.QPStateSQD) // nothing is sent before the queue is full
		for i := range most {
			a.Post(wr)
			b.Receive(i % rig.Slots)
		}
		rig.Refused(t, a.QP.PostSend([]verbs.SendWR{wr}), unix.ENOMEM)
		rig.To(t, a.QP, verbs.QPStateRTS)
		rig.Drained(t, a.QP)
		b.Wait(most)
	}
	w.NothingElse()
}

func recvQueueFull(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	wr := []verbs.RecvWR{{SGList: []verbs.SGE{b.Piece(0, rig.SlotLen)}}}
	_, most := b.Granted()
	for range most {
		rig.Check(t, b.QP.PostRecv(wr))
	}
	rig.Refused(t, b.QP.PostRecv(wr), unix.ENOMEM, "max_recv_wr")
	a.Post(a.Send(1, a.AH(b.End.IPv4), b.QP))
	a.Expect(rig.OK(1))
	w.Settle() // the message has arrived and was not polled
	rig.Refused(t, b.QP.PostRecv(wr), unix.ENOMEM)
	b.Expect(rig.OK(0))
	rig.Check(t, b.QP.PostRecv(wr))
	rig.Refused(t, b.QP.PostRecv(wr), unix.ENOMEM)
}

// A CQ with the capacity of all requests that can be outstanding never overruns, because a slot is occupied until its
// completion has been polled.
func cqNeverOverruns(t *testing.T, w *rig.World) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	sends, receives := w.A.Granted() // the flow's queue pair has the same capacities
	f := &flow{Station: w.A, peer: w.B, random: rand.New(rand.NewPCG(seed, 0)), cq: w.A.NewCQ(sends + receives)}
	f.qp = w.A.NewQPWith(verbs.QPInitAttr{SendCQ: f.cq, RecvCQ: f.cq, Cap: rig.DefaultCap()})
	rig.Check(t, f.qp.Activate(rig.TestQKey))
	f.own, f.other = w.A.AH(w.A.End.IPv4), w.A.AH(w.B.End.IPv4)
	for range rig.Often(20000) {
		f.step()
	}
	rig.Drained(t, f.qp)
	f.count(f.WaitOn(f.cq, f.sent-f.sendsDone)) // they may include receives
	w.Settle()
	f.count(rig.Completions(t, f.cq))
	if f.sent != f.sendsDone || f.receivesDone == 0 || f.receivesDone > f.received {
		t.Errorf("posted %d sends and %d receives, completed %d and %d", f.sent, f.received, f.sendsDone, f.receivesDone)
	}
}

// flow is a queue pair that posts and polls at random, with the numbers of requests.
type flow struct {
	*rig.Station
	peer                                    *rig.Station
	random                                  *rand.Rand
	cq                                      *verbs.CQ
	qp                                      *verbs.QP
	own, other                              *verbs.AH
	sent, received, sendsDone, receivesDone int
}

func (f *flow) step() {
	switch f.random.IntN(5) {
	case 0, 1:
		wr := f.Send(1, f.own, f.qp)
		wr.Flags = verbs.SendFlags(f.random.IntN(2)) * verbs.SendSignaled
		if f.random.IntN(2) == 0 {
			wr.AH, wr.RemoteQPN = f.other, f.peer.QP.Number()
		}
		if f.qp.PostSend([]verbs.SendWR{wr}) == nil && wr.Flags != 0 {
			f.sent++
		}
	case 2:
		if f.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{f.Piece(0, rig.SlotLen)}}}) == nil {
			f.received++
		}
	case 3:
		runtime.Gosched()
		if f.random.IntN(8) == 0 {
			rig.Drained(f, f.qp)
		}
	case 4:
		wcs := make([]verbs.WC, 1+f.random.IntN(4))
		n, err := f.cq.Poll(wcs)
		rig.Check(f, err)
		f.count(wcs[:n])
	}
}

func (f *flow) count(wcs []verbs.WC) {
	for _, wc := range wcs {
		if wc.Opcode == verbs.WCRecv {
			f.receivesDone++
		} else {
			f.sendsDone++
		}
	}
}
