// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// scribbledQueues checks that arbitrary data in a client's queues does not affect other clients, and that the queue
// pairs can be destroyed.
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
	for bit := range uint32(1 << 14) { // most of them have no queue pair
		s.Session.Doorbell().Ring(bit)
	}
	s.Session.Wake()
	w.Alive()
}

// scribble creates a queue pair, overwrites its queues with random data before the card reads them, and rings the
// doorbell. Then the other station sends a message to the queue pair.
func scribble(s *rig.Station, w *rig.World, random *rand.Rand, pd provider.Handle, index uint32) {
	s.Helper()
	p := s.Session
	cq, err := provider.Do(p, provider.CreateCQ, provider.CreateCQRequest{Entries: 8, EventID: 1 << 41})
	rig.Check(s, err)
	fillRandom(random, cq.Memory)
	rig.Check(s, provider.Exec(p, provider.ModifyCQ, provider.ModifyCQRequest{CQ: cq.CQ, Count: uint16(random.IntN(3)), Period: uint16(random.IntN(3))}))
	qp, err := provider.Do(p, provider.CreateQP, Request(pd, cq.CQ, index))
	rig.Check(s, err)
	fillRandom(random, qp.SendMemory)
	fillRandom(random, qp.RecvMemory)
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
	_, _ = provider.Do(p, provider.ResizeCQ, provider.ResizeCQRequest{CQ: cq.CQ, Entries: 4 << random.IntN(3)}) // may fail: the CQ may be overrun, or too full for the new size
	w.Settle()
	rig.Check(s, provider.Exec(p, provider.DestroyQP, provider.DestroyQPRequest{QP: qp.QP}))
	rig.Check(s, provider.Exec(p, provider.DestroyCQ, provider.DestroyCQRequest{CQ: cq.CQ}))
}

// fillRandom overwrites memory with random bytes, most of them small, so that many values pass range checks.
func fillRandom(random *rand.Rand, memory []byte) {
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
