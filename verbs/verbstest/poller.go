package verbstest

import (
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/verbs"
)

var pollerTests = []test{
	{name: "many pollers", run: manyPollers},
	{name: "reset while polling", run: resetWhilePolling},
}

// poller is a client of a card, with a queue pair and a CQ of its own and the loop that
// everybody writes.
type poller struct {
	cq *verbs.CQ
	qp *verbs.QP
	ah *verbs.AH
	mr *verbs.MR
}

func newPoller(s *station, to netip.Addr) *poller {
	s.Helper()
	p := &poller{ah: s.ah(to), cq: s.newCQ(2 * depth)}
	var err error
	p.mr, err = s.pd.AllocMR(slotLen, verbs.AccessLocalWrite)
	check(s, err)
	p.qp = s.newQPWith(verbs.QPInitAttr{SendCQ: p.cq, RecvCQ: p.cq, Cap: defaultCap()})
	check(s, p.qp.Activate(testQKey))
	return p
}

func (p *poller) receive() error {
	return p.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{p.mr.SGE(0, slotLen)}}})
}

func (p *poller) send(peer verbs.QPN) error {
	return p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{p.mr.SGE(0, 64)}, AH: p.ah, RemoteQPN: peer, RemoteQKey: testQKey}})
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

// repeat does steps so many times, until one fails.
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

// Eight goroutines poll, each in the plain loop, and none starves the others: every
// one makes its round trips.
func manyPollers(t *testing.T, w *world) {
	const rounds = 300
	var all sync.WaitGroup
	var trips atomic.Int64
	for range 8 {
		client, server := newPoller(w.a, w.b.end.IPv4), newPoller(w.b, w.a.end.IPv4)
		check(t, server.receive())
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
	if n := trips.Load(); n != 8*rounds {
		t.Errorf("%d trips of %d", n, 8*rounds)
	}
}

// A queue pair that is reset while its completions are polled: its slots are counted
// right afterwards, whichever was first.
func resetWhilePolling(t *testing.T, w *world) {
	a, b := w.a, w.b
	const many = 4096
	sendCQ, recvCQ := a.newCQ(many), a.newCQ(many)
	qp := a.newQPWith(verbs.QPInitAttr{SendCQ: sendCQ, RecvCQ: recvCQ, Cap: verbs.QPCap{MaxSendWR: many, MaxRecvWR: many}})
	sends, receives := make([]verbs.SendWR, many), make([]verbs.RecvWR, many)
	ah := a.ah(b.end.IPv4)
	for i := range sends {
		sends[i] = a.send(1, ah, b.qp)
	}
	wcs := [2][]verbs.WC{make([]verbs.WC, many), make([]verbs.WC, many)}
	for range 100 {
		check(t, qp.Activate(testQKey))
		check(t, qp.PostSend(sends)) // all slots are free
		check(t, qp.PostRecv(receives))
		drained(t, qp)
		to(t, qp, verbs.QPStateErr) // receives complete too
		var pollers sync.WaitGroup
		for i, cq := range []*verbs.CQ{sendCQ, recvCQ} {
			pollers.Go(func() {
				if _, err := cq.Poll(wcs[i]); err != nil {
					t.Error(err)
				}
			})
		}
		runtime.Gosched()
		to(t, qp, verbs.QPStateReset)
		pollers.Wait()
	}
}
