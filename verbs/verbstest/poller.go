// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var pollerTests = []rig.Test{
	{Name: "many pollers", Run: manyPollers},
	{Name: "reset while polling", Run: resetWhilePolling},
}

// poller is a client of a card with its own queue pair, CQ and polling loop.
type poller struct {
	cq *verbs.CQ
	qp *verbs.QP
	ah *verbs.AH
	mr *verbs.MR
}

func newPoller(s *rig.Station, to netip.Addr) *poller {
	s.Helper()
	p := &poller{ah: s.AH(to), cq: s.NewCQ(2 * rig.Depth)}
	var err error
	p.mr, err = s.PD.AllocMR(rig.SlotLen, verbs.AccessLocalWrite)
	rig.Check(s, err)
	p.qp = s.NewQPWith(verbs.QPInitAttr{SendCQ: p.cq, RecvCQ: p.cq, Cap: rig.DefaultCap()})
	rig.Check(s, p.qp.Activate(rig.TestQKey))
	return p
}

func (p *poller) receive() error {
	return p.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{p.mr.SGE(0, rig.SlotLen)}}})
}

func (p *poller) send(peer verbs.QPN) error {
	return p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{p.mr.SGE(0, 64)}, AH: p.ah, RemoteQPN: peer, RemoteQKey: rig.TestQKey}})
}

func (p *poller) await() error {
	var wcs [4]verbs.WC
	for {
		n, err := p.cq.Poll(wcs[:])
		if err != nil || n > 0 {
			return err
		}
	}
}

// repeat executes steps repeatedly, until one fails.
func repeat(rounds int, steps ...func() error) error {
	for range rounds {
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// manyPollers checks that eight goroutines that poll in a loop do not starve each other.
func manyPollers(t *testing.T, w *rig.World) {
	rounds := rig.Often(300)
	var all sync.WaitGroup
	var trips atomic.Int64
	for range 8 {
		client, server := newPoller(w.A, w.B.End.IPv4), newPoller(w.B, w.A.End.IPv4)
		rig.Check(t, server.receive())
		run := func(steps ...func() error) {
			all.Go(func() {
				if err := repeat(rounds, steps...); err != nil {
					t.Error(err)
				}
			})
		}
		run(client.receive, func() error { return client.send(server.qp.Number()) }, client.await,
			func() error { trips.Add(1); return nil })
		run(server.await, server.receive, func() error { return server.send(client.qp.Number()) })
	}
	all.Wait()
	if n := trips.Load(); n != int64(8*rounds) {
		t.Errorf("%d trips of %d", n, 8*rounds)
	}
}

// resetWhilePolling resets a queue pair while its completions are polled, and checks that all slots are free
// afterwards.
func resetWhilePolling(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	const many = 4096
	sendCQ, recvCQ := a.NewCQ(many), a.NewCQ(many)
	qp := a.NewQPWith(verbs.QPInitAttr{SendCQ: sendCQ, RecvCQ: recvCQ, Cap: verbs.QPCap{MaxSendWR: many, MaxRecvWR: many}})
	sends, receives := make([]verbs.SendWR, many), make([]verbs.RecvWR, many)
	ah := a.AH(b.End.IPv4)
	for i := range sends {
		sends[i] = a.Send(1, ah, b.QP)
	}
	wcs := [2][]verbs.WC{make([]verbs.WC, many), make([]verbs.WC, many)}
	for range rig.Often(100) {
		rig.Check(t, qp.Activate(rig.TestQKey))
		rig.Check(t, qp.PostSend(sends)) // all slots are free
		rig.Check(t, qp.PostRecv(receives))
		rig.Drained(t, qp)
		rig.To(t, qp, verbs.QPStateErr) // flushes the receives
		var pollers sync.WaitGroup
		for i, cq := range []*verbs.CQ{sendCQ, recvCQ} {
			pollers.Go(func() {
				if _, err := cq.Poll(wcs[i]); err != nil {
					t.Error(err)
				}
			})
		}
		runtime.Gosched()
		rig.To(t, qp, verbs.QPStateReset)
		pollers.Wait()
	}
}
