package verbstest

import (
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Whatever a client writes into its queues harms nobody else: the card goes on, and the queue pairs
// can be destroyed.
func scribbledQueues(t *testing.T, w *world) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := w.a
	pd, err := s.session.AllocPD()
	check(t, err)
	for round := range uint32(40) {
		s.scribble(w, random, pd.PD, doorbells+round)
	}
	check(t, s.session.DeallocPD(provider.DeallocPDRequest{PD: pd.PD}))
	for bit := range uint32(1 << 14) { // most of nobody
		s.session.Doorbell().Ring(bit)
	}
	s.session.Wake()
	w.alive()
}

// scribble makes a queue pair, writes at random over its queues before the card has looked at
// them, and rings; then a message comes for it.
func (s *station) scribble(w *world, random *rand.Rand, pd provider.Handle, index uint32) {
	s.Helper()
	p := s.session
	cq, err := p.CreateCQ(provider.CreateCQRequest{Entries: 8, EventID: 1 << 41})
	check(s, err)
	scrawl(random, cq.Memory)
	check(s, p.ModifyCQ(provider.ModifyCQRequest{CQ: cq.CQ, Count: uint16(random.IntN(3)), Period: uint16(random.IntN(3))}))
	qp, err := p.CreateQP(request(pd, cq.CQ, index))
	check(s, err)
	scrawl(random, qp.SendMemory)
	scrawl(random, qp.RecvMemory)
	for _, step := range []provider.ModifyQPRequest{
		{Attr: verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: testQKey}, Mask: initMask},
		{Attr: verbs.QPAttr{State: verbs.QPStateRTR}, Mask: verbs.QPAttrState},
		{Attr: verbs.QPAttr{State: verbs.QPStateRTS}, Mask: verbs.QPAttrState | verbs.QPAttrSQPSN},
	} {
		step.QP = qp.QP
		_, err := p.ModifyQP(step)
		check(s, err)
	}
	if p.Doorbell().Ring(index) {
		p.Wake()
	}
	ah := w.b.ah(s.end.IPv4)
	wr := w.b.send(1, ah, w.b.qp)
	wr.RemoteQPN = qp.Number
	w.b.post(wr)
	w.b.expect(ok(1))
	check(s, ah.Close())
	check(s, p.CheckCQ(provider.CheckCQRequest{CQ: cq.CQ}))
	_, _ = p.ResizeCQ(provider.ResizeCQRequest{CQ: cq.CQ, Entries: 4 << random.IntN(3)}) // it may be overrun, or say that it is full
	w.settle()
	check(s, p.DestroyQP(provider.DestroyQPRequest{QP: qp.QP}))
	check(s, p.DestroyCQ(provider.DestroyCQRequest{CQ: cq.CQ}))
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
