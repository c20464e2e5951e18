// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// Arbitrary data in a client's queues affects no other client: the card continues, and the queue pairs
// can be destroyed.
func scribbledQueues(t *testing.T, w *rig.World) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := w.A
	pd, err := provider.Do(s.Session, provider.AllocPD, provider.None{})
	rig.Check(t, err)
	for round := range uint32(40) {
		scribble(s, w, random, pd.PD, Doorbells+round)
	}
	rig.Check(t, provider.Exec(s.Session, provider.DeallocPD, provider.DeallocPDRequest{PD: pd.PD}))
	for bit := range uint32(1 << 14) { // most without a queue pair
		s.Session.Doorbell().Ring(bit)
	}
	s.Session.Wake()
	w.Alive()
}

// scribble makes a queue pair, writes at random over its queues before the card has looked at
// them, and rings; then a message comes for it.
func scribble(s *rig.Station, w *rig.World, random *rand.Rand, pd provider.Handle, index uint32) {
	s.Helper()
	p := s.Session
	cq, err := provider.Do(p, provider.CreateCQ, provider.CreateCQRequest{Entries: 8, EventID: 1 << 41})
	rig.Check(s, err)
	scrawl(random, cq.Memory)
	rig.Check(s, provider.Exec(p, provider.ModifyCQ, provider.ModifyCQRequest{CQ: cq.CQ, Count: uint16(random.IntN(3)), Period: uint16(random.IntN(3))}))
	qp, err := provider.Do(p, provider.CreateQP, Request(pd, cq.CQ, index))
	rig.Check(s, err)
	scrawl(random, qp.SendMemory)
	scrawl(random, qp.RecvMemory)
	for _, step := range []provider.ModifyQPRequest{
		{Attr: verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: rig.TestQKey}, Mask: rig.InitMask},
		{Attr: verbs.QPAttr{State: verbs.QPStateRTR}, Mask: verbs.QPAttrState},
		{Attr: verbs.QPAttr{State: verbs.QPStateRTS}, Mask: verbs.QPAttrState | verbs.QPAttrSQPSN},
	} {
		step.QP = qp.QP
		_, err := provider.Do(p, provider.ModifyQP, step)
		rig.Check(s, err)
	}
	if p.Doorbell().Ring(index) {
		p.Wake()
	}
	ah := w.B.AH(s.End.IPv4)
	wr := w.B.Send(1, ah, w.B.QP)
	wr.RemoteQPN = qp.Number
	w.B.Post(wr)
	w.B.Expect(rig.OK(1))
	rig.Check(s, ah.Close())
	rig.Check(s, provider.Exec(p, provider.CheckCQ, provider.CheckCQRequest{CQ: cq.CQ}))
	_, _ = provider.Do(p, provider.ResizeCQ, provider.ResizeCQRequest{CQ: cq.CQ, Entries: 4 << random.IntN(3)}) // it may be overrun, or say that it is full
	w.Settle()
	rig.Check(s, provider.Exec(p, provider.DestroyQP, provider.DestroyQPRequest{QP: qp.QP}))
	rig.Check(s, provider.Exec(p, provider.DestroyCQ, provider.DestroyCQRequest{CQ: cq.CQ}))
}

// scrawl writes into memory: anything, or numbers that are small enough to be looked at.
func scrawl(random *rand.Rand, memory []byte) {
	for i := range memory {
		switch {
		case random.IntN(2) == 0:
			memory[i] = 0
		case random.IntN(2) == 0:
			memory[i] = byte(random.IntN(4))
		default:
			memory[i] = byte(random.Uint32())
		}
	}
}
