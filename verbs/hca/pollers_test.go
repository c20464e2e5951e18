// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/verbs"
)

// pollers are clients of one card, each with its own queue pair and CQ and the usual polling loop.
type poller struct {
	cq *verbs.CQ
	qp *verbs.QP
	ah *verbs.AH
	mr *verbs.MR
}

func newPoller(t testing.TB, s *station, to string) *poller {
	t.Helper()
	p := &poller{ah: s.ah(to)}
	var err error
	p.cq, err = s.ctx.CreateCQ(2 * depth)
	check(t, err)
	p.mr, err = s.pd.AllocMR(slotLen, verbs.AccessLocalWrite)
	check(t, err)
	p.qp, err = s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: p.cq, RecvCQ: p.cq, Cap: defaultCap()})
	check(t, err)
	check(t, p.qp.Activate(testQKey))
	return p
}

// trip sends a message and polls until one arrives.
func (p *poller) trip(peer verbs.QPN) error {
	if err := p.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{p.mr.SGE(0, slotLen)}}}); err != nil {
		return err
	}
	if err := p.send(peer); err != nil {
		return err
	}
	return p.await()
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

// With one Go processor, a loop of unsuccessful polls must not occupy it: the worker of the card that the loop waits
// for runs there too.
func TestPollsShareOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // for contexts opened from here on
	l := newWirePair(t)
	p := newPoller(t, l.a, "10.0.0.2")
	var others atomic.Int64
	var stop atomic.Bool
	var ended sync.WaitGroup
	ended.Go(func() {
		for ; !stop.Load(); runtime.Gosched() {
			others.Add(1)
		}
	})
	const polls = 1000
	for range polls {
		_, err := p.cq.Poll(make([]verbs.WC, 1))
		check(t, err)
	}
	stop.Store(true)
	ended.Wait()
	if turns := others.Load(); turns < polls/2 {
		t.Errorf("another goroutine ran %d times in %d empty polls", turns, polls)
	}
}

// BenchmarkPollers measures the rate of round trips of several polling clients.
func BenchmarkPollers(b *testing.B) {
	for _, clients := range []int{1, 2, 8} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) { benchmarkPollers(b, clients) })
	}
}

func benchmarkPollers(b *testing.B, clients int) {
	l := newWirePair(b)
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	for range clients {
		client, server := newPoller(b, l.a, "10.0.0.2"), newPoller(b, l.b, "10.0.0.1")
		stop := make(chan struct{})
		check(b, server.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{server.mr.SGE(0, slotLen)}}}))
		all.Go(func() {
			defer close(stop)
			for left.Add(-1) >= 0 {
				if err := client.trip(server.qp.Number()); err != nil {
					b.Error(err)
					return
				}
			}
		})
		all.Go(func() { server.echo(b, stop, client.qp.Number()) })
	}
	all.Wait()
}

// echo answers until stopped.
func (p *poller) echo(b *testing.B, stop <-chan struct{}, to verbs.QPN) {
	var wcs [4]verbs.WC
	for !isClosed(stop) {
		n, err := p.cq.Poll(wcs[:])
		for range n {
			if err == nil {
				err = p.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{p.mr.SGE(0, slotLen)}}})
			}
			if err == nil {
				err = p.send(to)
			}
		}
		if err != nil {
			b.Error(err)
			return
		}
	}
}
